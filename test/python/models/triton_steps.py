"""Logs each step of its life with its process, and answers what it has logged."""

import os

import numpy as np
import triton_python_backend_utils as pb

steps = []


def step(name):
    steps.append(name)


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        print(f"step auto_complete_config in {os.getpid()}", flush=True)
        config.add_input({"name": "IN", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_STRING", "dims": [1]})
        config.set_max_batch_size(0)
        return config

    def __init__(self):
        step("__init__")

    def initialize(self, args):
        step("initialize")
        print(f"step initialize in {os.getpid()}", flush=True)

    def execute(self, requests):
        step("execute")
        out = np.array([" ".join(steps)], dtype=np.object_)
        return [pb.InferenceResponse([pb.Tensor("OUT", out)]) for _ in requests]

    def finalize(self):
        step("finalize")
        pb.Logger.log_info(f"step {' '.join(steps)}")
