"""Decoupled mode, over the real sockets."""

import unittest

from fake_server import CANCEL, RESPONSE, RETURNED, FakeServer

EVAL = """
import threading
import numpy as np
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        self.kept = []
    def execute(self, requests):
        scope = {"requests": requests, "self": self, "pb": pb, "np": np, "threading": threading, "result": None}
        exec(requests[0].inputs()[0].as_numpy()[0].decode(), scope)
        return scope["result"]
"""


class Decoupled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = FakeServer(EVAL, decoupled=True)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def send(self, code):
        return self.server.send_execute({"inputs": {"CODE": [code.encode()]}})

    def answers(self, count):
        return [self.server.answer() for _ in range(count)]

    def test_any_number_of_responses_precede_the_final_flag(self):
        self.send(
            """
s = requests[0].get_response_sender()
for i in range(3):
    s.send(pb.InferenceResponse([pb.Tensor('OUT', np.array([i]))], parameters={'i': i}))
s.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
        )
        answers = self.answers(5)
        self.assertEqual([kind for kind, _ in answers], [RESPONSE] * 4 + [RETURNED])
        self.assertEqual([int(header["outputs"]["OUT"][0]) for _, header in answers[:3]], [0, 1, 2])
        self.assertEqual(answers[3][1], {"x": answers[3][1]["x"], "q": 0, "final": 1})
        self.assertEqual(answers[4][1]["r"], [{"d": 1}])

    def test_a_sender_works_from_another_thread_after_execute_returned(self):
        self.send("self.kept.append(requests[0].get_response_sender())")
        self.assertEqual(self.server.answer()[1]["r"], [{"w": 1}])
        number = self.send(
            """
s = self.kept.pop()
thread = threading.Thread(target=lambda: s.send(pb.InferenceResponse(), 1))
thread.start()
thread.join()
requests[0].get_response_sender().send(flags=1)
"""
        )
        answers = self.answers(3)
        self.assertEqual([header["x"] for _, header in answers], [number - 1, number, number])

    # P3.sender.again@local
    def test_the_same_response_may_be_sent_twice(self):
        self.send("r = pb.InferenceResponse([pb.Tensor('OUT', np.array([7]))])\ns = requests[0].get_response_sender()\ns.send(r)\ns.send(r, 1)")
        self.assertEqual([header["final"] for _, header in self.answers(2)], [0, 1])
        self.answers(1)

    def test_a_returned_value_is_an_error(self):
        self.send("result = []")
        self.assertEqual(
            self.server.answer()[1]["e"],
            "Python model 'm_0_0' is using the decoupled mode and the execute function must return None.",
        )

    def test_an_exception_closes_the_open_senders(self):
        self.send("self.kept.append(requests[0].get_response_sender())\nraise RuntimeError('Intentional Error')")
        self.assertIn("RuntimeError: Intentional Error", self.server.answer()[1]["e"])
        self.send("self.kept.pop().send(pb.InferenceResponse())")
        self.assertIn("Response sender has been closed.", self.server.answer()[1]["e"])

    def test_sending_after_the_final_flag_is_an_error(self):
        self.send("s = requests[0].get_response_sender()\ns.send(flags=1)\ns.send(pb.InferenceResponse())")
        answers = self.answers(2)
        self.assertEqual(answers[0][1]["final"], 1)
        self.assertIn("Unable to send response. Response sender has been closed.", answers[1][1]["e"])

    def test_a_request_dropped_unanswered_ends_without_a_response(self):
        for code in ("pass", "s = requests[0].get_response_sender()"):
            number = self.send(code)
            self.assertEqual(self.server.answer()[1]["r"], [{"w": 1}])
            self.assertEqual(self.server.answer(), (RESPONSE, {"x": number, "q": 0, "final": 1, "lost": 1}))

    def test_a_request_kept_after_execute_can_still_be_answered(self):
        self.send("self.kept.append(requests[0])")
        self.assertEqual(self.server.answer()[1]["r"], [{"w": 1}])
        self.send("self.kept.pop().get_response_sender().send(pb.InferenceResponse(), 1)\nrequests[0].get_response_sender().send(flags=1)")
        self.assertEqual([header.get("lost") for _, header in self.answers(3)], [None] * 3)

    def test_cancellation_reaches_request_and_sender_without_a_round_trip(self):
        number = self.send("self.kept.append(requests[0]); self.kept.append(requests[0].get_response_sender())")
        self.assertEqual(self.server.answer()[1]["r"], [{"w": 1}])
        self.server.tell(CANCEL, {"x": number, "q": 0})
        self.send(
            """
s, r = self.kept.pop(), self.kept.pop()
while not s.is_cancelled(): pass
assert r.is_cancelled() and not requests[0].is_cancelled()
s.send(flags=1)
requests[0].get_response_sender().send(flags=1)
"""
        )
        self.assertEqual([kind for kind, _ in self.answers(3)], [RESPONSE, RESPONSE, RETURNED])

    def test_a_request_cancelled_before_it_is_read_arrives_cancelled(self):
        self.server.tell(CANCEL, {"x": self.server.number + 1, "q": 0})
        # The reply shows that the control thread has seen the cancellation.
        self.server.tell(11, {"n": 1})
        self.server.wait(31)
        self.send("assert requests[0].is_cancelled()\nrequests[0].get_response_sender().send(flags=1)")
        self.assertEqual([kind for kind, _ in self.answers(2)], [RESPONSE, RETURNED])

    def test_a_rescheduled_request_is_told_so(self):
        self.send("requests[0].set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)")
        self.assertEqual(self.server.answer()[1]["r"], [{"re": 1}])


ASYNC = """
import asyncio
import numpy as np
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        self.gate = None
    async def execute(self, requests):
        word = requests[0].inputs()[0].as_numpy()[0]
        if word == b"raise":
            raise ValueError("wait_secs cannot be negative")
        if self.gate is None:
            self.gate = asyncio.Event()
        if word == b"long":
            await self.gate.wait()
        else:
            self.gate.set()
        requests[0].get_response_sender().send(pb.InferenceResponse(parameters={"word": word.decode()}), 1)
"""


class AsyncDecoupled(unittest.TestCase):
    def test_a_short_execution_overtakes_a_long_one(self):
        with FakeServer(ASYNC, decoupled=True) as server:
            server.send_execute({"inputs": {"IN": [b"long"]}})
            self.assertEqual(server.answer()[1]["r"], [{"w": 1}])
            server.send_execute({"inputs": {"IN": [b"short"]}})
            words = [header["p"] for kind, header in (server.answer() for _ in range(3)) if kind == RESPONSE]
            self.assertEqual(words, ['{"word": "short"}', '{"word": "long"}'])
            server.stop()

    def test_an_exception_is_logged_and_ends_the_request(self):
        with FakeServer(ASYNC, decoupled=True) as server:
            server.send_execute({"inputs": {"IN": [b"raise"]}})
            self.assertEqual(server.answer()[1]["r"], [{"w": 1}])
            header = server.answer()[1]
            self.assertEqual((header["final"], header["k"]), (1, 1))
            self.assertIn("ValueError: wait_secs cannot be negative", header["e"])
            server.stop()
            self.assertEqual(server.logs[0][0], 2)
            self.assertIn("ValueError: wait_secs cannot be negative", server.logs[0][1])


if __name__ == "__main__":
    unittest.main()
