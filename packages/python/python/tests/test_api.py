"""The values of triton_python_backend_utils: functions, tensors, requests, responses, errors, configuration."""

import json
import unittest

import fake_server  # noqa: F401 (puts the package on the path)
import numpy as np

import c_python_backend_utils as c
import triton_python_backend_utils as pb


class Raises(unittest.TestCase):
    def raises(self, text, function, *args, kind=pb.TritonModelException, **fields):
        with self.assertRaises(kind) as caught:
            function(*args, **fields)
        self.assertIn(text, str(caught.exception))


class Functions(Raises):
    # P3.function.output@local P3.function.config@local
    def test_tensors_and_configurations_are_found_by_name(self):
        tensor = pb.Tensor("A", np.zeros(1))
        request = pb.InferenceRequest(model_name="m", inputs=[tensor], requested_output_names=[])
        self.assertIs(pb.get_input_tensor_by_name(request, "A"), tensor)
        self.assertIsNone(pb.get_input_tensor_by_name(request, "B"))
        response = pb.InferenceResponse([tensor])
        self.assertIs(pb.get_output_tensor_by_name(response, "A"), tensor)
        self.assertIsNone(pb.get_output_tensor_by_name(response, "B"))
        config = {"input": [{"name": "A"}], "output": [{"name": "B"}]}
        self.assertEqual(pb.get_input_config_by_name(config, "A"), {"name": "A"})
        self.assertEqual(pb.get_output_config_by_name(config, "B"), {"name": "B"})
        self.assertIsNone(pb.get_input_config_by_name({}, "A"))
        self.assertIsNone(pb.get_output_config_by_name(config, "A"))

    # P3.function.decoupled@local
    def test_the_transaction_policy_is_read_from_the_configuration(self):
        for config, decoupled in (
            ({}, False),
            ({"model_transaction_policy": {}}, False),
            ({"model_transaction_policy": {"decoupled": True}}, True),
        ):
            self.assertIs(pb.using_decoupled_model_transaction_policy(config), decoupled)

    # P3.types.string@local P3.types.numbers@local
    def test_datatypes_map_to_numpy_and_back(self):
        pairs = {
            "BOOL": (1, np.bool_),
            "UINT8": (2, np.uint8),
            "UINT16": (3, np.uint16),
            "UINT32": (4, np.uint32),
            "UINT64": (5, np.uint64),
            "INT8": (6, np.int8),
            "INT16": (7, np.int16),
            "INT32": (8, np.int32),
            "INT64": (9, np.int64),
            "FP16": (10, np.float16),
            "FP32": (11, np.float32),
            "FP64": (12, np.float64),
            "STRING": (13, np.object_),
        }
        for name, (number, kind) in pairs.items():
            self.assertIs(pb.triton_string_to_numpy(f"TYPE_{name}"), kind)
            self.assertIs(pb.TRITON_STRING_TO_NUMPY[f"TYPE_{name}"], kind)
            self.assertIs(pb.triton_to_numpy_type(number), kind)
            self.assertEqual(pb.numpy_to_triton_type(kind), number)
        self.raises("TYPE_BF16", pb.triton_string_to_numpy, "TYPE_BF16", kind=KeyError)

    # P3.constants@local
    def test_constants_have_their_values(self):
        self.assertEqual(
            (
                pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
                pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
                pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                pb.TRITONSERVER_REQUEST_RELEASE_ALL,
                pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
            ),
            (1, 2, 1, 1, 2),
        )

    # P1.api.native@local
    def test_the_native_module_has_the_same_classes_and_more(self):
        for name in ("Tensor", "InferenceRequest", "InferenceResponse", "Logger", "MetricFamily", "TritonError"):
            self.assertIs(getattr(c, name), getattr(pb, name))
        for name in ("InferenceResponseSender", "ResponseIterator", "InferenceTrace", "Metric", "MetricKind"):
            self.assertTrue(isinstance(getattr(c, name), type))
        self.assertGreater(c.shared_memory.free_memory(), 1 << 30)

    # P1.api.names@local
    def test_the_module_has_every_name_of_the_reference(self):
        for name in (
            "TRITONSERVER_MEMORY_CPU TRITONSERVER_MEMORY_GPU TRITON_STRING_TO_NUMPY TritonError TritonModelException "
            "Tensor InferenceRequest InferenceResponse Logger PreferredMemory MetricFamily ModelConfig load_model "
            "unload_model is_model_ready get_model_dir get_input_tensor_by_name get_output_tensor_by_name "
            "get_input_config_by_name get_output_config_by_name using_decoupled_model_transaction_policy "
            "triton_string_to_numpy triton_to_numpy_type numpy_to_triton_type serialize_byte_tensor "
            "deserialize_bytes_tensor"
        ).split():
            self.assertTrue(hasattr(pb, name), name)

    # P3.memory@local
    def test_preferred_memory_takes_a_kind_and_a_device(self):
        for args in ((pb.TRITONSERVER_MEMORY_CPU,), (pb.TRITONSERVER_MEMORY_GPU, 1)):
            self.assertIsInstance(pb.PreferredMemory(*args), pb.PreferredMemory)
        self.raises("must be", pb.PreferredMemory, 7, kind=TypeError)
        self.raises("must be", pb.PreferredMemory, pb.TRITONSERVER_MEMORY_CPU, "0", kind=TypeError)

    def test_what_needs_a_server_says_so(self):
        for call in (
            lambda: pb.Logger.log_info("x"),
            pb.get_model_dir,
            lambda: pb.is_model_ready("m"),
            lambda: pb.MetricFamily("n", "d", pb.MetricFamily.COUNTER),
            lambda: pb.InferenceRequest(model_name="m", inputs=[], requested_output_names=[]).exec(),
        ):
            self.raises("only available while a server", call)


class Tensors(Raises):
    # P3.tensor.name@local
    def test_a_tensor_tells_name_type_and_shape(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = pb.Tensor("T", array)
        self.assertEqual((tensor.name(), tensor.shape(), tensor.triton_dtype(), tensor.is_cpu()), ("T", [2, 3], 11, True))
        self.assertIs(tensor.as_numpy(), array)

    def test_arrays_of_any_layout_become_contiguous(self):
        array = np.arange(6).reshape(2, 3)
        for view in (array.T, array[:, ::2], array[::-1]):
            made = pb.Tensor("T", view).as_numpy()
            self.assertTrue(made.flags.c_contiguous)
            np.testing.assert_array_equal(made, view)
        self.assertEqual(pb.Tensor("T", np.array(3)).shape(), [])
        self.assertEqual(pb.Tensor("T", np.array([1, 2], ">i4")).triton_dtype(), 8)

    # P3.tensor.strings@local
    def test_strings_are_object_arrays_of_bytes(self):
        tensor = pb.Tensor("T", np.array([[b"a"], [b"bc"]]))
        self.assertEqual((tensor.triton_dtype(), tensor.shape()), (13, [2, 1]))
        self.assertEqual(tensor.as_numpy().tolist(), [[b"a"], [b"bc"]])
        self.assertEqual(tensor.as_numpy().dtype, np.object_)

    # P3.tensor.no-name@local P3.tensor.none@local P3.tensor.dtype@local P3.error.kind@local
    def test_wrong_arguments_are_refused(self):
        self.raises("Tensor name cannot be an empty string.", pb.Tensor, "", np.zeros(1))
        for array in (np.array(["text"]), np.array([1j]), np.array(["2020"], "datetime64[Y]")):
            self.raises("NumPy dtype is not supported.", pb.Tensor, "T", array)
        for args in ((None, np.zeros(1)), ("T", None), ("T", [1, 2]), (1, np.zeros(1))):
            self.raises("must be", pb.Tensor, *args, kind=TypeError)


class Requests(Raises):
    def make(self, **fields):
        return pb.InferenceRequest(**{"model_name": "m", "inputs": [], "requested_output_names": [], **fields})

    # P3.request.made@local P3.request.no-inputs@local P3.request.set-flags@local
    def test_a_request_tells_what_it_was_made_of(self):
        request = self.make(request_id="1", correlation_id="c", flags=2, timeout=9, parameters={"k": True})
        self.assertEqual(
            (request.request_id(), request.correlation_id(), request.flags(), request.timeout(), request.inputs()),
            ("1", "c", 2, 9, []),
        )
        self.assertEqual((request.parameters(), request.requested_output_names()), ('{"k": true}', set()))
        self.assertIsNone(request.trace().get_context())
        request.set_flags(1)
        self.assertEqual(request.flags(), 1)

    # P3.request.none@local
    def test_none_is_refused_for_everything_but_parameters(self):
        for name in (
            "request_id",
            "correlation_id",
            "inputs",
            "requested_output_names",
            "model_name",
            "model_version",
            "flags",
            "timeout",
            "preferred_memory",
            "trace",
        ):
            with self.subTest(name):
                self.raises("", self.make, kind=TypeError, **{name: None})
        self.assertEqual(self.make(parameters=None).parameters(), "{}")

    # P3.request.mandatory@local
    def test_inputs_outputs_and_model_are_mandatory(self):
        fields = {"model_name": "m", "inputs": [], "requested_output_names": []}
        for name in fields:
            with self.subTest(name), self.assertRaises(TypeError):
                pb.InferenceRequest(**{key: value for key, value in fields.items() if key != name})

    # P3.request.empty-input@local
    def test_an_empty_input_is_named(self):
        self.raises(
            "Input tensor for request with id '' and model name 'm' should not be empty.", self.make, inputs=[None]
        )

    # P3.request.bad-correlation@local P3.request.bad-parameters@local
    def test_wrong_correlation_ids_and_parameters_are_explained(self):
        self.raises("Correlation ID must be integer or string", self.make, correlation_id=1.5)
        self.raises(
            "Expect parameters keys to have type str, found type <class 'int'>", self.make, parameters={1: "x"}
        )
        self.raises(
            "Expect parameters values to have type bool/int/str, found type <class 'float'>",
            self.make,
            parameters={"x": 1.5},
        )
        self.raises(", got <class 'list'>", self.make, parameters=[])

    def test_a_sender_of_a_made_request_cannot_send(self):
        self.raises(
            "Unable to send response. Response sender has no reference to the decoupled state of the model.",
            self.make().get_response_sender().send,
            pb.InferenceResponse(),
        )


class Responses(Raises):
    # P3.response.value@local
    def test_a_response_carries_tensors_parameters_or_an_error(self):
        response = pb.InferenceResponse(output_tensors=[pb.Tensor("A", np.zeros(1))], parameters={"a": 1})
        self.assertEqual((response.has_error(), response.error(), response.parameters()), (False, None, '{"a": 1}'))
        response.output_tensors().append(pb.Tensor("B", np.zeros(1)))
        self.assertEqual([tensor.name() for tensor in response.output_tensors()], ["A", "B"])
        failed = pb.InferenceResponse(error=pb.TritonError("no", pb.TritonError.UNAVAILABLE))
        self.assertEqual((failed.has_error(), failed.error().message(), failed.parameters()), (True, "no", "{}"))

    # P3.response.empty-output@local
    def test_wrong_arguments_are_refused(self):
        self.raises("Output tensor for inference response should not be empty.", pb.InferenceResponse, [None])
        for args in ((None,), (5,), (["x"],)):
            self.raises("", pb.InferenceResponse, *args, kind=TypeError)
        self.raises("", pb.InferenceResponse, [], "error", kind=TypeError)

    # P3.error.value@local P3.error.codes@local
    def test_error_codes_are_numbers_and_comparable(self):
        names = ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS"]
        self.assertEqual([int(getattr(pb.TritonError, name)) for name in (*names, "CANCELLED")], list(range(8)))
        error = pb.TritonError("x")
        self.assertEqual((error.code(), error.code() == pb.TritonError.INTERNAL), (1, True))
        self.raises("", pb.TritonError, None, kind=TypeError)

    # P3.log.arguments@local
    def test_logger_arguments_are_checked(self):
        for call in (lambda: pb.Logger.log_info(5), lambda: pb.Logger.log("x", 1), lambda: pb.Logger.log(None)):
            self.raises("", call, kind=TypeError)


class Configuration(Raises):
    def make(self, **fields):
        return pb.ModelConfig(json.dumps({"name": "m", **fields}))

    # P2.complete.dict@local P3.config.dict@local
    def test_the_lists_and_the_batch_size_always_exist(self):
        self.assertEqual(self.make().as_dict(), {"name": "m", "input": [], "output": [], "max_batch_size": 0})

    def test_the_batch_size_cannot_shrink(self):
        config = self.make(max_batch_size=2)
        config.set_max_batch_size(4)
        self.assertEqual(config.as_dict()["max_batch_size"], 4)
        self.raises(
            "configuration specified max_batch_size 4, but in auto-complete-config function for model 'm' specified "
            "max_batch_size 3",
            config.set_max_batch_size,
            3,
            kind=ValueError,
        )

    # P3.config.dynamic-refused@local
    def test_dynamic_batching_excludes_other_schedulers(self):
        config = self.make()
        config.set_dynamic_batching()
        config.as_dict()["dynamic_batching"]["max_queue_delay_microseconds"] = 5
        config.set_dynamic_batching()
        self.assertEqual(config.as_dict()["dynamic_batching"], {"max_queue_delay_microseconds": 5})
        for other in ("sequence_batching", "ensemble_scheduling"):
            self.raises(other, self.make(**{other: {}}).set_dynamic_batching, kind=ValueError)

    # P3.config.filled@local
    def test_inputs_and_outputs_are_added_once_and_filled_in(self):
        config = self.make(input=[{"name": "A", "dims": []}], output=[{"name": "B", "data_type": "TYPE_FP32", "dims": [3]}])
        config.add_input({"name": "A", "data_type": "TYPE_INT8", "dims": [2], "optional": True})
        config.add_output({"name": "B", "data_type": "TYPE_FP32", "dims": [3]})
        config.add_output({"name": "C", "data_type": "TYPE_FP32", "dims": [1]})
        self.assertEqual(
            config.as_dict()["input"], [{"name": "A", "data_type": "TYPE_INT8", "dims": [2], "optional": True}]
        )
        self.assertEqual([entry["name"] for entry in config.as_dict()["output"]], ["B", "C"])

    # P3.config.unknown@local P3.config.missing@local P3.config.dims@local
    def test_wrong_entries_are_explained(self):
        whole = {"name": "x", "data_type": "TYPE_FP32", "dims": [1]}
        for text, tensor in (
            (
                "input 'x' in auto-complete-config function for model 'm' contains property other than 'name', "
                "'data_type', 'dims' and 'optional'.",
                {**whole, "extra": 1},
            ),
            (
                "input 'x' in auto-complete-config function for model 'm' is missing 'dims' property.",
                {"name": "x", "data_type": "TYPE_FP32"},
            ),
            ("is missing 'data_type' property.", {"name": "x", "dims": [1]}),
            ("is missing 'name' property.", {"data_type": "TYPE_FP32", "dims": [1]}),
        ):
            self.raises(text, self.make().add_input, tensor, kind=ValueError)
        self.raises("other than 'name', 'data_type' and 'dims'.", self.make().add_output, {**whole, "optional": True}, kind=ValueError)
        self.raises(
            "unable to load model 'm', configuration expects datatype TYPE_INT8 for input 'x', model provides TYPE_FP32",
            self.make(input=[{"name": "x", "data_type": "TYPE_INT8", "dims": [1]}]).add_input,
            whole,
            kind=ValueError,
        )
        self.raises(
            "model 'm', tensor 'x': the model expects dims [1] but the model configuration specifies dims [2]",
            self.make(output=[{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}]).add_output,
            whole,
            kind=ValueError,
        )

    def test_the_transaction_policy_can_be_turned_on(self):
        config = self.make()
        config.set_model_transaction_policy({"decoupled": True})
        self.assertEqual(config.as_dict()["model_transaction_policy"], {"decoupled": True})
        self.raises("decoupled", config.set_model_transaction_policy, {"decoupled": False}, kind=ValueError)
        self.raises("other than 'decoupled'", config.set_model_transaction_policy, {"x": 1}, kind=ValueError)


if __name__ == "__main__":
    unittest.main()
