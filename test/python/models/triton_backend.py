"""The code of a backend, which serves several models: answers where it was called from, and what it can import."""

import json
import os
import sys

import backend_part
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_STRING", "dims": [1]})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args):
        self.args = args

    def execute(self, requests):
        seen = {key: value for key, value in self.args.items() if key != "model_config"}
        seen["directory"] = pb_utils.get_model_dir()
        seen["file"] = __file__
        seen["module"] = [__name__, __package__]
        seen["part"] = backend_part.NAME
        seen["python"] = sys.prefix
        seen["environment"] = os.environ.get("VIRTUAL_ENV")
        seen["runtime"] = json.loads(self.args["model_config"])["runtime"]
        answer = np.array([json.dumps(seen)], dtype=np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", answer)]) for _ in requests]
