"""Arguments that the API refuses; answers the text of the first that it does not refuse so, or an empty one."""

import traceback

import numpy as np
import triton_python_backend_utils as pb


def refused(action, kind, text=""):
    try:
        action()
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"not refused: {text}")


def check():
    array = np.ones([1], dtype=np.float32)
    tensor = pb.Tensor("A", array)
    Request, Response = pb.InferenceRequest, pb.InferenceResponse
    good = dict(inputs=[tensor], requested_output_names=["OUT"], model_name="m")

    def request(**others):
        return lambda: Request(**{**good, **others})

    refused(lambda: Request(inputs=[], requested_output_names=[]), TypeError)
    for name in ("request_id", "correlation_id", "inputs", "requested_output_names", "model_name", "model_version", "flags"):
        refused(request(**{name: None}), TypeError)
    refused(
        request(inputs=[None]),
        pb.TritonModelException,
        "Input tensor for request with id '' and model name 'm' should not be empty.",
    )
    assert Request(**{**good, "inputs": []}).inputs() == []
    refused(request(correlation_id=1.5), Exception, "Correlation ID must be integer or string")
    assert Request(**{**good, "correlation_id": "abc"}).correlation_id() == "abc"
    refused(request(parameters=[1]), Exception, ", got <class 'list'>")
    refused(request(parameters={1: 1}), Exception, "Expect parameters keys to have type str, found type <class 'int'>")
    refused(request(parameters={"a": 1.5}), Exception, "Expect parameters values to have type bool/int/str, found type")
    refused(lambda: Response([None]), pb.TritonModelException, "Output tensor for inference response should not be empty.")
    refused(lambda: Response(None), TypeError)
    assert Response().output_tensors() == [] and Response().parameters() == "{}"
    refused(lambda: pb.Tensor("", array), pb.TritonModelException, "Tensor name cannot be an empty string.")
    refused(lambda: pb.Tensor(None, array), TypeError)
    refused(lambda: pb.Tensor("A", None), TypeError)
    refused(lambda: pb.Tensor("A", np.array(["x"])), pb.TritonModelException, "NumPy dtype is not supported.")
    refused(lambda: pb.TritonError(None), TypeError)
    refused(lambda: pb.Logger.log(1), TypeError)
    refused(lambda: pb.Logger.log("x", 1), TypeError)
    refused(lambda: pb.get_input_tensor_by_name(None, "A"), Exception)
    assert pb.triton_string_to_numpy("TYPE_STRING") == np.object_
    refused(lambda: pb.triton_string_to_numpy("TYPE_BF16"), KeyError)


class TritonPythonModel:
    def execute(self, requests):
        try:
            check()
            text = ""
        except Exception:
            text = traceback.format_exc()
        out = pb.Tensor("OUT", np.array([text], dtype=np.object_))
        return [pb.InferenceResponse([out]) for _ in requests]
