"""Calls of other models, control of models, and metrics, with a fake server that answers them."""

import unittest

import numpy as np
from fake_server import CALL, CANCEL_CALL, CONTROL_MODEL, CREDIT_CALL, METRIC, REPLY, FakeServer, pack, unpack

EVAL = """
import asyncio, gc
import numpy as np
import triton_python_backend_utils as pb
def request(model='other', **fields):
    return pb.InferenceRequest(model_name=model, inputs=[pb.Tensor('IN', np.array([1, 2]))], requested_output_names=['OUT'], **fields)
class TritonPythonModel:
    def initialize(self, args):
        self.kept = []
    def execute(self, requests):
        scope = {**globals(), "requests": requests, "self": self, "result": None}
        exec(requests[0].inputs()[0].as_numpy()[0].decode(), scope)
        result = scope["result"]
        return [pb.InferenceResponse(parameters={"out": str(result)})]
"""


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = FakeServer(EVAL, bls_threads=4)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def send(self, code):
        self.server.send_execute({"inputs": {"CODE": [code.encode()]}, "tr": '{"traceparent":"00-1"}'})

    def result(self):
        header = self.server.answer()[1]
        self.assertIn("r", header, header)
        return header["r"][0]["p"].partition(": ")[2][1:-2]

    def call(self):
        header, body = self.server.wait(CALL)
        return header, unpack(header["i"], body)[0]

    def reply(self, number, outputs=None, **fields):
        items, body = pack(outputs or {})
        self.server.tell(REPLY, {"n": number, **({"o": items} if outputs is not None else {}), **fields}, body)

    def test_a_call_carries_everything_the_request_has(self):
        self.send(
            """
r = request(request_id='id', correlation_id='seq', flags=pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, timeout=5,
            model_version=2, parameters={'k': 1}, trace=requests[0].trace(), preferred_memory=pb.PreferredMemory(pb.TRITONSERVER_MEMORY_GPU, 0))
result = r.exec().output_tensors()[0].as_numpy().tolist()
"""
        )
        header, inputs = self.call()
        self.assertEqual(inputs["IN"].tolist(), [1, 2])
        header.pop("i")
        number = header.pop("n")
        self.assertEqual(
            header,
            {
                "model": "other",
                "version": "2",
                "id": "id",
                "c": "seq",
                "f": 1,
                "to": 5,
                "p": '{"k": 1}',
                "tr": '{"traceparent":"00-1"}',
                "o": ["OUT"],
                "decoupled": False,
            },
        )
        self.reply(number, {"OUT": np.array([4.5])}, final=1)
        self.assertEqual(self.result(), "[4.5]")

    def test_an_error_is_a_response_and_not_an_exception(self):
        self.send("r = request('m').exec()\nresult = (r.has_error(), r.error().message(), int(r.error().code()), r.output_tensors())")
        self.reply(self.call()[0]["n"], e="Model m - Error when running inference: Request for unknown model: 'm' is not found", k=2)
        self.assertEqual(
            self.result(),
            "(True, \\\"Model m - Error when running inference: Request for unknown model: 'm' is not found\\\", 2, [])",
        )

    def test_async_calls_run_side_by_side(self):
        self.send(
            """
async def both():
    return await asyncio.gather(request('a').async_exec(), request('b').async_exec())
result = [int(r.output_tensors()[0].as_numpy()[0]) for r in asyncio.run(both())]
"""
        )
        calls = {header["model"]: header["n"] for header, _ in (self.call(), self.call())}
        self.reply(calls["b"], {"OUT": np.array([2])}, final=1)
        self.reply(calls["a"], {"OUT": np.array([1])}, final=1)
        self.assertEqual(self.result(), "[1, 2]")

    # P3.async.loop@local
    def test_an_async_call_needs_a_running_loop(self):
        self.send("try:\n    request().async_exec()\nexcept RuntimeError as error:\n    result = str(error)")
        self.assertEqual(self.result(), "no running event loop")

    # P3.async.cancel@local
    def test_cancelling_an_awaited_call_cancels_the_call(self):
        self.send(
            """
async def impatient():
    call = request().async_exec()
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        return 'cancelled'
result = asyncio.run(impatient())
"""
        )
        number = self.call()[0]["n"]
        self.assertEqual(self.server.wait(CANCEL_CALL)[0], {"n": number})
        self.reply(number, e="cancelled", k=7)
        self.assertEqual(self.result(), "cancelled")

    def test_a_decoupled_call_iterates_over_responses_and_the_empty_final_one_and_replays(self):
        self.send(
            """
def names(responses):
    return [len(r.output_tensors()) for r in responses]
it = request().exec(decoupled=True)
first = next(it)
rest = [r for r in iter(lambda: next(it, None), None)]
try:
    next(it)
except StopIteration:
    result = [len(first.output_tensors()), names(rest), names(it), names(it)]
"""
        )
        header, _ = self.call()
        self.assertTrue(header["decoupled"])
        for value in range(2):
            self.reply(header["n"], {"OUT": np.array([value])}, final=0)
        self.reply(header["n"], final=1, empty=1)
        self.assertEqual(self.result(), "[1, [1, 0], [1, 1, 0], [1, 1, 0]]")

    def test_a_decoupled_call_of_a_model_with_one_response_yields_one(self):
        self.send("result = len(list(request().exec(decoupled=True)))")
        self.reply(self.call()[0]["n"], {"OUT": np.array([1])}, final=1)
        self.assertEqual(self.result(), "1")

    # P3.async.decoupled@local
    def test_an_async_decoupled_call_can_be_iterated_both_ways(self):
        self.send(
            """
async def run():
    responses = await request().async_exec(decoupled=True)
    return [len(r.output_tensors()) async for r in responses], [len(r.output_tensors()) for r in responses]
result = asyncio.run(run())
"""
        )
        number = self.call()[0]["n"]
        self.reply(number, {"OUT": np.array([1])}, final=0)
        self.reply(number, {"OUT": np.array([1])}, final=1)
        self.assertEqual(self.result(), "([1, 1], [1, 1])")

    def test_cancel_of_an_iterator_cancels_until_the_call_has_ended(self):
        self.send(
            """
it = request().exec(decoupled=True)
it.cancel()
result = [r.has_error() for r in it]
it.cancel()
"""
        )
        number = self.call()[0]["n"]
        self.reply(number, {"OUT": np.array([1])}, final=0)
        self.assertEqual(self.server.wait(CANCEL_CALL)[0], {"n": number})
        self.reply(number, e="cancelled", k=7, final=1)
        self.assertEqual(self.result(), "[False, True]")

    # P3.iterator.dropped@local
    def test_an_iterator_that_is_dropped_lets_its_responses_go(self):
        self.send("request().exec(decoupled=True)\nresult = 'dropped'")
        number = self.call()[0]["n"]
        self.reply(number, {"OUT": np.array([1])}, final=0)
        self.assertEqual(self.result(), "dropped")
        # its model runs to the end.
        self.assertEqual(self.server.wait(CREDIT_CALL)[0], {"n": number, "c": 0})
        self.reply(number, {"OUT": np.array([1])}, final=1)

    def test_the_server_learns_of_read_responses_by_halves_and_not_of_replayed_ones(self):
        self.send("it = request().exec(decoupled=True)\nresult = [len(list(zip(range(count), it))) for count in (7, 8, 30)]")
        header, _ = self.call()
        self.assertEqual(header["credit"], 16)
        for _ in range(30):
            self.reply(header["n"], {"OUT": np.array([1])}, final=0)
        self.assertEqual(self.server.wait(CREDIT_CALL)[0], {"n": header["n"], "c": 8})
        self.assertEqual(self.server.wait(CREDIT_CALL)[0], {"n": header["n"], "c": 8})
        self.assertEqual(self.server.wait(CREDIT_CALL)[0], {"n": header["n"], "c": 8})
        self.reply(header["n"], final=1, empty=1)
        self.assertEqual(self.result(), "[7, 8, 30]")

    def test_a_second_call_of_the_same_model_ends_the_wait_of_the_first_one_for_its_caller(self):
        self.send("first = request('a').exec(decoupled=True)\nrequest('b').exec()\nrequest('a').exec()\nresult = len(list(first))")
        number = self.call()[0]["n"]
        self.reply(number, {"OUT": np.array([1])}, final=0)
        self.reply(self.call()[0]["n"], {"OUT": np.array([1])}, final=1)
        self.assertEqual(self.server.wait(CREDIT_CALL)[0], {"n": number, "c": 0})
        self.reply(self.call()[0]["n"], {"OUT": np.array([1])}, final=1)
        self.reply(number, {"OUT": np.array([1])}, final=1)
        self.assertEqual(self.result(), "2")

    def test_a_call_of_another_thread_ends_the_wait_of_one_that_is_not_read(self):
        self.send(
            """
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    both = list(pool.map(lambda _: request().exec(decoupled=True), range(2)))
result = [len(list(responses)) for responses in both]
"""
        )
        first, second = sorted([self.call()[0]["n"], self.call()[0]["n"]])
        for _ in range(16):
            self.reply(first, {"OUT": np.array([1])}, final=0)
        self.assertEqual(self.server.wait(CREDIT_CALL)[0], {"n": first, "c": 0})
        for number in (first, second):
            self.reply(number, {"OUT": np.array([1])}, final=1)
        self.assertIn(self.result(), ("[17, 1]", "[1, 17]"))

    def test_calls_of_other_threads_and_tasks_leave_the_wait_for_a_caller(self):
        self.send(
            """
async def both():
    first = await request().async_exec(decoupled=True)
    await asyncio.create_task(one())
    return len(list(first))
async def one():
    await request().async_exec()
result = asyncio.run(both())
"""
        )
        number = self.call()[0]["n"]
        self.reply(number, {"OUT": np.array([1])}, final=0)
        self.reply(self.call()[0]["n"], {"OUT": np.array([1])}, final=1)
        self.reply(number, {"OUT": np.array([1])}, final=1)
        self.assertEqual(self.result(), "2")

    # P6.limit@local
    def test_calls_above_the_limit_wait_for_a_reply(self):
        self.send(
            """
async def all_of_them():
    return await asyncio.gather(*(request(f'm{i}').async_exec() for i in range(6)))
result = [int(r.output_tensors()[0].as_numpy()[0]) for r in asyncio.run(all_of_them())]
"""
        )
        waiting = [self.call()[0] for _ in range(4)]
        # The answer to another question is next: no fifth call has been sent.
        self.server.tell(18, {"n": 1})
        self.server.wait(35)
        for _ in range(2):
            header = waiting.pop(0)
            self.reply(header["n"], {"OUT": np.array([int(header["model"][1:])])}, final=1)
            waiting.append(self.call()[0])
        for header in waiting:
            self.reply(header["n"], {"OUT": np.array([int(header["model"][1:])])}, final=1)
        self.assertEqual(self.result(), "[0, 1, 2, 3, 4, 5]")

    def test_outputs_of_a_call_may_be_large_bytes_or_empty_and_pass_through_unchanged(self):
        self.send(
            """
r = request().exec()
a, b, c = r.output_tensors()
r2 = pb.InferenceRequest(model_name='second', inputs=[a, b, c], requested_output_names=[]).exec()
result = (r.parameters(), a.as_numpy().nbytes, c.as_numpy().shape, b.as_numpy().tolist())
"""
        )
        outputs = {"A": np.arange(1_000_000), "B": [b"x", b""], "C": np.zeros((0, 3), np.float32)}
        self.reply(self.call()[0]["n"], outputs, p='{"q":true}', final=1)
        header, inputs = self.call()
        np.testing.assert_array_equal(inputs["A"], outputs["A"])
        self.assertEqual((inputs["B"], inputs["C"].shape), ([b"x", b""], (0, 3)))
        self.reply(header["n"], {}, final=1)
        self.assertEqual(self.result(), '(\'{\\"q\\":true}\', 8000000, (0, 3), [b\'x\', b\'\'])')

    def test_a_received_request_cannot_be_executed(self):
        self.send("try:\n    requests[0].exec()\nexcept pb.TritonModelException as error:\n    result = str(error)")
        self.assertIn("make a new one", self.result())

    def test_load_unload_and_ready_ask_the_server(self):
        self.send(
            """
pb.load_model('m', config='{}', files={'file:1/model.onnx': b'12345', 'file:2/x': b'abc'})
pb.unload_model('m', True)
result = [pb.is_model_ready('m'), pb.is_model_ready('m', '3')]
"""
        )
        header, body = self.server.wait(CONTROL_MODEL)
        number = header.pop("n")
        self.assertEqual(
            header,
            {"do": "load", "model": "m", "config": "{}", "files": [{"path": "1/model.onnx", "b": 5}, {"path": "2/x", "b": 3}]},
        )
        self.assertEqual(body, b"12345" + bytes(11) + b"abc")
        self.reply(number, ok=True)
        header = self.server.wait(CONTROL_MODEL)[0]
        self.assertEqual((header["do"], header["dependents"]), ("unload", True))
        self.reply(header["n"], ok=True)
        for version, ready in (("", True), ("3", False)):
            header = self.server.wait(CONTROL_MODEL)[0]
            self.assertEqual((header["do"], header["version"]), ("ready", version))
            self.reply(header["n"], ok=ready)
        self.assertEqual(self.result(), "[True, False]")

    def test_errors_of_model_control_have_their_prefixes(self):
        for call, prefix in (
            ("pb.load_model('x')", "Failed to load model: "),
            ("pb.unload_model('x')", "Failed to unload model: "),
            ("pb.is_model_ready('x')", "Failed to check model readiness: "),
        ):
            self.send(f"try:\n    {call}\nexcept pb.TritonModelException as error:\n    result = str(error)")
            self.reply(self.server.wait(CONTROL_MODEL)[0]["n"], e="no")
            self.assertEqual(self.result(), prefix + "no")

    def metric(self, ok=True, **expected):
        header = self.server.wait(METRIC)[0]
        for key, value in expected.items():
            self.assertEqual(header.get(key), value, header)
        self.reply(header["n"], ok=ok)
        return header

    def test_metrics_are_operations_of_the_server(self):
        self.send(
            """
F = pb.MetricFamily
family = F(name='count', description='Counts', kind=F.COUNTER)
metric = family.Metric(labels={'a': 'b'})
metric.increment(2)
gauge_family = F('g', 'G', F.GAUGE)
gauge = gauge_family.Metric()
gauge.set(float('inf'))
h = F('h', 'H', F.HISTOGRAM)
hm = h.Metric(buckets=[0.1, 1])
hm.observe(0.5)
result = metric.value()
"""
        )
        family = self.metric(do="family", name="count", description="Counts", kind="counter")["family"]
        metric = self.metric(do="metric", family=family, labels={"a": "b"})["metric"]
        self.metric(do="increment", metric=metric, value=2)
        self.metric(do="family", kind="gauge")
        self.metric(do="metric", labels={})
        self.metric(do="set", value="Infinity")
        self.metric(do="family", kind="histogram")
        self.metric(do="metric", buckets=[0.1, 1])
        self.metric(do="observe", value=0.5)
        self.metric(do="value", metric=metric, ok=7)
        self.assertEqual({self.metric()["do"] for _ in range(6)}, {"drop_metric", "drop_family"})
        self.assertEqual(self.result(), "7.0")

    def test_a_dropped_metric_and_its_family_are_released(self):
        self.send(
            """
family = pb.MetricFamily('c', 'C', pb.MetricFamily.COUNTER)
metric = family.Metric()
del metric, family
result = 1
"""
        )
        family = self.metric(do="family")["family"]
        metric = self.metric(do="metric")["metric"]
        self.metric(do="drop_metric", metric=metric)
        self.metric(do="drop_family", family=family)
        self.assertEqual(self.result(), "1")

    def test_misuse_of_metrics_is_explained(self):
        cases = (
            ("F('h', 'H', F.HISTOGRAM).Metric()", "Failed to create metric. Missing required buckets."),
            ("F('c', 'C', F.COUNTER).Metric(buckets=[1])", "Failed to create metric. Unexpected buckets found."),
            ("F('h', 'H', F.HISTOGRAM).Metric(buckets=[2, 1])", "Failed to create metric. Buckets must be strictly"),
        )
        for code, text in cases:
            self.send(f"F = pb.MetricFamily\ntry:\n    {code}\nexcept pb.TritonModelException as error:\n    result = str(error)")
            self.metric(do="family")
            self.metric(do="drop_family")
            self.assertIn(text, self.result())

    def test_a_metric_without_its_family_is_an_error(self):
        self.send(
            """
metric = pb.MetricFamily('c', 'C', pb.MetricFamily.COUNTER).Metric()
try:
    metric.increment(1)
except pb.TritonModelException as error:
    result = str(error)
"""
        )
        self.metric(do="family")
        self.metric(do="metric")
        self.metric(do="drop_family")
        self.metric(do="drop_metric")
        self.assertIn("Invalid metric operation as the corresponding 'MetricFamily' has been deleted.", self.result())

    def test_errors_of_metrics_have_their_prefixes(self):
        for operation in ("increment", "set", "observe"):
            self.send(
                f"""
family = pb.MetricFamily('c', 'C', pb.MetricFamily.COUNTER)
metric = family.Metric()
try:
    metric.{operation}(-1)
except pb.TritonModelException as error:
    result = str(error)
"""
            )
            self.metric(do="family")
            self.metric(do="metric")
            self.reply(self.server.wait(METRIC)[0]["n"], e="no")
            self.assertEqual({self.metric()["do"] for _ in range(2)}, {"drop_metric", "drop_family"})
            self.assertEqual(self.result(), f"Failed to {operation} metric value: no")

    def test_a_family_of_another_kind_is_refused_with_its_prefix(self):
        self.send("try:\n    pb.MetricFamily('c', 'C', pb.MetricFamily.GAUGE)\nexcept pb.TritonModelException as error:\n    result = str(error)")
        self.reply(self.server.wait(METRIC)[0]["n"], e="other kind")
        self.assertEqual(self.result(), "Error when creating MetricFamily: other kind")


class Phases(unittest.TestCase):
    CALL = "pb.InferenceRequest(model_name='m', inputs=[], requested_output_names=[]).exec()"

    def test_calls_in_initialize_fail_the_load(self):
        code = f"import triton_python_backend_utils as pb\nclass TritonPythonModel:\n    def initialize(self, args):\n        {self.CALL}\n"
        with FakeServer(code) as server:
            self.assertIn("BLS is only supported during the 'execute' function.", server.started["e"])

    def test_calls_in_finalize_are_an_error(self):
        code = f"import triton_python_backend_utils as pb\nclass TritonPythonModel:\n    def finalize(self):\n        {self.CALL}\n"
        with FakeServer(code) as server:
            self.assertIn("BLS is only supported during the 'execute' function.", server.stop()["e"])

    # P3.control.phases@local
    def test_loading_in_initialize_is_allowed_and_in_finalize_not(self):
        code = """
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        pb.load_model("m")
    def finalize(self):
        pb.load_model("m")
"""
        with FakeServer(code, start=False) as server:
            import threading

            box = []
            thread = threading.Thread(target=lambda: box.append(server.start()))
            original = server.wait

            def wait(kind):
                if kind == 30:
                    number = original(CONTROL_MODEL)[0]["n"]
                    server.tell(REPLY, {"n": number, "ok": True})
                return original(kind)

            server.wait = wait
            thread.start()
            thread.join(20)
            self.assertEqual(box[0].get("ok"), 1)
            self.assertIn("Failed to load model: ", server.stop()["e"])


if __name__ == "__main__":
    unittest.main()
