"""What a request may say besides its tensors: id, version, outputs, parameters, priority, timeout, sequence, headers."""

import importlib

import numpy as np
from cases import Case, every_client, grpc_clients, http_clients, post
from tritonclient.grpc import service_pb2

LEFT = np.arange(16, dtype=np.int32).reshape(1, 16)
RIGHT = np.full((1, 16), 3, np.int32)


@every_client
class Requests(Case):
    async def simple(self, **options):
        return await self.infer("simple", [self.input("INPUT0", LEFT), self.input("INPUT1", RIGHT)], **options)

    def assert_answered(self, result):
        self.assert_same(result.as_numpy("OUTPUT0"), LEFT + RIGHT)
        self.assert_same(result.as_numpy("OUTPUT1"), LEFT - RIGHT)

    async def test_all_outputs_where_none_is_named(self):
        self.assert_answered(await self.simple())

    async def test_the_outputs_that_are_named(self):
        result = await self.simple(outputs=[self.output("OUTPUT1")])
        self.assert_same(result.as_numpy("OUTPUT1"), LEFT - RIGHT)
        self.assertIsNone(result.as_numpy("OUTPUT0"))

    async def test_the_id_comes_back(self):
        response = (await self.simple(request_id="id 1 – ü")).get_response()
        self.assertEqual(response["id"] if self.protocol == "http" else response.id, "id 1 – ü")

    async def test_no_id_comes_back_where_none_was_given(self):
        response = (await self.simple()).get_response()
        self.assertEqual(response.get("id", "") if self.protocol == "http" else response.id, "")

    async def test_the_version_that_is_asked_for(self):
        response = (await self.simple(model_version="1")).get_response()
        version = response["model_version"] if self.protocol == "http" else response.model_version
        self.assertEqual(version, "1")

    async def test_priority_and_timeout_are_taken(self):
        self.assert_answered(await self.simple(priority=1, timeout=60_000_000))

    async def test_sequences_are_taken(self):
        self.assert_answered(await self.simple(sequence_id=7, sequence_start=True, sequence_end=True))
        self.assert_answered(await self.simple(sequence_id="seven", sequence_start=True))

    async def test_headers_are_taken(self):
        self.assert_answered(await self.simple(headers={"x-request-source": "a test"}))

    async def test_queries_of_the_url_are_taken(self):
        if self.protocol == "http":
            self.assert_answered(await self.simple(query_params={"a": "b c", "d": [1, 2]}))
            self.assertIs(await self.call("is_model_ready", "simple", query_params={"a": "/"}), True)

    async def test_an_optional_input(self):
        text = np.array([b"a"], dtype=np.object_)
        result = await self.infer("optional", [self.input("TEXT", text)])
        self.assert_same(result.as_numpy("TEXT"), text)
        result = await self.infer("optional", [self.input("TEXT", text), self.input("SUFFIX", text)])
        self.assert_same(result.as_numpy("TEXT"), np.array([b"aa"], dtype=np.object_))

    async def test_onnx_models(self):
        images = np.zeros((3, 1, 28, 28), np.float32)
        logits = (await self.infer("digits", [self.input("image", images)])).as_numpy("logits")
        self.assertEqual((logits.shape, logits.dtype), ((3, 10), np.float32))
        np.testing.assert_array_equal(logits[0], logits[2])


class Repeated(Case):
    async def repeated(self, **options):
        """The parameters of a request as its model has seen them."""
        result = await self.infer("repeating", [self.input("X", np.zeros(1, np.int32))], **options)
        response = result.get_response()
        if self.protocol == "http":
            return response.get("parameters", {})
        return {name: getattr(it, it.WhichOneof("parameter_choice")) for name, it in response.parameters.items()}


@every_client
class Parameters(Repeated):
    async def test_they_reach_the_model_and_come_back_from_it(self):
        parameters = {"a": "text ü", "b": True, "c": -(2**40), "d": 0.5, "e": False, "f": ""}
        answered = await self.repeated(parameters=parameters)
        # What the client adds for itself is not looked at.
        answered = {name: value for name, value in answered.items() if name in parameters}
        self.assertEqual(answered, parameters)
        self.assertEqual([type(answered[name]) for name in parameters], [type(value) for value in parameters.values()])

    async def test_headers_are_none_by_default(self):
        self.assertNotIn("x-forwarded-user", await self.repeated(headers={"x-forwarded-user": "a user"}))


@every_client
class ForwardedHeaders(Repeated):
    server = "open"

    async def test_headers_that_match_are_parameters(self):
        answered = await self.repeated(headers={"x-forwarded-user": "a user", "x-other": "nobody"})
        self.assertEqual((answered["x-forwarded-user"], "x-other" in answered), ("a user", False))

    async def test_what_a_plugin_of_the_client_adds(self):
        auth = importlib.import_module(self.module.__name__ + ".auth")
        self.client.register_plugin(auth.BasicAuth("user", "password"))
        self.assertEqual((await self.repeated())["authorization"], "Basic dXNlcjpwYXNzd29yZA==")


@every_client
class Classification(Case):
    async def classes(self, output, class_count, **options):
        scores = np.array([[0.25, 3, -1], [0, 0.5, 8]], np.float32)
        asked = self.output(output, class_count=class_count, **options)
        return (await self.infer("scores", [self.input("X", scores)], outputs=[asked])).as_numpy(output)

    async def test_the_highest_of_each_row(self):
        expected = np.array([[b"3.000000:1", b"0.250000:0"], [b"8.000000:2", b"0.500000:1"]], dtype=np.object_)
        self.assert_same(await self.classes("SCORE", 2), expected)
        if self.protocol == "http":
            self.assertEqual((await self.classes("SCORE", 1, binary=False)).tolist(), [["3.000000:1"], ["8.000000:2"]])

    async def test_no_more_than_there_are(self):
        self.assertEqual((await self.classes("SCORE", 100)).shape, (2, 3))

    async def test_labels(self):
        self.assert_same(await self.classes("CLASS", 1), np.array([[b"1:0:dog"], [b"1:0:dog"]], dtype=np.object_))


@grpc_clients
class TypedContents(Case):
    """The client sends raw contents only; its stub sends the other form that the protocol has."""

    async def test_contents_of_a_datatype(self):
        request = service_pb2.ModelInferRequest(model_name="simple")
        for name, tensor in [("INPUT0", LEFT), ("INPUT1", RIGHT)]:
            request.inputs.add(
                name=name,
                datatype="INT32",
                shape=tensor.shape,
                contents=service_pb2.InferTensorContents(int_contents=tensor.flatten().tolist()),
            )
        response = await self.settled(self.client._client_stub.ModelInfer(request))
        self.assertEqual(response.raw_output_contents[0], (LEFT + RIGHT).tobytes())


@http_clients
class Bodies(Case):
    """Bodies that the client writes and reads, for those who send them by other means."""

    async def test_a_body_of_the_client_and_its_answer(self):
        inputs = [self.input("INPUT0", LEFT, binary=False), self.input("INPUT1", RIGHT)]
        body, length = self.client.generate_request_body(inputs)
        headers = {"Inference-Header-Content-Length": str(length)}
        with post("/v2/models/simple/infer", body, headers) as response:
            length = int(response.headers["Inference-Header-Content-Length"])
            result = self.client.parse_response_body(response.read(), header_length=length)
        self.assert_same(result.as_numpy("OUTPUT0"), LEFT + RIGHT)
