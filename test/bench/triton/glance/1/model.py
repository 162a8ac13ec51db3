"""A large tensor in, its first value out."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        images = [pb_utils.get_input_tensor_by_name(request, "image").as_numpy() for request in requests]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("first", image[:, 0, 0, :1].copy())]) for image in images
        ]
