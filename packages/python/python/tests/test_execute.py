"""Execution in default mode, over the real sockets."""

import unittest

import numpy as np
from fake_server import RESPONSE, RETURNED, FakeServer

IDENTITY = """
import triton_python_backend_utils as pb
class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", pb.get_input_tensor_by_name(r, "IN").as_numpy())]) for r in requests]
"""

# Runs the Python source of the input CODE for all requests and returns its `result`.
EVAL = """
import numpy as np
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        self.kept = []
    def execute(self, requests):
        scope = {"requests": requests, "self": self, "pb": pb, "np": np, "result": None}
        exec(requests[0].inputs()[0].as_numpy()[0].decode(), scope)
        return scope["result"]
"""

OUT = [{"name": "OUT", "datatype": "INT64", "dims": [-1]}, {"name": "OTHER", "datatype": "INT64", "dims": [-1]}]


def run(server: FakeServer, code: str, count: int = 1, **fields):
    return server.execute(*({"inputs": {"CODE": [code.encode()]}, **fields} for _ in range(count)))


class Execution(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = FakeServer(EVAL, signature={"inputs": [], "outputs": OUT, "max_batch_size": 0})

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def failure(self, code, count=1):
        return run(self.server, code, count)["e"]

    def test_each_request_of_a_batch_gets_its_own_response(self):
        header = run(
            self.server,
            "result = [pb.InferenceResponse([pb.Tensor('OUT', np.array([i]))]) for i in range(len(requests))]",
            3,
        )
        self.assertEqual([int(part["outputs"]["OUT"][0]) for part in header["r"]], [0, 1, 2])

    def test_one_failed_request_leaves_the_others_alone(self):
        code = """
result = [pb.InferenceResponse([pb.Tensor('OUT', np.array([1]))]) for _ in requests]
result[1] = pb.InferenceResponse([pb.Tensor('OUT', np.array([1]))], pb.TritonError('no', pb.TritonError.NOT_FOUND))
"""
        parts = run(self.server, code, 3)["r"]
        self.assertEqual(parts[1], {"e": "no", "k": 2})
        self.assertEqual([int(parts[0]["outputs"]["OUT"][0]), int(parts[2]["outputs"]["OUT"][0])], [1, 1])

    def test_an_error_without_a_code_is_internal(self):
        parts = run(self.server, "result = [pb.InferenceResponse(error=pb.TritonError('x'))]")["r"]
        self.assertEqual(parts, [{"e": "x", "k": 1}])

    def test_outputs_that_were_not_requested_are_dropped(self):
        code = "result = [pb.InferenceResponse([pb.Tensor(n, np.array([1])) for n in ('OUT', 'OTHER', 'MORE')])]"
        self.assertEqual(list(run(self.server, code, o=["OTHER"])["r"][0]["outputs"]), ["OTHER"])

    def test_no_requested_outputs_mean_all_configured_ones(self):
        code = """
assert requests[0].requested_output_names() == {'OUT', 'OTHER'}
result = [pb.InferenceResponse([pb.Tensor(n, np.array([1])) for n in ('OUT', 'OTHER', 'MORE')])]
"""
        self.assertEqual(list(run(self.server, code)["r"][0]["outputs"]), ["OUT", "OTHER"])

    def test_requests_tell_id_correlation_flags_timeout_parameters_and_trace(self):
        code = """
r = requests[0]
assert r.request_id() == 'abc' and r.correlation_id() == 'seq' and r.flags() == 3 and r.timeout() == 5
assert r.parameters() == '{"a":1.5}' and r.trace().get_context() == '{"traceparent":"00"}'
r.set_flags(1)
assert r.flags() == 1
result = [pb.InferenceResponse(parameters={'b': True, 'n': 3, 's': 'x'})]
"""
        header = run(self.server, code, id="abc", c="seq", f=3, to=5, p='{"a":1.5}', tr='{"traceparent":"00"}')
        self.assertEqual(header["r"][0]["p"], '{"b": true, "n": 3, "s": "x"}')

    def test_requests_have_plain_defaults(self):
        code = """
r = requests[0]
assert (r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters()) == ('', 0, 0, 0, '{}')
assert r.trace().get_context() is None and r.is_cancelled() is False
result = [pb.InferenceResponse()]
"""
        self.assertEqual(run(self.server, code)["r"], [{"o": [], "outputs": {}}])

    def test_an_exception_fails_the_batch_with_its_frames_innermost_first(self):
        text = self.failure("def deep():\n    raise ValueError('bad')\ndeep()", 2)
        self.assertRegex(
            text,
            r"\AValueError: bad\n\nAt:\n  <string>\(2\): deep\n  <string>\(3\): <module>\n  .*model\.py\(9\): execute\n\Z",
        )

    def test_the_api_raises_its_exception_by_name_and_without_its_own_frames(self):
        text = self.failure("pb.Tensor('', np.array([1]))")
        self.assertRegex(text, r"\ATritonModelException: Tensor name cannot be an empty string\.\n\nAt:\n  <string>\(1\)")
        self.assertNotIn("tensor.py", text)

    def test_a_process_exit_by_exception_fails_the_request_only(self):
        self.assertIn("SystemExit: 3", self.failure("raise SystemExit(3)"))

    def test_texts_and_headers_of_any_length_fail_the_request_only(self):
        for code in ("raise ValueError('x' * 20_000_000)", "result = [pb.InferenceResponse(error=pb.TritonError('x' * 20_000_000))]"):
            header = run(self.server, code)
            text = header["e"] if "e" in header else header["r"][0]["e"]
            self.assertIn("(cut at 262144 of 20000000 characters)", text)
        code = "result = [pb.InferenceResponse(parameters={'x': 'x' * 20_000_000})]"
        self.assertIn("is longer than the limit of 16777216", self.failure(code))

    def test_numbers_of_numpy_are_numbers(self):
        code = """
pb.InferenceRequest(model_name='m', inputs=[], requested_output_names=[], flags=np.int64(1), timeout=np.uint8(5))
requests[0].set_release_flags(np.int32(1))
s = requests[0].get_response_sender()
s.send(pb.InferenceResponse([]), np.int64(0))
result = None
"""
        self.server.send_execute({"inputs": {"CODE": [code.encode()]}})
        self.assertEqual(self.server.answer()[1]["final"], 0)
        self.assertEqual(self.server.answer()[1]["r"], [{"w": 1}])
        self.assertEqual(self.server.answer()[1].get("final"), 1)

    def test_wrong_returns_are_explained(self):
        for code, text in (
            ("result = 5", "Expected a list in the execute return, found type '<class 'int'>'."),
            (
                "result = []",
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                "InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0\n",
            ),
            (
                "result = ['x']",
                "Expected an 'InferenceResponse' object in the execute function return list, found type "
                "'<class 'str'>'.",
            ),
            (
                "requests[0].set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)\n"
                "result = [pb.InferenceResponse()]",
                "Expected a None object in the execute function return list for reschduled request, found type '<class "
                "'nereid_model.response.InferenceResponse'>'.",
            ),
        ):
            with self.subTest(code):
                self.assertEqual(self.failure(code), text)

    def test_no_response_and_no_sender_is_an_error_instead_of_a_hang(self):
        for code in ("result = None", "result = [None]"):
            part = run(self.server, code)["r"][0]
            self.assertEqual(part, {"e": "The model returned no response for the request and has sent none.", "k": 1})

    def test_a_rescheduled_request_is_told_so(self):
        code = "requests[0].set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)\nresult = [None]"
        self.assertEqual(run(self.server, code)["r"], [{"re": 1}])

    # P2.reschedule.flags@local
    def test_unknown_release_flags_are_refused(self):
        self.assertIn("Unsupported flag provided", self.failure("requests[0].set_release_flags(7)"))

    def test_a_sender_may_answer_before_execute_returns(self):
        code = """
s = requests[0].get_response_sender()
s.send(pb.InferenceResponse([pb.Tensor('OUT', np.array([4]))]), pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
        self.server.send_execute({"inputs": {"CODE": [code.encode()]}})
        kind, header = self.server.answer()
        self.assertEqual((kind, header["q"], header["final"], int(header["outputs"]["OUT"][0])), (RESPONSE, 0, 1, 4))
        self.assertEqual(self.server.answer()[1]["r"], [{"d": 1}])

    def test_a_sender_may_answer_after_execute_returned(self):
        run_later = "self.kept.append(requests[0].get_response_sender())"
        self.assertEqual(run(self.server, run_later)["r"], [{"w": 1}])
        self.server.send_execute(
            {"inputs": {"CODE": [b"s = self.kept.pop(); s.send(pb.InferenceResponse()); s.send(flags=1); result = [pb.InferenceResponse()]"]}}
        )
        answers = [self.server.answer() for _ in range(3)]
        self.assertEqual([kind for kind, _ in answers], [RESPONSE, RESPONSE, RETURNED])
        self.assertEqual([header.get("final") for _, header in answers[:2]], [0, 1])

    def test_a_sender_dropped_without_a_response_fails_its_request(self):
        self.assertEqual(run(self.server, "requests[0].get_response_sender()")["r"], [{"w": 1}])
        kind, header = self.server.answer()
        self.assertEqual((kind, header["final"], header["k"]), (RESPONSE, 1, 1))
        self.assertIn("has sent none", header["e"])

    def test_misuse_of_a_sender_is_explained(self):
        send = "s = requests[0].get_response_sender()\nR = pb.InferenceResponse\n"
        for code, text in (
            ("s.send(R(), 9)", "Unable to send response. Unsupported flag provided."),
            ("s.send()", "Inference Response object must be provided when the response flags is set to zero."),
            (
                "s.send(flags=1)",
                "Unable to send response. Non-decoupled model cannot send complete final before sending a response.",
            ),
        ):
            with self.subTest(code):
                self.assertIn(text, self.failure(send + code))
        for code, text in (
            ("s.send(R())\ns.send(R())", "Non-decoupled model cannot send more than one response."),
            ("s.send(R(), 1)\ns.send(R(), 1)", "Unable to send response. Response sender has been closed."),
            ("s.send(R(), 1)\nresult = [R()]", "Unable to send response. Response sender has been closed."),
        ):
            with self.subTest(code):
                self.server.send_execute({"inputs": {"CODE": [(send + code).encode()]}})
                self.assertEqual(self.server.answer()[0], RESPONSE)
                self.assertIn(text, self.server.answer()[1]["e"])

    def test_inputs_are_writable_and_private(self):
        code = "a = requests[0].inputs()[1].as_numpy(); a += 1; result = [pb.InferenceResponse([pb.Tensor('OUT', a)])]"
        header = self.server.execute({"inputs": {"CODE": [code.encode()], "X": np.arange(3)}})
        self.assertEqual(header["r"][0]["outputs"]["OUT"].tolist(), [1, 2, 3])


class DefaultMode(unittest.TestCase):
    def test_every_shape_and_datatype_passes_through(self):
        with FakeServer(IDENTITY) as server:
            for array in (
                np.arange(6, dtype=np.float32).reshape(2, 3),
                np.array(5, dtype=np.int64),
                np.zeros((0, 4), dtype=np.int32),
                np.array([[True, False]]),
                np.arange(3_000_000, dtype=np.float64),
            ):
                out = server.run(IN=array)["OUT"]
                np.testing.assert_array_equal(out, array)
                self.assertEqual((out.dtype, out.shape), (array.dtype, array.shape))
            self.assertEqual(server.run(IN=[b"", "\U0001f600".encode(), b"\0x\0"])["OUT"], [b"", "\U0001f600".encode(), b"\0x\0"])

    def test_a_model_without_execute_is_noticed_by_a_request(self):
        with FakeServer("class TritonPythonModel:\n    pass\n") as server:
            self.assertEqual(
                server.execute({"inputs": {}})["e"],
                f"Python model {server.settings['file']} does not implement `execute` method.",
            )

    def test_an_async_execute_is_waited_for(self):
        code = IDENTITY.replace("def execute", "async def execute")
        with FakeServer(code) as server:
            self.assertEqual(server.started["mode"], "async")
            self.assertEqual(server.run(IN=np.array([3]))["OUT"].tolist(), [3])

    def test_an_async_exception_has_only_the_frames_of_the_model(self):
        code = "class TritonPythonModel:\n    async def execute(self, requests):\n        raise ValueError('late')\n"
        with FakeServer(code) as server:
            self.assertRegex(
                server.execute({"inputs": {}})["e"], r"\AValueError: late\n\nAt:\n  .*model\.py\(3\): execute\n\Z"
            )

    def test_async_executions_run_at_once_where_allowed(self):
        code = """
import asyncio
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        self.waiting = None
    async def execute(self, requests):
        if self.waiting is None:
            self.waiting = asyncio.get_running_loop().create_future()
            await self.waiting
        else:
            self.waiting.set_result(None)
        return [pb.InferenceResponse([]) for _ in requests]
"""
        with FakeServer(code, concurrency=2) as server:
            first, second = server.send_execute({"inputs": {}}), server.send_execute({"inputs": {}})
            self.assertEqual({server.answer()[1]["x"], server.answer()[1]["x"]}, {first, second})
            server.stop()


if __name__ == "__main__":
    unittest.main()
