"""Decoupled and async: waits for as many seconds as IN says, then answers them."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            seconds = float(pb.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0])
            if seconds < 0:
                raise ValueError("wait_secs cannot be negative")
            await asyncio.sleep(seconds)
            sender = request.get_response_sender()
            answer = pb.Tensor("OUT", np.array([seconds], dtype=np.float32))
            sender.send(pb.InferenceResponse([answer]), pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
