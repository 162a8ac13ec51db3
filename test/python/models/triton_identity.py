"""Answers each input with an output of its number: INPUT0 with OUTPUT0, and so on."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor(tensor.name().replace("INPUT", "OUTPUT"), tensor.as_numpy()) for tensor in request.inputs()]
            )
            for request in requests
        ]
