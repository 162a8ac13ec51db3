"""Plain functions as models, over the real sockets."""

import unittest

import numpy as np
from fake_server import CANCEL, RESPONSE, RETURNED, FakeServer


def field(name, datatype="FP32", dims=(), **rest):
    return {"name": name, "datatype": datatype, "dims": list(dims), **rest}


def serve(code, inputs=(), outputs=(), max_batch_size=0, function="infer", **rest):
    signature = {"inputs": list(inputs), "outputs": list(outputs), "max_batch_size": max_batch_size}
    return FakeServer(code, mode="function", function=function, signature=signature, **rest)


class Call(unittest.TestCase):
    def call(self, server, rows=None, **inputs):
        number = server.send_function(rows, **inputs)
        kind, header = server.answer()
        self.assertEqual((kind, header["x"]), (RETURNED, number))
        return header


class Functions(Call):
    def test_arrays_of_joined_requests_go_through_one_call(self):
        code = "def infer(x, y):\n    return {'sum': x + y, 'product': x * y}\n"
        fields = [field("x", dims=[2]), field("Y", dims=[2])]
        with serve(code, fields, [field("sum", dims=[2]), field("product", dims=[2])], 8) as server:
            self.assertEqual(server.started["mode"], "sync")
            x = np.arange(6, dtype=np.float32).reshape(3, 2)
            header = self.call(server, [1, 2], x=x, Y=x + 1)
            self.assertEqual(header["j"], 1)
            np.testing.assert_array_equal(header["outputs"]["sum"], 2 * x + 1)
            np.testing.assert_array_equal(header["outputs"]["product"], x * (x + 1))

    def test_results_may_be_an_array_a_tuple_a_list_or_plain_values(self):
        one, two = [field("a", "INT64", [-1])], [field("a", "INT64", [-1]), field("b", "FP32", [])]
        for code, outputs, expected in (
            ("return np.array([1, 2])", one, {"a": [1, 2]}),
            ("return [1, 2]", one, {"a": [1, 2]}),
            ("return (np.array([1, 2]),)", one, {"a": [1, 2]}),
            ("return {'a': (3, 4)}", one, {"a": [3, 4]}),
            ("return [1], 2.5", two, {"a": [1], "b": 2.5}),
            ("return [np.array([1]), np.float32(2.5)]", two, {"a": [1], "b": 2.5}),
        ):
            with self.subTest(code), serve(f"import numpy as np\ndef infer():\n    {code}\n", [], outputs) as server:
                header = self.call(server)
                self.assertEqual({name: value.tolist() for name, value in header["outputs"].items()}, expected)

    def test_text_arrives_as_str_and_other_bytes_as_bytes(self):
        code = """
def infer(text, data):
    assert text.dtype == data.dtype == object and type(text[0]) is str and type(data[0]) is bytes
    return [t.upper() for t in text], [d + b'!' for d in data]
"""
        inputs = [field("text", "BYTES", [-1], encoding="utf8"), field("data", "BYTES", [-1], encoding="bytes")]
        with serve(code, inputs, [field("a", "BYTES", [-1], encoding="utf8"), field("b", "BYTES", [-1])]) as server:
            header = self.call(server, text=["\u00fc".encode()], data=[b"\xff"])
            self.assertEqual(header["outputs"], {"a": ["\u00dc".encode()], "b": [b"\xff!"]})
            header = self.call(server, text=[b"\xff"], data=[b""])
            self.assertIn("input 'text' is not valid UTF-8", header["e"])
            self.assertEqual(header["k"], 3)

    def test_optional_inputs_keep_their_defaults(self):
        code = "def infer(x, scale=2):\n    return x * scale\n"
        inputs = [field("x", "INT64", [-1]), field("scale", "INT64", [1], optional=True)]
        with serve(code, inputs, [field("y", "INT64", [-1])]) as server:
            self.assertEqual(self.call(server, x=np.array([3]))["outputs"]["y"].tolist(), [6])
            header = self.call(server, x=np.array([3]), scale=np.array([5]))
            self.assertEqual(header["outputs"]["y"].tolist(), [15])

    def test_keyword_parameters_take_the_rest(self):
        code = "def infer(x, /, **inputs):\n    return x + sum(inputs.values())\n"
        inputs = [field(name, "INT64", [1]) for name in ("x", "y", "a-b")]
        with serve(code, inputs, [field("y", "INT64", [1])]) as server:
            one = np.array([1])
            self.assertEqual(self.call(server, x=one, y=one, **{"a-b": one})["outputs"]["y"].tolist(), [3])

    def test_async_functions_are_waited_for(self):
        with serve("async def infer():\n    return 1.5\n", [], [field("y")]) as server:
            self.assertEqual(server.started["mode"], "async")
            self.assertEqual(float(self.call(server)["outputs"]["y"]), 1.5)

    def test_async_functions_run_side_by_side_where_allowed(self):
        code = """
import asyncio
gate = None
async def infer(x):
    global gate
    if gate is None:
        gate = asyncio.get_running_loop().create_future()
        await gate
    else:
        gate.set_result(None)
    return x
"""
        with serve(code, [field("x", "INT64", [1])], [field("y", "INT64", [1])], concurrency=2) as server:
            for value in (1, 2):
                server.send_function(x=np.array([value]))
            self.assertEqual({int(server.answer()[1]["outputs"]["y"][0]) for _ in range(2)}, {1, 2})

    def test_objects_with_call_and_partials_are_functions(self):
        code = "import functools\ndef add(x, n):\n    return x + n\ninfer = functools.partial(add, n=2)\n"
        with serve(code, [field("x", "INT64", [1])], [field("y", "INT64", [1])]) as server:
            self.assertEqual(self.call(server, x=np.array([1]))["outputs"]["y"].tolist(), [3])

    def test_exceptions_are_told_like_those_of_models(self):
        with serve("def infer():\n    raise ValueError('bad')\n") as server:
            self.assertRegex(self.call(server)["e"], r"\AValueError: bad\n\nAt:\n  .*model\.py\(2\): infer\n\Z")

    def test_a_request_error_carries_its_code_and_plain_text(self):
        code = "from nereid_model import RequestError, ErrorCode\ndef infer():\n    raise RequestError('too long', ErrorCode.INVALID_ARG)\n"
        with serve(code) as server:
            header = self.call(server)
            self.assertEqual((header["e"], header["k"]), ("too long", 3))


class Errors(Call):
    def load_error(self, code, *inputs):
        with serve(code, inputs) as server:
            return server.started["e"]

    def test_wrong_parameters_are_named_at_load(self):
        x = field("x")
        for code, inputs, text in (
            ("", (), "has no function 'infer'."),
            ("infer = 5", (), "'infer' in '"),
            ("def infer(y): pass", (x,), "The function 'infer' has no parameter for input 'x'; its parameters are y."),
            ("def infer(x, y): pass", (x,), "The parameter 'y' of the function 'infer' matches no input; the inputs are x."),
            ("def infer(*x): pass", (x,), "The function 'infer' must name its parameters; it has *args."),
            (
                "def infer(x): pass",
                (field("x", optional=True),),
                "The parameter 'x' of the function 'infer' needs a default, because the input 'x' is optional.",
            ),
        ):
            with self.subTest(code):
                self.assertIn(text, self.load_error(code, *inputs))

    def test_wrong_outputs_are_told_with_what_came_and_what_was_expected(self):
        two = [field("a", dims=[2]), field("b", dims=[])]
        one = [field("a", dims=[2])]
        text = [field("a", "BYTES", [1])]
        for code, outputs, expected in (
            ("np.zeros(2)", one, "output 'a' must be FP32 [2]; the function returned FP64 [2]"),
            ("np.zeros(3, 'f4')", one, "output 'a' must be FP32 [2]; the function returned FP32 [3]"),
            ("np.int32(1)", one, "output 'a' must be FP32 [2]; the function returned INT32 []"),
            ("[1, 2, 3]", one, "output 'a' must be FP32 [2]; the function returned a list of shape [3]"),
            ("'text'", one, "output 'a' cannot be converted to FP32: could not convert string to float"),
            ("None", one, "the function must return 1 output, a; it returned None"),
            ("np.zeros(2, 'f4')", two, "the function must return 2 outputs, a, b; it returned FP32 [2]"),
            ("(1,)", two, "the function must return 2 outputs, a, b; it returned a tuple of 1"),
            ("{'a': 1, 'c': 2}", two, "the function must return 2 outputs, a, b; it returned a dict without b and with the unknown c"),
            ("[5]", text, "output 'a' must hold str or bytes, found int"),
            ("np.zeros(1)", text, "output 'a' must be BYTES [1]; the function returned FP64 [1]"),
        ):
            with self.subTest(code), serve(f"import numpy as np\ndef infer():\n    return {code}\n", [], outputs) as server:
                self.assertIn(expected, self.call(server)["e"])

    def test_a_batch_must_come_back_with_as_many_rows(self):
        with serve("def infer(x):\n    return x[:1]\n", [field("x", "INT64", [1])], [field("y", "INT64", [1])], 8) as server:
            header = self.call(server, [2, 1], x=np.zeros((3, 1), np.int64))
            self.assertEqual(header["e"], "output 'y' must have 3 rows, as many as the inputs; it has 1")


class Streams(Call):
    OUT = [field("y", "INT64", [])]

    def test_generators_send_one_response_for_each_item(self):
        for kind, mode in (("def", "generator"), ("async def", "async-generator")):
            code = f"{kind} infer(n):\n    for i in range(int(n)):\n        yield i\n"
            with self.subTest(mode), serve(code, [field("n", "INT64", [])], self.OUT) as server:
                self.assertEqual(server.started["mode"], mode)
                server.send_function(n=np.array(3))
                answers = [server.answer() for _ in range(5)]
                responses = [header for code, header in answers if code == RESPONSE]
                returned = [header for code, header in answers if code == RETURNED][0]
                self.assertEqual([int(header["outputs"]["y"]) for header in responses[:3]], [0, 1, 2])
                self.assertEqual([header["final"] for header in responses], [0, 0, 0, 1])
                self.assertEqual(returned["r"], [{"d": 1}] if mode == "generator" else [{"w": 1}])
                server.stop()

    def test_an_error_in_a_generator_ends_its_stream(self):
        for kind in ("def", "async def"):
            code = f"{kind} infer():\n    yield 1\n    raise ValueError('bad')\n"
            with self.subTest(kind), serve(code, [], self.OUT) as server:
                server.send_function()
                responses = [header for code, header in (server.answer() for _ in range(3)) if code == RESPONSE]
                self.assertEqual(responses[-1]["final"], 1)
                self.assertIn("ValueError: bad", responses[-1]["e"])

    def test_a_wrong_item_ends_its_stream_with_an_explanation(self):
        with serve("def infer():\n    yield 'x'\n", [], self.OUT) as server:
            server.send_function()
            self.assertIn("output 'y' cannot be converted to INT64", server.answer()[1]["e"])

    def test_a_cancelled_generator_is_closed(self):
        for kind in ("def", "async def"):
            code = f"{kind} infer():\n    try:\n        while True:\n            yield 1\n    finally:\n        print('closed')\n"
            with self.subTest(kind), serve(code, [], self.OUT) as server:
                number = server.send_function()
                while server.answer()[0] != RESPONSE:
                    pass
                server.tell(CANCEL, {"x": number, "q": 0})
                while not server.answer()[1].get("final"):
                    pass
                self.assertEqual(server.process.stdout.readline(), b"closed\n")


if __name__ == "__main__":
    unittest.main()
