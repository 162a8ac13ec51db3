"""Tensors in shared memory: registered, read and written by the server, in place of bytes on the wire."""

import os
import uuid

import numpy as np
import tritonclient.utils.shared_memory as shared_memory
from cases import Case, every_client, grpc_clients
from test_streams import Streams
from tritonclient.utils import serialize_byte_tensor

OFF = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
ROW = np.arange(16, dtype=np.int32).reshape(1, 16)
BYTE_SIZE = ROW.nbytes


class Regions:
    """Memory of the test and its regions on the server, all gone at the end of the test."""

    def create(self, byte_size):
        if not os.path.isdir("/dev/shm"):
            self.skipTest("the server reads shared memory from /dev/shm, which is not here")
        name = str(uuid.uuid4())
        handle = shared_memory.create_shared_memory_region(name, "/" + name, byte_size)
        self.addCleanup(shared_memory.destroy_shared_memory_region, handle)
        return name, handle

    async def register(self, byte_size, offset=0):
        name, handle = self.create(byte_size)
        await self.call("register_system_shared_memory", name, "/" + name, byte_size, offset)
        self.addAsyncCleanup(self.unregister, name)
        return name, handle

    async def unregister(self, name=""):
        await self.call("unregister_system_shared_memory", name)

    async def status(self, name=""):
        """Key, offset and size of each region by its name."""
        status = await self.message("get_system_shared_memory_status", name)
        if self.protocol == "grpc":
            status = status.get("regions", {}).values()
        return {it["name"]: (it["key"], int(it.get("offset", 0)), int(it["byte_size"])) for it in status}

    def input_in(self, region, name, shape, byte_size, offset=0, datatype="INT32"):
        tensor = self.module.InferInput(name, shape, datatype)
        tensor.set_shared_memory(region, byte_size, offset)
        return tensor

    def output_in(self, region, name, byte_size, offset=0):
        output = self.output(name)
        output.set_shared_memory(region, byte_size, offset)
        return output


@every_client
class SharedMemory(Regions, Case):
    server = "open"

    async def test_regions_come_and_go(self):
        first, _ = await self.register(64)
        second, handle = self.create(128)
        await self.call("register_system_shared_memory", second, "/" + second, 64, offset=32)
        status = await self.status()
        self.assertEqual(status[first], ("/" + first, 0, 64))
        self.assertEqual(status[second], ("/" + second, 32, 64))
        self.assertEqual(await self.status(second), {second: ("/" + second, 32, 64)})
        await self.unregister(second)
        self.assertNotIn(second, await self.status())
        self.assertIn(first, await self.status())
        await self.unregister()
        self.assertEqual(await self.status(), {})

    async def simple(self, input0, input1, output0, output1):
        """Asks for two sums of which each tensor is in a region, at an offset."""
        return await self.infer(
            "simple",
            [
                self.input_in(input0[0], "INPUT0", [1, 16], BYTE_SIZE, input0[1]),
                self.input_in(input1[0], "INPUT1", [1, 16], BYTE_SIZE, input1[1]),
            ],
            outputs=[
                self.output_in(output0[0], "OUTPUT0", BYTE_SIZE, output0[1]),
                self.output_in(output1[0], "OUTPUT1", BYTE_SIZE, output1[1]),
            ],
        )

    async def test_inputs_and_outputs(self):
        inputs, input_handle = await self.register(2 * BYTE_SIZE)
        outputs, output_handle = await self.register(2 * BYTE_SIZE)
        # More than once, as the memory is there to be written again.
        for factor in [1, 2]:
            shared_memory.set_shared_memory_region(input_handle, [ROW * factor, ROW * factor * 10])
            result = await self.simple((inputs, 0), (inputs, BYTE_SIZE), (outputs, 0), (outputs, BYTE_SIZE))
            total = shared_memory.get_contents_as_numpy(output_handle, np.int32, [1, 16])
            difference = shared_memory.get_contents_as_numpy(output_handle, np.int32, [1, 16], BYTE_SIZE)
            self.assert_same(total.copy(), ROW * factor * 11)
            self.assert_same(difference.copy(), ROW * factor * -9)
            output = result.get_output("OUTPUT0")
            self.assertEqual(list(output["shape"] if self.protocol == "http" else output.shape), [1, 16])

    async def test_inputs_only_and_outputs_only(self):
        region, handle = await self.register(BYTE_SIZE)
        shared_memory.set_shared_memory_region(handle, [ROW])
        inputs = [self.input_in(region, "INPUT0", [1, 16], BYTE_SIZE), self.input("INPUT1", ROW)]
        result = await self.infer("simple", inputs)
        self.assert_same(result.as_numpy("OUTPUT0"), ROW * 2)

        inputs = [self.input("INPUT0", ROW * 3), self.input("INPUT1", ROW)]
        outputs = [self.output_in(region, "OUTPUT0", BYTE_SIZE), self.output("OUTPUT1")]
        result = await self.infer("simple", inputs, outputs=outputs)
        self.assert_same(result.as_numpy("OUTPUT1"), ROW * 2)
        self.assert_same(shared_memory.get_contents_as_numpy(handle, np.int32, [1, 16]).copy(), ROW * 4)

    async def test_bytes(self):
        text = np.array([b"some \0 text"], dtype=np.object_)
        serialized = serialize_byte_tensor(text)
        byte_size = len(serialized.item())
        region, handle = await self.register(2 * byte_size)
        shared_memory.set_shared_memory_region(handle, [serialized])
        inputs = [self.input_in(region, "TEXT", [1], byte_size, datatype="BYTES")]
        await self.infer("optional", inputs, outputs=[self.output_in(region, "TEXT", byte_size, byte_size)])
        self.assert_same(shared_memory.get_contents_as_numpy(handle, np.object_, [1], byte_size), text)

    async def test_megabytes(self):
        tensor = np.random.default_rng(1).integers(0, 256, 32 * 2**20, np.uint8)
        region, handle = await self.register(2 * tensor.nbytes)
        shared_memory.set_shared_memory_region(handle, [tensor])
        inputs = [self.input_in(region, "X", list(tensor.shape), tensor.nbytes, datatype="UINT8")]
        await self.infer("large", inputs, outputs=[self.output_in(region, "Y", tensor.nbytes, tensor.nbytes)])
        answered = shared_memory.get_contents_as_numpy(handle, np.uint8, tensor.shape, tensor.nbytes)
        self.assertTrue(np.array_equal(answered, tensor))

    async def test_what_cannot_be_registered(self):
        name, _ = await self.register(64)

        def register(name, key, byte_size, offset=0):
            return self.call("register_system_shared_memory", name, key, byte_size, offset)

        text = await self.failure("exists", register(name, "/" + name, 64))
        self.assertIn(f"shared memory region '{name}' already in manager", text)
        text = await self.failure("region failed", register("absent", "/absent-object", 64))
        self.assertIn("Unable to open shared memory region: '/absent-object'", text)
        text = await self.failure("not found", self.call("get_system_shared_memory_status", "absent"))
        self.assertIn("Unable to find system shared memory region: 'absent'", text)

    async def test_what_a_region_does_not_hold(self):
        region, _ = await self.register(BYTE_SIZE)
        row = self.input("INPUT1", ROW)

        async def refused(kind, tensor, outputs=None):
            return await self.failure(kind, self.infer("simple", [tensor, row], outputs=outputs))

        text = await refused("invalid", self.input_in(region, "INPUT0", [1, 16], BYTE_SIZE, offset=4))
        self.assertIn(f"Invalid offset + byte size for shared memory region: '{region}'", text)
        text = await refused("not found", self.input_in("absent", "INPUT0", [1, 16], BYTE_SIZE))
        self.assertIn("Unable to find shared memory region: 'absent'", text)
        text = await refused("region failed", self.input("INPUT0", ROW), [self.output_in(region, "OUTPUT0", 8)])
        self.assertIn("shared memory size specified with the request for output 'OUTPUT0' (8 bytes)", text)
        self.assertIn("should be at least 64 bytes to hold the results", text)


@grpc_clients
class StreamedSharedMemory(Regions, Streams):
    server = "open"

    async def test_on_a_stream(self):
        region, handle = await self.register(2 * BYTE_SIZE)
        shared_memory.set_shared_memory_region(handle, [ROW])
        request = {
            "model_name": "simple",
            "inputs": [self.input_in(region, "INPUT0", [1, 16], BYTE_SIZE), self.input("INPUT1", ROW)],
            "outputs": [self.output_in(region, "OUTPUT0", BYTE_SIZE, BYTE_SIZE)],
        }
        [(_, error)] = await self.conversation([request])
        self.assertIsNone(error)
        self.assert_same(shared_memory.get_contents_as_numpy(handle, np.int32, [1, 16], BYTE_SIZE).copy(), ROW * 2)


@every_client
class SharedMemoryThatIsOff(Regions, Case):
    async def test_is_refused(self):
        register = self.call("register_system_shared_memory", "region", "/object", 64)
        self.assertIn(OFF, await self.failure("unsupported", register))
        self.assertIn(OFF, await self.failure("unsupported", self.unregister("region")))
        inputs = [self.input_in("region", "INPUT0", [1, 16], BYTE_SIZE), self.input("INPUT1", ROW)]
        self.assertIn(OFF, await self.failure("unsupported", self.infer("simple", inputs)))

    async def test_has_no_regions(self):
        self.assertEqual(await self.status(), {})


@every_client
class CudaSharedMemory(Case):
    server = "open"

    async def test_there_is_none(self):
        self.assertIn(await self.message("get_cuda_shared_memory_status"), [[], {}])
        handle = b"aGFuZGxl"
        register = self.call("register_cuda_shared_memory", "region", handle, 0, 64)
        text = await self.failure("invalid", register)
        self.assertIn("failed to register CUDA shared memory region: 'region', GPUs not supported", text)
