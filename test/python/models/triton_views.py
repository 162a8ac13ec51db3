"""Answers arrays that are not contiguous."""

import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            array = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            array[0, 0] += 1
            responses.append(
                pb.InferenceResponse(
                    [
                        pb.Tensor("TRANSPOSED", array.T),
                        pb.Tensor("EVERY_SECOND", array[:, ::2]),
                        pb.Tensor("RESHAPED", array.reshape(-1)),
                    ]
                )
            )
        return responses
