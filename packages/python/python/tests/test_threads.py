"""Instances in threads of one process."""

import json
import sys
import sysconfig
import unittest

from fake_server import CALL, CANCEL, LOG, REPLY, FakeServer

SECOND = [{"model_instance_name": "m_0_1"}]
FREE_THREADED = sysconfig.get_config_var("Py_GIL_DISABLED") == 1

EXEC = """
import asyncio, threading
import triton_python_backend_utils as pb
BARRIER = threading.Barrier(2, timeout=15)
class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_instance_name"]
        self.thread = threading.get_ident()
    def execute(self, requests):
        scope = {"self": self, "request": requests[0], "pb": pb, "threading": threading, "barrier": BARRIER}
        exec(requests[0].inputs()[0].as_numpy()[0].decode(), scope)
        return [pb.InferenceResponse(parameters={"name": self.name}) for _ in requests]
    def finalize(self):
        raise ValueError(f"{self.name} ends in its thread: {self.thread == threading.get_ident()}")
"""


def send(server, thread, code="pass"):
    server.use_thread(thread)
    return server.send_execute({"inputs": {"CODE": [code.encode()]}})


def answer(server, thread):
    server.use_thread(thread)
    return server.answer()[1]


class Threads(unittest.TestCase):
    def test_each_instance_executes_its_requests_beside_the_other(self):
        with FakeServer(EXEC, threads=SECOND) as server:
            for thread in (0, 1):
                send(server, thread, "barrier.wait()")
            names = [json.loads(answer(server, thread)["r"][0]["p"])["name"] for thread in (0, 1)]
            self.assertEqual(names, ["m_0_0", "m_0_1"])

    def test_an_instance_lives_in_one_thread_until_finalize(self):
        with FakeServer(EXEC, threads=SECOND) as server:
            for thread in (0, 1):
                send(server, thread, "assert self.thread == threading.get_ident()")
                self.assertIn("r", answer(server, thread))
            ended = server.stop()["e"]
            for name in ("m_0_0", "m_0_1"):
                self.assertIn(f"ValueError: {name} ends in its thread: True", ended)

    def test_a_failure_names_its_instance_and_the_other_one_goes_on(self):
        with FakeServer(EXEC.replace("return [pb.I", "return [] and [pb.I"), threads=SECOND, decoupled=True) as server:
            send(server, 1)
            self.assertIn("Python model 'm_0_1' is using the decoupled mode", answer(server, 1)["e"])

    def test_a_cancellation_finds_the_request_of_its_thread(self):
        code = "pb.Logger.log_info('in')\nwhile not request.is_cancelled(): threading.Event().wait(0.001)"
        with FakeServer(EXEC, threads=SECOND) as server:
            number = send(server, 1, code)
            server.wait(LOG)
            server.tell(CANCEL, {"x": number, "q": 0, "t": 1})
            self.assertIn("r", answer(server, 1))

    def test_each_instance_has_an_event_loop(self):
        code = """
import threading
import triton_python_backend_utils as pb
BARRIER = threading.Barrier(2, timeout=15)
class TritonPythonModel:
    async def execute(self, requests):
        # Blocks the loop, so that two executions on one loop would wait for ever.
        BARRIER.wait()
        return [pb.InferenceResponse() for _ in requests]
"""
        with FakeServer(code, threads=SECOND) as server:
            for thread in (0, 1):
                server.use_thread(thread)
                server.send_execute({"inputs": {}})
            for thread in (0, 1):
                self.assertIn("r", answer(server, thread))

    def test_calls_of_other_models_from_both_threads_find_their_replies(self):
        code = """
request = pb.InferenceRequest(inputs=[], requested_output_names=[], model_name=self.name)
for _ in range(50):
    assert request.exec().parameters() == json.dumps({"to": self.name}), self.name
"""
        with FakeServer("import json\n" + EXEC.replace('"pb": pb', '"pb": pb, "json": json'), threads=SECOND) as server:
            for thread in (0, 1):
                send(server, thread, code)
            numbers = set()
            for _ in range(100):
                header = server.wait(CALL)[0]
                numbers.add(header["n"])
                server.tell(REPLY, {"n": header["n"], "final": 1, "o": [], "p": json.dumps({"to": header["model"]})})
            self.assertEqual(len(numbers), 100)
            for thread in (0, 1):
                self.assertIn("r", answer(server, thread))

    def test_an_instance_that_fails_to_initialize_fails_the_load(self):
        code = EXEC.replace("self.thread = t", "assert self.name != 'm_0_1', 'no second one'\n        self.thread = t")
        with FakeServer(code, threads=SECOND) as server:
            self.assertIn("AssertionError: no second one", server.started["e"])

    @unittest.skipUnless(FREE_THREADED, "this Python is not free-threaded")
    def test_no_global_lock_is_in_force(self):
        with FakeServer(EXEC, threads=SECOND) as server:
            send(server, 1, "import sys; assert not sys._is_gil_enabled()")
            self.assertIn("r", answer(server, 1))

    @unittest.skipUnless(FREE_THREADED, "this Python is not free-threaded")
    def test_an_import_that_enables_the_global_lock_fails_the_load(self):
        # As an extension module does that was not made for free threading.
        code = "import sys\nsys._is_gil_enabled = lambda: True\n" + EXEC
        with FakeServer(code, threads=SECOND) as server:
            self.assertIn(f"has enabled the global interpreter lock (GIL) of {sys.executable}", server.started["e"])
            self.assertIn("PYTHON_GIL=0", server.started["e"])
        with FakeServer(code) as server:
            self.assertEqual(server.started["ok"], 1)


if __name__ == "__main__":
    unittest.main()
