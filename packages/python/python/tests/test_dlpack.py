"""DLPack in both directions, with NumPy and, where installed, torch and JAX."""

import gc
import importlib.util
import json
import unittest
import weakref

import fake_server
import numpy as np

import triton_python_backend_utils as pb
from nereid_model import dlpack
from nereid_model.tensor import Tensor, TensorWriter, read_tensors

try:
    import torch
except ImportError:
    torch = None
HAS_JAX = importlib.util.find_spec("jax") is not None


class Capsule:
    """What a producer of DLPack looks like."""

    def __init__(self, tensor, device=(1, 0)):
        self.tensor, self.device = tensor, device

    def __dlpack__(self, **_):
        return self.tensor.to_dlpack()

    def __dlpack_device__(self):
        return self.device


class DLPack(unittest.TestCase):
    # P3.tensor.to-dlpack@local
    def test_every_datatype_goes_out_and_comes_back_without_a_copy(self):
        for kind in (np.bool_, np.uint8, np.int16, np.uint32, np.int64, np.float16, np.float32, np.float64):
            array = np.ones((2, 3), kind)
            back = pb.Tensor.from_dlpack("B", pb.Tensor("A", array).to_dlpack())
            self.assertEqual((back.name(), back.shape(), back.as_numpy().dtype), ("B", [2, 3], array.dtype))
            self.assertTrue(np.shares_memory(back.as_numpy(), array))
            self.assertTrue(back.as_numpy().flags.writeable)

    # P3.tensor.dlpack-protocol@local
    def test_numpy_reads_a_tensor(self):
        array = np.arange(4.0)
        self.assertTrue(np.shares_memory(np.from_dlpack(pb.Tensor("A", array)), array))

    def test_read_only_arrays_can_be_exported(self):
        array = np.arange(4)
        array.flags.writeable = False
        self.assertEqual(pb.Tensor.from_dlpack("B", pb.Tensor("A", array)).as_numpy().tolist(), [0, 1, 2, 3])

    def test_the_memory_lives_as_long_as_its_last_user_and_no_longer(self):
        class Watched(np.ndarray):
            pass

        before = len(dlpack._exported)
        array = np.arange(1000).view(Watched)
        gone = weakref.ref(array)
        tensor = pb.Tensor.from_dlpack("B", pb.Tensor("A", array).to_dlpack())
        del array
        view = tensor.as_numpy()[5:]
        del tensor
        gc.collect()
        self.assertEqual(int(view.sum()), sum(range(5, 1000)))
        self.assertIsNotNone(gone())
        del view
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(len(dlpack._exported), before)

    def test_a_capsule_that_nobody_reads_releases_its_memory(self):
        before = len(dlpack._exported)
        capsule = pb.Tensor("A", np.arange(3)).to_dlpack()
        self.assertEqual(len(dlpack._exported), before + 1)
        del capsule
        self.assertEqual(len(dlpack._exported), before)

    # P3.tensor.dlpack-once@local
    def test_a_capsule_can_be_read_only_once(self):
        capsule = pb.Tensor("A", np.arange(3)).to_dlpack()
        pb.Tensor.from_dlpack("B", capsule)
        with self.assertRaisesRegex(pb.TritonModelException, "already used"):
            pb.Tensor.from_dlpack("C", capsule)

    def test_empty_and_scalar_tensors_pass(self):
        for shape in ((0,), (2, 0), ()):
            back = pb.Tensor.from_dlpack("B", pb.Tensor("A", np.ones(shape)).to_dlpack())
            self.assertEqual(back.shape(), list(shape))

    # P3.tensor.dlpack-strings@local
    def test_strings_have_no_dlpack(self):
        with self.assertRaisesRegex(pb.TritonModelException, "DLPack does not have support for string tensors."):
            pb.Tensor("A", np.array([b"x"])).to_dlpack()

    # P3.tensor.from-dlpack@local P3.tensor.dlpack-strides@local
    def test_other_objects_and_layouts_are_refused(self):
        with self.assertRaises(pb.TritonModelException):
            pb.Tensor.from_dlpack("A", [1, 2])
        with self.assertRaisesRegex(pb.TritonModelException, "DLPack tensor is not contiguous. Only contiguous"):
            pb.Tensor.from_dlpack("A", np.ones((2, 3)).T)
        with self.assertRaisesRegex(pb.TritonModelException, "Tensor name cannot be an empty string."):
            pb.Tensor.from_dlpack("", np.ones(1))

    def test_tensors_of_another_device_are_copied_by_their_framework(self):
        tensor = pb.Tensor("A", np.arange(3))

        class OnDevice(Capsule):
            def cpu(self):
                return Capsule(tensor)

        self.assertEqual(pb.Tensor.from_dlpack("B", OnDevice(tensor, (2, 0))).as_numpy().tolist(), [0, 1, 2])
        with self.assertRaisesRegex(pb.TritonModelException, "not in the memory of the CPU"):
            pb.Tensor.from_dlpack("B", Capsule(tensor, (2, 0)))

    # P3.tensor.bf16-text@local
    def test_bf16_travels_as_its_bits_and_only_by_dlpack(self):
        items, body = fake_server.pack({"A": ("BF16", [2], b"\x80\x3f\x00\x40")})
        tensor = read_tensors(items, bytearray(body))[0]
        with self.assertRaisesRegex(pb.TritonModelException, "Tensor dtype is BF16 and cannot be converted to NumPy."):
            tensor.as_numpy()
        back = pb.Tensor.from_dlpack("B", tensor)
        self.assertEqual((back.triton_dtype(), back.shape()), (14, [2]))
        writer = TensorWriter()
        self.assertEqual(json.loads(writer.add([back]))["t"], "BF16")
        self.assertEqual((writer.length, bytes(writer.pieces[0])), (4, b"\x80\x3f\x00\x40"))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_torch_reads_and_writes_every_tensor(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        shared = torch.from_dlpack(pb.Tensor("A", array))
        shared += 1
        self.assertEqual(int(array[0, 0]), 1)
        back = pb.Tensor.from_dlpack("B", shared)
        self.assertTrue(np.shares_memory(back.as_numpy(), array))
        via_capsule = pb.Tensor.from_dlpack("B", torch.utils.dlpack.to_dlpack(torch.ones(3, dtype=torch.int64)))
        self.assertEqual(via_capsule.as_numpy().tolist(), [1, 1, 1])
        self.assertEqual(torch.utils.dlpack.from_dlpack(via_capsule.to_dlpack()).tolist(), [1, 1, 1])
        pb.Tensor.from_dlpack("G", torch.ones(2, requires_grad=True))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_torch_reads_and_writes_bf16(self):
        tensor = pb.Tensor.from_dlpack("A", torch.tensor([1.0, 2.0], dtype=torch.bfloat16))
        self.assertEqual(tensor.triton_dtype(), 14)
        shared = torch.from_dlpack(tensor)
        self.assertEqual((shared.dtype, shared.tolist()), (torch.bfloat16, [1.0, 2.0]))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_torch_layouts_that_are_not_contiguous_are_refused(self):
        with self.assertRaisesRegex(pb.TritonModelException, "is not contiguous"):
            pb.Tensor.from_dlpack("A", torch.ones(2, 3).t())
        self.assertEqual(pb.Tensor.from_dlpack("A", torch.ones(3, 1).t()).shape(), [1, 3])

    @unittest.skipUnless(HAS_JAX, "JAX is not installed")
    def test_jax_reads_and_writes_bf16(self):
        import jax.numpy as jnp

        tensor = pb.Tensor.from_dlpack("A", jnp.array([1.0, 2.0], jnp.bfloat16))
        self.assertEqual((tensor.triton_dtype(), tensor.shape()), (14, [2]))
        self.assertEqual(jnp.from_dlpack(tensor).tolist(), [1.0, 2.0])


class TensorValue(unittest.TestCase):
    def test_a_tensor_is_its_own_device_description(self):
        self.assertEqual(Tensor("A", np.zeros(1)).__dlpack_device__(), (1, 0))


if __name__ == "__main__":
    unittest.main()
