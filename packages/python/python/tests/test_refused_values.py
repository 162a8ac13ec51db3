"""Numbers and texts that neither JSON nor gRPC can carry are refused where the code of a model gives them."""

import unittest

import numpy as np
from fake_server import FakeServer

import triton_python_backend_utils as pb
from nereid_model.byte_strings import encode_byte_strings
from nereid_model.errors import cut, describe_exception

LONE = "a\ud800"
FAULT = "character 1 is the lone surrogate '\\ud800'"


class Refused(unittest.TestCase):
    def refused(self, text, action, kind):
        with self.assertRaises(kind) as caught:
            action()
        self.assertIn(text, str(caught.exception))

    def test_parameters_are_integers_of_64_bits_and_texts_of_utf_8(self):
        ends = {"least": -(2**63), "most": 2**64 - 1, "yes": True, "text": "grüße 🎈"}
        self.assertIn(str(2**64 - 1), pb.InferenceResponse([], parameters=ends).parameters())
        for value, text in (
            (2**64, "Parameter 'x' must be an integer from -9223372036854775808 to 18446744073709551615, found 1844"),
            (-(2**63) - 1, "found -9223372036854775809"),
            (10**5000, "found one of 16610 bits"),
            (LONE, f"Parameter 'x' must be text that UTF-8 can express; {FAULT}"),
        ):
            for make in (
                lambda: pb.InferenceResponse([], parameters={"x": value}),
                lambda: pb.InferenceRequest(
                    model_name="m", inputs=[], requested_output_names=[], parameters={"x": value}
                ),
            ):
                self.refused(text, make, pb.TritonModelException)
        self.refused(FAULT, lambda: pb.InferenceResponse([], parameters={LONE: 1}), pb.TritonModelException)
        for number in (float("nan"), float("inf"), np.float64(1)):
            self.refused("bool/int/str", lambda: pb.InferenceResponse([], parameters={"x": number}), pb.TritonModelException)

    def test_fields_of_requests_stay_in_the_ranges_of_the_protocol(self):
        good = {"model_name": "m", "inputs": [], "requested_output_names": []}
        for name, value in (
            ("correlation_id", 2**64),
            ("correlation_id", -1),
            ("timeout", 2**64),
            ("timeout", -1),
            ("flags", 2**32),
            ("flags", -1),
            ("model_version", 2**63),
            ("model_version", -2),
        ):
            self.refused(f"{name} must be an int from ", lambda: pb.InferenceRequest(**{**good, name: value}), TypeError)
        request = pb.InferenceRequest(**good, correlation_id=2**64 - 1, timeout=2**64 - 1, flags=2**32 - 1)
        self.refused("flags must be an int from 0 to 4294967295", lambda: request.set_flags(-1), TypeError)
        for name in ("request_id", "correlation_id", "model_name"):
            self.refused(f"{name} must be text", lambda: pb.InferenceRequest(**{**good, name: LONE}), ValueError)
        self.refused(FAULT, lambda: pb.InferenceRequest(**{**good, "requested_output_names": [LONE]}), ValueError)

    def test_names_of_tensors_are_texts(self):
        self.refused(FAULT, lambda: pb.Tensor(LONE, np.zeros(1)), ValueError)
        self.refused(FAULT, lambda: pb.Tensor.from_dlpack(LONE, np.zeros(1)), ValueError)
        self.assertEqual(pb.Tensor("größe", np.zeros(1)).name(), "größe")

    def test_elements_of_bytes_are_texts_that_name_their_tensor(self):
        self.refused(
            f"Tensor 'T' must have texts that UTF-8 can express; in an element, {FAULT}.",
            pb.Tensor("T", np.array([b"x", LONE], np.object_))._memory,
            pb.TritonModelException,
        )
        self.assertRaises(UnicodeEncodeError, encode_byte_strings, np.array([LONE], np.object_))

    def test_names_labels_and_values_of_metrics_are_checked_before_the_server_sees_them(self):
        self.refused(FAULT, lambda: pb.MetricFamily(LONE, "d", pb.MetricFamily.GAUGE), ValueError)
        self.refused(FAULT, lambda: pb.MetricFamily("n", LONE, pb.MetricFamily.GAUGE), ValueError)
        family = pb.MetricFamily.__new__(pb.MetricFamily)
        family._kind, family._number, family._host = pb.MetricFamily.HISTOGRAM, 1, None
        for labels in ({LONE: "x"}, {"x": LONE}):
            self.refused(FAULT, lambda: family.Metric(labels, [1]), ValueError)
        self.refused("must fit into a double", lambda: family.Metric({}, [10**400]), TypeError)

    def test_models_that_are_loaded_have_texts(self):
        for action in (
            lambda: pb.load_model(LONE),
            lambda: pb.load_model("m", config=LONE),
            lambda: pb.load_model("m", "{}", {LONE: b""}),
            lambda: pb.unload_model(LONE),
            lambda: pb.is_model_ready(LONE),
            lambda: pb.is_model_ready("m", LONE),
        ):
            self.refused(FAULT, action, ValueError)

    def test_texts_of_errors_are_escaped_so_that_none_is_lost(self):
        self.assertEqual(cut(LONE), "a\\ud800")
        self.assertEqual(describe_exception(ValueError(f"no file {LONE}")), "ValueError: no file a\\ud800")

    def test_a_completed_configuration_that_json_cannot_express_is_an_error_of_the_load(self):
        for value, reason in (
            ("float('nan')", "Out of range float values"),
            ("{1, 2}", "set is not JSON serializable"),
            ("'\\ud800'", "surrogates not allowed"),
        ):
            code = f"""
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({{"name": "X", "data_type": "TYPE_FP32", "dims": [{value}]}})
        return config
"""
            with FakeServer(code, mode="autocomplete", data=None) as server:
                self.assertIn("returned a configuration that JSON cannot express: ", server.started["e"])
                self.assertIn(reason, server.started["e"])


if __name__ == "__main__":
    unittest.main()
