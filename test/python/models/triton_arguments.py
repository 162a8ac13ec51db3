"""Answers the arguments of initialize, except the configuration, and a part of that."""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        self.config = json.loads(args["model_config"])

    def execute(self, requests):
        seen = {key: value for key, value in self.args.items() if key != "model_config"}
        seen["directory"] = pb_utils.get_model_dir()
        seen["keys"] = len(self.args)
        seen["types"] = sorted({type(value).__name__ for value in self.args.values()})
        seen["parameters"] = self.config["parameters"]
        seen["batch"] = self.config["max_batch_size"]
        seen["input"] = pb_utils.get_input_config_by_name(self.config, "IN")
        seen["environment"] = sorted(name for name in os.environ if name.startswith("NEREID_TEST_"))
        answer = np.array([json.dumps(seen)], dtype=np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", answer)]) for _ in requests]
