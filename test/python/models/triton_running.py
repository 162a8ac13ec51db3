"""Answers the sum of the numbers of a sequence so far."""

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        responses = []
        for request in requests:
            name = request.correlation_id()
            before = 0 if request.flags() & pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START else self.sums[name]
            self.sums[name] = before + pb.get_input_tensor_by_name(request, "IN").as_numpy()
            responses.append(pb.InferenceResponse([pb.Tensor("OUT", self.sums[name].astype(np.int32))]))
        return responses
