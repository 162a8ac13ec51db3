"""Sum and difference, as examples/add-sub: the requests of a batch in one operation."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        one, other = (
            np.concatenate([pb_utils.get_input_tensor_by_name(request, name).as_numpy() for request in requests])
            for name in ("INPUT0", "INPUT1")
        )
        total, difference = one + other, one - other
        responses, row = [], 0
        for request in requests:
            end = row + pb_utils.get_input_tensor_by_name(request, "INPUT0").shape()[0]
            outputs = [pb_utils.Tensor("OUTPUT0", total[row:end]), pb_utils.Tensor("OUTPUT1", difference[row:end])]
            responses.append(pb_utils.InferenceResponse(outputs))
            row = end
        return responses
