"""Decoupled and async: answers a positive number once a request of 0 has come, and refuses negative ones."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.released = 0

    async def execute(self, requests):
        for request in requests:
            number = float(pb.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0])
            if number < 0:
                raise ValueError("a number cannot be negative")
            sender = request.get_response_sender()
            answer = pb.InferenceResponse([pb.Tensor("OUT", np.array([number], dtype=np.float32))])
            while number > 0 and self.released == 0:
                await asyncio.sleep(0.001)
            self.released += -1 if number > 0 else 1
            sender.send(answer, pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
