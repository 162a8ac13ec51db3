"""BF16 has no dtype of numpy: its tensors go through DLPack."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "INPUT0")
            try:
                tensor.as_numpy()
                raise AssertionError("BF16 became an array")
            except pb_utils.TritonModelException as error:
                assert "BF16" in str(error), error
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("OUTPUT0", tensor)]))
        return responses
