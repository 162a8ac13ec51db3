"""Adds its inputs, of which an absent one counts 5."""

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            total = 0
            for name in ("INPUT0", "INPUT1"):
                tensor = pb.get_input_tensor_by_name(request, name)
                total = total + (np.array([5], dtype=np.int32) if tensor is None else tensor.as_numpy())
            responses.append(pb.InferenceResponse([pb.Tensor("OUTPUT0", total.astype(np.int32))]))
        return responses
