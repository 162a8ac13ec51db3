"""Iterative: counts IN down to 0, one response a step, by rescheduling the request."""

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.left = {}

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            number = request.correlation_id()
            start = int(pb.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0])
            left = self.left.get(number, start) - 1
            answer = pb.InferenceResponse([pb.Tensor("OUT", np.array([left], dtype=np.int32))])
            if left > 0:
                sender.send(answer)
                self.left[number] = left
                request.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            else:
                self.left.pop(number, None)
                sender.send(answer, pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
