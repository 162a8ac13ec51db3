"""Answers is_ready as the file beside it says."""

import asyncio
import os
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.folder = args["model_repository"]
        self.is_first = args["model_instance_name"].endswith("_0_0")

    def is_ready(self):
        with open(os.path.join(self.folder, "readiness")) as file:
            text = file.read()
        if text == "raise":
            raise RuntimeError("is_ready has failed")
        if text == "first":
            return self.is_first
        kind, _, rest = text.partition(" ")
        if kind == "async":
            return self.later(rest == "true")
        if kind == "wait":
            pb.Logger.log_info(f"is_ready waits for {rest}")
            while not os.path.exists(os.path.join(self.folder, rest)):
                time.sleep(0.001)
            return True
        return {"true": True, "false": False}.get(text, text)

    async def later(self, value):
        await asyncio.sleep(0)
        return value

    def execute(self, requests):
        return [
            pb.InferenceResponse([pb.Tensor("OUT", pb.get_input_tensor_by_name(request, "IN").as_numpy())])
            for request in requests
        ]
