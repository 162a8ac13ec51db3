"""Every datatype there and back, with its extremes: binary, and as JSON where there is JSON for it."""

import ml_dtypes
import numpy as np
from cases import Case, every_client, http_clients
from tritonclient.utils import triton_to_np_dtype

INTEGERS = ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"]
FLOATS = ["FP16", "FP32", "FP64"]
NO_JSON = ["FP16", "BF16"]

TENSORS = {
    "BOOL": np.array([True, False, True]),
    "BYTES": np.array([b"", b"text", "größer".encode(), b"NUL \0 within", b"x" * 1000], dtype=np.object_),
    "BF16": np.array([0, -0.0, 1.5, -3.25, np.inf, 3e38], dtype=ml_dtypes.bfloat16),
}
for name in INTEGERS:
    limits = np.iinfo(triton_to_np_dtype(name))
    TENSORS[name] = np.array([limits.min, 0, 1, limits.max], triton_to_np_dtype(name))
for name in FLOATS:
    limits = np.finfo(triton_to_np_dtype(name))
    values = [limits.min, -0.0, 0.1, limits.tiny, limits.smallest_subnormal, limits.max, np.inf, -np.inf, np.nan]
    TENSORS[name] = np.array(values, triton_to_np_dtype(name))


@every_client
class Datatypes(Case):
    async def echoed(self, tensors, binary, outputs=None):
        inputs = [self.input(name, tensor, binary(name)) for name, tensor in tensors.items()]
        result = await self.infer("every_datatype", inputs, outputs=outputs)
        return {name: result.as_numpy(name) for name in TENSORS}

    async def test_binary(self):
        for name, tensor in (await self.echoed(TENSORS, lambda name: True)).items():
            with self.subTest(name):
                self.assert_same(tensor, TENSORS[name])

    async def test_no_elements(self):
        empty = {name: tensor[:0] for name, tensor in TENSORS.items()}
        for name, tensor in (await self.echoed(empty, lambda name: True)).items():
            with self.subTest(name):
                self.assert_same(tensor, empty[name])

    async def test_bytes_that_are_no_text(self):
        tensors = TENSORS | {"BYTES": np.array([b"\xff\xfe\x80", b"\xc3"], dtype=np.object_)}
        self.assert_same((await self.echoed(tensors, lambda name: True))["BYTES"], tensors["BYTES"])


@http_clients
class Json(Case):
    async def echoed(self, tensors, binary_in, binary_out):
        inputs = [self.input(name, tensor, binary_in(name)) for name, tensor in tensors.items()]
        outputs = [self.output(name, binary_out(name)) for name in tensors]
        return await self.infer("every_datatype", inputs, outputs=outputs)

    async def test_json_both_ways_in_all_mixtures(self):
        names = list(TENSORS)
        mixtures = {
            "in": (lambda name: name in NO_JSON, lambda name: True),
            "out": (lambda name: True, lambda name: name in NO_JSON),
            "both": (lambda name: name in NO_JSON, lambda name: name in NO_JSON),
            "every other": (
                lambda name: name in NO_JSON or names.index(name) % 2 == 0,
                lambda name: name in NO_JSON or names.index(name) % 2 == 1,
            ),
        }
        for mixture, (binary_in, binary_out) in mixtures.items():
            result = await self.echoed(TENSORS, binary_in, binary_out)
            for name, tensor in TENSORS.items():
                with self.subTest(mixture, name=name):
                    self.assertEqual("data" in result.get_output(name), not binary_out(name))
                    self.assert_element_by_element(result, name, tensor)

    def assert_element_by_element(self, result, name, expected):
        actual = result.as_numpy(name)
        if name == "BYTES" and "data" in result.get_output(name):
            actual = np.array([text.encode() for text in actual], dtype=np.object_)
        if name in FLOATS:
            # A NaN has no payload in JSON, all else is exact.
            self.assertEqual((actual.dtype, actual.shape), (expected.dtype, expected.shape))
            np.testing.assert_array_equal(np.signbit(actual)[:-1], np.signbit(expected)[:-1])
            np.testing.assert_array_equal(actual, expected)
        else:
            self.assert_same(actual, expected)

    async def test_half_floats_have_no_json(self):
        for name in NO_JSON:
            asked = self.echoed(TENSORS, lambda name: True, lambda other: other != name)
            text = await self.failure("invalid", asked)
            self.assertIn(f"sending {name} data via JSON is not supported", text)
        text = await self.failure("invalid", self.echoed(TENSORS, lambda name: name != "FP16", lambda name: True))
        self.assertIn("receiving FP16 data via JSON is not supported", text)
