"""Answers the sum of the numbers of a sequence, and its control tensors."""

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        responses = []
        for request in requests:
            def read(name):
                return pb.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0]

            if not read("READY"):
                # A slot without a request.
                empty = np.zeros([1, 3], dtype=np.int32)
                responses.append(pb.InferenceResponse([pb.Tensor("OUT", empty)]))
                continue
            identifier = int(read("CORRID"))
            assert identifier == request.correlation_id(), request.correlation_id()
            start, end = int(read("START")), int(read("END"))
            assert request.flags() == (1 if start else 0) | (2 if end else 0), request.flags()
            before = 0 if start else self.sums[identifier]
            self.sums[identifier] = before + int(read("IN"))
            out = np.array([[self.sums[identifier], start, end]], dtype=np.int32)
            responses.append(pb.InferenceResponse([pb.Tensor("OUT", out)]))
        return responses
