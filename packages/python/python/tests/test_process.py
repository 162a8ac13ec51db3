"""Death, limits, frames, memory and forks of a model's process."""

import json
import mmap
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from fake_server import (
    CALL,
    DUMP_STACKS,
    EXECUTE,
    LOG_LEVEL,
    REPLY,
    STACKS,
    FakeServer,
    frame,
    pack,
    unpack,
)

EVAL = """
import os, threading, time
import numpy as np
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        self.kept = []
    def execute(self, requests):
        scope = {"requests": requests, "self": self, "pb": pb, "np": np, "os": os, "threading": threading, "result": None}
        exec(requests[0].inputs()[0].as_numpy()[0].decode(), scope)
        return scope["result"] or [pb.InferenceResponse([]) for _ in requests]
"""


def run(server, code, **inputs):
    return server.execute({"inputs": {"CODE": [code.encode()], **inputs}})


class End(unittest.TestCase):
    def test_the_end_of_control_ends_the_process_in_the_middle_of_a_call(self):
        with FakeServer(EVAL) as server:
            server.send_execute({"inputs": {"CODE": [b"pb.Logger.log_info('in')\nwhile True: pass"]}})
            server.wait(34)
            server.control.close()
            self.assertEqual(server.process.wait(20), 1)

    # P1.orphan.ends@local
    def test_the_end_of_control_skips_finalize(self):
        with FakeServer(EVAL + "    def finalize(self):\n        print('finalized')\n") as server:
            server.control.close()
            self.assertEqual(server.process.wait(20), 1)
            self.assertEqual(server.process.stdout.read(), b"")

    def test_the_end_of_data_without_a_stop_ends_the_process(self):
        with FakeServer(EVAL) as server:
            server.data.close()
            self.assertEqual(server.process.wait(20), 1)

    # P1.signal.ignored@local
    def test_signals_of_a_terminal_are_ignored(self):
        with FakeServer(EVAL) as server:
            for number in (signal.SIGINT, signal.SIGTERM):
                os.kill(server.process.pid, number)
            self.assertIn("r", run(server, "pass"))
            server.stop()

    def test_a_stop_waits_for_the_execution_under_way(self):
        with FakeServer(EVAL) as server:
            server.send_execute({"inputs": {"CODE": [b"pb.Logger.log_info('in'); self.go = threading.Event(); self.go.wait(0.2)"]}})
            server.wait(34)
            server.tell(13, {})
            self.assertIn("r", server.answer()[1])
            server.wait(33)
            self.assertEqual(server.process.wait(20), 0)

    # P1.orphan.native@local
    @unittest.skipUnless(sys.platform.startswith("linux"), "needs Linux")
    def test_the_death_of_the_server_ends_native_code_that_holds_the_lock_of_python(self):
        script = """
import os, signal, sys
from fake_server import FakeServer
from test_process import EVAL
server = FakeServer(EVAL)
server.send_execute({"inputs": {"CODE": [b"pb.Logger.log_info('in')\\nimport re\\nre.match('(a+)+$', 'a' * 64 + 'b')"]}})
server.wait(34)
print(server.process.pid, server.folder, flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""
        tests = os.path.dirname(os.path.abspath(__file__))
        with subprocess.Popen(
            [sys.executable, "-c", script], cwd=tests, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            pid, folder = server.stdout.readline().decode().split()
            self.addCleanup(shutil.rmtree, folder)
            handle = os.pidfd_open(int(pid))
            self.addCleanup(os.close, handle)
            server.stdin.close()
            self.assertTrue(select.select([handle], [], [], 20)[0])

    @unittest.skipUnless(sys.platform.startswith("linux"), "needs Linux")
    def test_the_death_signal_can_be_switched_off(self):
        code = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); assert n.value == %d, n"
        for fields, number in (({}, signal.SIGKILL), ({"death_signal": 0}, 0)):
            with FakeServer(EVAL, **fields) as server:
                self.assertIn("r", run(server, code % number))


class Frames(unittest.TestCase):
    def test_a_wrong_frame_ends_the_process_with_a_line_that_says_why(self):
        body = bytes(64)
        tensor = {"n": "A", "t": "FP32", "s": [2], "b": 8}
        cases = {
            "a header is not JSON": struct.pack("<IIQ", 3, EXECUTE, 0) + b"{x}",
            "a header must be a JSON object, not list": struct.pack("<IIQ", 2, EXECUTE, 0) + b"[]",
            "longer than the limit of 16777216": struct.pack("<IIQ", 1 << 30, EXECUTE, 0),
            "longer than the limit of 1099511627776": struct.pack("<IIQ", 2, EXECUTE, 1 << 50) + b"{}",
            "unexpected frame of kind 99": frame(99, {}),
            "EXECUTE has no number": frame(EXECUTE, {"r": []}),
            "EXECUTE has no requests": frame(EXECUTE, {"x": 1}),
            "a request in EXECUTE is wrong": frame(EXECUTE, {"x": 1, "r": [5]}),
            "ends at byte 8 of a body of 0 bytes": frame(EXECUTE, {"x": 1, "r": [{"i": [tensor]}]}),
            "of FP32 [3] cannot have 8 bytes": frame(EXECUTE, {"x": 1, "r": [{"i": [{**tensor, "s": [3]}]}]}, body),
            "KeyError: 'FP31'": frame(EXECUTE, {"x": 1, "r": [{"i": [{**tensor, "t": "FP31"}]}]}, body),
            "KeyError: 'b'": frame(EXECUTE, {"x": 1, "r": [{"i": [{"n": "A", "t": "FP32", "s": [2]}]}]}, body),
        }
        for text, data in cases.items():
            with self.subTest(text), FakeServer(EVAL) as server:
                server.data.sendall(data)
                self.assertIn(text, server.error_output())
                self.assertEqual(server.process.returncode, 2)

    def test_a_wrong_control_frame_ends_the_process_too(self):
        for text, data in {
            "unexpected frame of kind 99 on the control socket": frame(99, {}),
            "a frame of kind 12 is wrong: KeyError": frame(12, {}),
        }.items():
            with self.subTest(text), FakeServer(EVAL) as server:
                server.control.sendall(data)
                self.assertIn(text, server.error_output())

    def test_broken_bytes_in_a_tensor_fail_the_request_only(self):
        with FakeServer(EVAL) as server:
            header = run(server, "requests[0].inputs()[1].as_numpy()", S=("BYTES", [2], b"\x05\0\0\0ab"))
            self.assertIn("Tensor 'S' cannot be decoded: an element of 5 bytes at byte 4 passes the end", header["e"])
            header = run(server, "requests[0].inputs()[1].as_numpy()", S=("BYTES", [2], b"\x02\0\0\0ab"))
            self.assertIn("expected 2 elements in a BYTES tensor, found 1", header["e"])


class Memory(unittest.TestCase):
    def test_a_large_input_is_a_view_of_its_receive_buffer(self):
        with FakeServer(EVAL) as server:
            code = """
# No generator: its function refers to these variables, and without the global lock lives until a garbage collection.
a, b = requests[0].inputs()[1].as_numpy(), requests[0].inputs()[2].as_numpy()
assert a.flags.writeable and not a.flags.owndata
lent = a.base.obj if isinstance(a.base, memoryview) else a.base
assert np.shares_memory(a, lent) and np.shares_memory(b, lent) and lent.nbytes >= a.nbytes + b.nbytes
address = lent.ctypes.data
self.kept.append(address)
"""
            array = np.arange(10_000_000 // 8)
            for _ in range(3):
                self.assertIn("r", run(server, code, A=array, B=array[:1000]))
            # The same memory was lent again, since the views had gone.
            header = run(server, "assert len(set(self.kept)) == 1, self.kept")
            self.assertIn("r", header)

    def test_kept_inputs_stay_untouched_by_later_requests(self):
        with FakeServer(EVAL) as server:
            for value in range(3):
                self.assertIn("r", run(server, "self.kept.append(requests[0].inputs()[1].as_numpy()[5:])", A=np.full(100_000, value)))
            self.assertIn("r", run(server, "assert [int(a.sum()) for a in self.kept] == [0, 99995, 199990]"))

    def test_a_memory_limit_fails_requests_and_not_the_process(self):
        with FakeServer(EVAL, limits={"memory": 1 << 30}) as server:
            self.assertIn("MemoryError", run(server, "np.ones(1 << 30)")["e"])
            header = {"x": 7, "r": []}
            text = json.dumps(header).encode()
            server.data.sendall(struct.pack("<IIQ", len(text), EXECUTE, 3 << 30) + text)
            piece = bytes(1 << 24)
            for _ in range((3 << 30) // len(piece)):
                server.data.sendall(piece)
            answer = server.answer()[1]
            self.assertIn(f"The requests of {3 << 30} bytes do not fit into the memory", answer["e"])
            self.assertEqual((answer["x"], answer["k"]), (7, 4))
            self.assertIn("r", run(server, "pass"))


class SharedMemory(unittest.TestCase):
    def place(self, file, offset):
        return [file.name, os.fstat(file.fileno()).st_ino, offset]

    def ask(self, server, code, item, **more):
        items, body = pack({"CODE": [code.encode()]})
        server.number += 1
        header = {"x": server.number, "r": [{"i": [*items, item], **more}]}
        server.data.sendall(frame(EXECUTE, header, body))
        return server.answer()[1]

    def test_inputs_are_mapped_and_never_written(self):
        with FakeServer(EVAL) as server, tempfile.NamedTemporaryFile(dir=server.folder) as file:
            values = np.arange(1000, dtype=np.int64)
            file.write(bytes(mmap.PAGESIZE) + values.tobytes())
            file.flush()
            code = "a = requests[0].inputs()[1].as_numpy(); total = int(a.sum()); a += 1; result = [pb.InferenceResponse(parameters={'sum': total})]"
            item = {"n": "A", "t": "INT64", "s": [900], "b": 7200, "m": self.place(file, mmap.PAGESIZE + 800)}
            for _ in range(2):
                answer = self.ask(server, code, item)
                self.assertEqual(answer["r"][0]["p"], json.dumps({"sum": int(values[100:].sum())}))
            file.seek(mmap.PAGESIZE)
            self.assertEqual(file.read(), values.tobytes())

    def test_outputs_are_written_into_their_targets_unless_they_are_too_long(self):
        code = "result = [pb.InferenceResponse([pb.Tensor('A', np.arange(4, 12, dtype=np.int64))])]"
        with FakeServer(EVAL) as server, tempfile.NamedTemporaryFile(dir=server.folder) as file:
            file.write(bytes(100))
            file.flush()
            item = {"n": "B", "t": "INT64", "s": [1], "b": 8, "m": self.place(file, 0)}
            (output,) = self.ask(server, code, item, m={"A": [self.place(file, 20), 64]})["r"][0]["o"]
            self.assertEqual(output, {"n": "A", "t": "INT64", "s": [8], "b": 64, "m": 1})
            file.seek(0)
            self.assertEqual(file.read(), bytes(20) + np.arange(4, 12).tobytes() + bytes(16))
            for place in ([self.place(file, 20), 63], [self.place(file, 40), 64], [["/nowhere", 1, 0], 64]):
                (output,) = self.ask(server, code, item, m={"A": place})["r"][0]["o"]
                self.assertNotIn("m", output)
            file.seek(84)
            self.assertEqual(file.read(), bytes(16))

    def test_memory_that_cannot_be_mapped_fails_its_execution_and_no_other(self):
        with FakeServer(EVAL) as server, tempfile.NamedTemporaryFile(dir=server.folder) as file:
            file.write(bytes(100))
            file.flush()
            item = {"n": "A", "t": "INT64", "s": [12], "b": 96}
            inode = os.fstat(file.fileno()).st_ino
            for place, text in (
                ([file.name, inode, 8], "has become shorter"),
                ([file.name, inode + 1, 0], "the file is another one now"),
                (["/nowhere", inode, 0], "No such file"),
            ):
                self.assertIn(text, self.ask(server, "pass", {**item, "m": place})["e"])
            self.assertIn("r", run(server, "pass"))


class Stacks(unittest.TestCase):
    def test_stacks_show_where_execute_is(self):
        with FakeServer(EVAL) as server:
            server.send_execute(
                {"inputs": {"CODE": [b"def stuck():\n    pb.Logger.log_info('in')\n    while not self.kept: pass\nstuck()"]}}
            )
            server.wait(34)
            server.tell(DUMP_STACKS, {"n": 4})
            header = server.wait(STACKS)[0]
            self.assertEqual(header["n"], 4)
            self.assertIn("in stuck", header["text"])
            self.assertIn("Thread MainThread", header["text"])

    def test_a_signal_writes_the_stacks_to_stderr(self):
        with FakeServer(EVAL) as server:
            os.kill(server.process.pid, signal.SIGUSR1)
            self.assertIn("r", run(server, "pass"))
            server.control.close()
            self.assertIn("most recent call first", server.error_output())


class Log(unittest.TestCase):
    def test_lines_carry_level_file_and_line(self):
        with FakeServer(EVAL, log={"verbose": 1}) as server:
            run(server, "L = pb.Logger\nL.log_info('a')\nL.log_warn('b')\nL.log_error('c')\nL.log_verbose('d')\nL.log('e', L.WARNING)")
            lines = [server.wait(34)[0]["l"][0] for _ in range(5)]
            self.assertEqual([line[:2] for line in lines], [[0, "a"], [1, "b"], [2, "c"], [3, "d"], [1, "e"]])
            self.assertEqual([line[2:] for line in lines], [["<string>", number] for number in range(2, 7)])

    def test_levels_that_the_server_switched_off_are_not_sent(self):
        with FakeServer(EVAL) as server:
            server.tell(LOG_LEVEL, {"verbose": 0, "info": False, "warning": True, "error": True})
            server.tell(DUMP_STACKS, {"n": 1})
            server.wait(STACKS)
            run(server, "L = pb.Logger\nL.log_info('a')\nL.log_verbose('b')\nL.log_warn('c')")
            self.assertEqual(server.wait(34)[0]["l"][0][1], "c")
            server.tell(LOG_LEVEL, {"verbose": 1, "info": True, "warning": False, "error": True})
            server.tell(DUMP_STACKS, {"n": 2})
            server.wait(STACKS)
            run(server, "L = pb.Logger\nL.log_warn('a')\nL.log_verbose('b')")
            self.assertEqual(server.wait(34)[0]["l"][0][1], "b")

    def test_levels_on_the_data_socket_count_from_the_next_execution_and_late_ones_change_nothing(self):
        with FakeServer(EVAL, log={"verbose": 0}) as server:
            server.data.sendall(frame(LOG_LEVEL, {"verbose": 1, "info": False, "n": 2}))
            run(server, "L = pb.Logger\nL.log_info('a')\nL.log_verbose('b')")
            self.assertEqual(server.wait(34)[0]["l"][0][1], "b")
            server.data.sendall(frame(LOG_LEVEL, {"verbose": 0, "n": 1}))
            run(server, "pb.Logger.log_verbose('c')")
            self.assertEqual(server.wait(34)[0]["l"][0][1], "c")

    def test_the_levels_of_the_start_count_from_the_start(self):
        with FakeServer(EVAL, log={"verbose": 0, "info": False, "warning": False, "error": True}) as server:
            run(server, "L = pb.Logger\nL.log_info('a')\nL.log_warn('b')\nL.log_verbose('c')\nL.log_error('d')")
            self.assertEqual(server.wait(34)[0]["l"][0][1], "d")


class Forks(unittest.TestCase):
    def answer_call(self, server):
        header, body = server.wait(CALL)
        tensors, _ = unpack(header["i"], body)
        items, out = pack({"OUT": tensors["IN"] * 2})
        server.tell(REPLY, {"n": header["n"], "o": items, "final": 1}, out)

    def test_a_fork_calls_other_models_through_its_parent(self):
        code = """
def call(value):
    request = pb.InferenceRequest(model_name='other', inputs=[pb.Tensor('IN', np.array([value]))], requested_output_names=['OUT'])
    pb.Logger.log_info('in the fork')
    return request.exec().output_tensors()[0].as_numpy().tolist()
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, str(call(21)).encode())
    os._exit(0)
os.waitpid(child, 0)
result = [pb.InferenceResponse(parameters={'out': os.read(read, 100).decode()})]
"""
        with FakeServer(EVAL) as server:
            server.send_execute({"inputs": {"CODE": [code.encode()]}})
            self.answer_call(server)
            self.assertEqual(server.answer()[1]["r"][0]["p"], '{"out": "[42]"}')
            self.assertEqual(server.logs[0][1], "in the fork")
            server.stop()

    def test_a_pool_of_processes_calls_other_models(self):
        code = """
import multiprocessing
import numpy as np
import triton_python_backend_utils as pb
def call(value):
    request = pb.InferenceRequest(model_name='other', inputs=[pb.Tensor('IN', np.array([value]))], requested_output_names=['OUT'])
    return int(request.exec().output_tensors()[0].as_numpy()[0])
class TritonPythonModel:
    def execute(self, requests):
        with multiprocessing.get_context('fork').Pool(2) as pool:
            values = pool.map(call, [1, 2, 3])
        return [pb.InferenceResponse([pb.Tensor('OUT', np.array(values))])]
"""
        with FakeServer(code) as server:
            server.send_execute({"inputs": {}})
            for _ in range(3):
                self.answer_call(server)
            self.assertEqual(server.answer()[1]["r"][0]["outputs"]["OUT"].tolist(), [2, 4, 6])

    def test_a_fork_ends_with_its_parent_and_holds_no_socket(self):
        code = "child = os.fork()\nif child == 0:\n    while True: pass\nresult = [pb.InferenceResponse(parameters={'child': child})]"
        with FakeServer(EVAL) as server:
            child = json.loads(run(server, code)["r"][0]["p"])["child"]
            handle = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
            os.kill(server.process.pid, signal.SIGKILL)
            # Data and control end at once, although the fork still runs.
            self.assertEqual(server.data.recv(1), b"")
            self.assertEqual(server.control.recv(1), b"")
            if handle is not None:
                self.assertTrue(select.select([handle], [], [], 20)[0])
                os.close(handle)

    def test_a_fork_cannot_send_responses(self):
        code = """
read, write = os.pipe()
child = os.fork()
if child == 0:
    try:
        requests[0].get_response_sender().send(pb.InferenceResponse(), 1)
    except pb.TritonModelException as error:
        os.write(write, str(error).encode())
    os._exit(0)
os.waitpid(child, 0)
result = [pb.InferenceResponse(parameters={'text': os.read(read, 200).decode()})]
"""
        with FakeServer(EVAL) as server:
            self.assertIn("The process that executes the request must send it.", run(server, code)["r"][0]["p"])


class Descriptors(unittest.TestCase):
    def test_the_model_starts_programs_that_inherit_none_of_the_sockets(self):
        code = """
import subprocess, sys
out = subprocess.run([sys.executable, '-c', 'import os; print(len([n for n in os.listdir("/proc/self/fd") if int(n) > 2]))'], capture_output=True, close_fds=False)
assert int(out.stdout) == 1, out
"""
        if not os.path.isdir("/proc/self/fd"):
            self.skipTest("needs /proc")
        with FakeServer(EVAL) as server:
            self.assertIn("r", run(server, code))


if __name__ == "__main__":
    unittest.main()
