"""What a client is told when its request is refused or fails: the protocol's status, and a text that says why."""

import json
import unittest
import urllib.error

import numpy as np
from cases import Case, every_client, post

ROW = np.zeros((1, 16), np.int32)


def bytes_tensor(*elements):
    return np.array(elements, dtype=np.object_)


@every_client
class Failures(Case):
    async def refused(self, kind, inputs, model="simple", **options):
        """The text of a request's failure; the server still answers the next."""
        text = await self.failure(kind, self.infer(model, inputs, **options))
        await self.infer("simple", [self.input("INPUT0", ROW), self.input("INPUT1", ROW)])
        return text

    async def test_a_model_or_version_that_is_not_there(self):
        text = await self.refused("not found", [self.input("INPUT0", ROW)], model="absent")
        self.assertIn("Request for unknown model: 'absent' is not found", text)
        text = await self.refused("not found", [self.input("INPUT0", ROW)], model_version="99")
        self.assertIn("Request for unknown model: 'simple' version 99 is not found", text)

    async def test_a_missing_input(self):
        text = await self.refused("invalid", [self.input("INPUT0", ROW)])
        self.assertIn(
            "expected 2 inputs but got 1 inputs for model 'simple'. Got input(s) ['INPUT0'], but missing", text
        )
        self.assertIn("missing required input(s) ['INPUT1']. Please provide all required input(s).", text)

    async def test_an_input_or_output_that_is_not_there(self):
        text = await self.refused("invalid", [self.input("INPUT0", ROW), self.input("OTHER", ROW)])
        self.assertIn("unexpected inference input 'OTHER' for model 'simple'", text)
        inputs = [self.input("INPUT0", ROW), self.input("INPUT1", ROW)]
        text = await self.refused("invalid", inputs, outputs=[self.output("OTHER")])
        self.assertIn("unexpected inference output 'OTHER' for model 'simple'", text)

    async def test_another_datatype(self):
        inputs = [self.input("INPUT0", ROW.astype(np.float32)), self.input("INPUT1", ROW)]
        text = await self.refused("invalid", inputs)
        self.assertIn("inference input 'INPUT0' data-type is 'FP32', but model 'simple' expects 'INT32'", text)

    async def test_another_shape(self):
        inputs = [self.input("INPUT0", np.zeros((1, 15), np.int32)), self.input("INPUT1", ROW)]
        text = await self.refused("invalid", inputs)
        self.assertIn("unexpected shape for input 'INPUT0' for model 'simple'. Expected [-1,16], got [1,15].", text)
        self.assertIn("NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension", text)

    async def test_a_batch_that_is_too_large(self):
        rows = np.zeros((9, 16), np.int32)
        text = await self.refused("invalid", [self.input("INPUT0", rows), self.input("INPUT1", rows)])
        self.assertIn("inference request batch-size must be <= 8 for 'simple'", text)

    async def test_batches_that_differ(self):
        inputs = [self.input("INPUT0", ROW), self.input("INPUT1", np.zeros((2, 16), np.int32))]
        text = await self.refused("invalid", inputs)
        self.assertIn("input 'INPUT1' batch size does not match other inputs for 'simple'", text)

    async def test_the_request_id_is_in_the_text(self):
        text = await self.refused("invalid", [self.input("INPUT0", ROW)], request_id="the first")
        self.assertIn("[request id: the first] expected 2 inputs", text)

    async def test_bytes_that_do_not_fill_the_shape(self):
        tensor = self.input("INPUT0", ROW)
        # As long as another shape, after the data was set.
        tensor.set_shape([2, 16])
        text = await self.refused("invalid", [tensor, self.input("INPUT1", np.zeros((2, 16), np.int32))])
        self.assertIn("input byte size mismatch for input 'INPUT0' for model 'simple'. Expected 128, got 64", text)

    async def test_a_model_that_fails(self):
        text = await self.refused(
            "failed", [self.input("TEXT", bytes_tensor(b"100 % \xe2\x80\x93 na\xc3\xafve"))], "failing"
        )
        self.assertIn("100 % – naïve", text)

    async def test_a_model_that_is_full(self):
        text = await self.refused("unavailable", [self.input("TEXT", bytes_tensor(b"full"))], "failing")
        self.assertIn("Exceeds maximum queue size", text)

    async def test_text_that_is_no_text(self):
        text = await self.refused("invalid", [self.input("TEXT", bytes_tensor(b"\xff"))], "optional")
        self.assertIn("TEXT", text)

    async def test_classes_of_what_has_none(self):
        tensors = {"TEXT": bytes_tensor(b"a")}
        inputs = [self.input(name, tensor) for name, tensor in tensors.items()]
        text = await self.refused("invalid", inputs, "optional", outputs=[self.output("TEXT", class_count=1)])
        self.assertIn("class result not available for output due to unsupported type 'BYTES'", text)


class MalformedRequests(unittest.TestCase):
    def test_json_that_is_none(self):
        with self.assertRaises(urllib.error.HTTPError) as raised:
            post("/v2/models/simple/infer", b'{"inputs":[')
        with raised.exception as response:
            self.assertEqual(response.code, 400)
            self.assertIn("failed to parse the request JSON buffer", json.load(response)["error"])
