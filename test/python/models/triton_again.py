"""Reschedules each request once, in default mode, then answers the sum of its inputs."""

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.seen = 0
        self.wrong = args["model_name"] == "wrong_return"

    def execute(self, requests):
        responses = []
        for request in requests:
            self.seen += 1
            total = pb.get_input_tensor_by_name(request, "IN").as_numpy() + 1
            answer = pb.InferenceResponse([pb.Tensor("OUT", total)])
            if self.seen % 2 == 1:
                request.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                responses.append(answer if self.wrong else None)
            else:
                responses.append(answer)
        return responses
