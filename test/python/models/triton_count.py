"""Decoupled: as many responses as IN says, each with its number; the last one is final, or an empty one if negative."""

import numpy as np
import triton_python_backend_utils as pb

FINAL = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            count = int(pb.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0])
            sender = request.get_response_sender()
            for index in range(abs(count)):
                flags = FINAL if index + 1 == count else 0
                sender.send(pb.InferenceResponse([pb.Tensor("OUT", np.array([index], dtype=np.int32))]), flags)
            if count <= 0:
                sender.send(flags=FINAL)
