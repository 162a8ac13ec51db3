"""Answers is_ready as the file beside it says."""

import os
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.path = os.path.join(args["model_repository"], "readiness")

    def is_ready(self):
        with open(self.path) as file:
            text = file.read()
        if text == "raise":
            raise RuntimeError("is_ready has failed")
        if text == "slow":
            time.sleep(0.3)
            with open(self.path + ".calls", "a") as file:
                file.write("x")
            return True
        return {"true": True, "false": False}.get(text, text)

    def execute(self, requests):
        return [
            pb.InferenceResponse([pb.Tensor("OUT", pb.get_input_tensor_by_name(request, "IN").as_numpy())])
            for request in requests
        ]
