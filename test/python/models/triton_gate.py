"""Executes for as long as the path in IN is missing. A file `hold` beside the model holds up its start."""

import os
import time

import triton_python_backend_utils as pb


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the gate stays closed")
        time.sleep(0.001)


class TritonPythonModel:
    def initialize(self, args):
        hold = os.path.join(args["model_repository"], "hold")
        wait_until(lambda: not os.path.exists(hold))

    def execute(self, requests):
        responses = []
        for request in requests:
            text = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            path = text.reshape(-1)[0].decode()
            if path == "die":
                os._exit(3)
            pb.Logger.log_info(f"waits for {path}")
            wait_until(lambda: os.path.exists(path))
            responses.append(pb.InferenceResponse([pb.Tensor("OUT", text)]))
        return responses
