"""Instances that are processes. Those of `apart` wait for each other; each answers who it is and what it has seen."""

import json
import os
import time

import numpy as np
import triton_python_backend_utils as pb

executions = 0


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_instance_name"]
        self.folder = args["model_repository"] if args["model_name"] == "apart" else None
        self.meet("started", self.name)

    def meet(self, place, name):
        """Waits until an even number of names is in the place."""
        if self.folder is None:
            return
        folder = os.path.join(self.folder, place)
        os.makedirs(folder, exist_ok=True)
        open(os.path.join(folder, name), "w").close()
        deadline = time.monotonic() + 30
        while len(os.listdir(folder)) % 2 != 0:
            if time.monotonic() > deadline:
                raise TimeoutError("the other instance has not come")
            time.sleep(0.001)

    def execute(self, requests):
        global executions
        executions += 1
        self.meet("executed", f"{self.name} {executions}")
        seen = [self.name, os.getpid(), executions, os.environ.get("NEREID_TEST_GIVEN")]
        return [
            pb.InferenceResponse([pb.Tensor("OUT", np.array([json.dumps(seen)], dtype=np.object_))]) for _ in requests
        ]
