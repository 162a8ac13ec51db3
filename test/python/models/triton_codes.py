"""Answers with the error code that the request names."""

import triton_python_backend_utils as pb_utils

codes = {
    name: getattr(pb_utils.TritonError, name)
    for name in "UNKNOWN INTERNAL NOT_FOUND INVALID_ARG UNAVAILABLE UNSUPPORTED ALREADY_EXISTS CANCELLED".split()
}


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            name = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()[0].decode()
            error = pb_utils.TritonError("error code: " + name, codes[name]) if name in codes else pb_utils.TritonError("none")
            responses.append(pb_utils.InferenceResponse(error=error))
        return responses
