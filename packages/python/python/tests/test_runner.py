"""`python -m nereid_model`: one request outside the server."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import fake_server
import numpy as np

from nereid_model.pbtxt import parse_pbtxt

CONFIG = """
# A comment
name: "adder"
backend: "python"
max_batch_size: 0
input [
  { name: "A" data_type: TYPE_FP32 dims: [ 2 ] },
  { name: "S", data_type: TYPE_STRING, dims: [ -1 ], optional: true }
]
output { name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }
parameters { key: "factor" value { string_value: "3" } }
"""

MODEL = """
import json
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        self.factor = float(json.loads(args["model_config"])["parameters"]["factor"]["string_value"])
        family = pb.MetricFamily("calls", "Calls", pb.MetricFamily.COUNTER)
        family.Metric().increment(1)
    def execute(self, requests):
        pb.Logger.log_info("executing")
        array = pb.get_input_tensor_by_name(requests[0], "A").as_numpy()
        return [pb.InferenceResponse([pb.Tensor("OUT", array * self.factor), pb.Tensor("X", array)], parameters={"n": 1})]
    def finalize(self):
        print("finalized")
"""


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_model(self, *arguments, code=MODEL, config=CONFIG, name="config.pbtxt"):
        version = os.path.join(self.folder.name, "adder", "1")
        os.makedirs(version, exist_ok=True)
        file = os.path.join(version, "model.py")
        with open(file, "w") as out:
            out.write(textwrap.dedent(code))
        if config is not None:
            with open(os.path.join(self.folder.name, "adder", name), "w") as out:
                out.write(config)
        return subprocess.run(
            [sys.executable, "-m", "nereid_model", file, *arguments],
            env={**os.environ, "PYTHONPATH": fake_server.PACKAGE, "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def test_outputs_log_and_life_cycle_of_one_request_are_shown(self):
        result = self.run_model("--input", "A=[1, 2]")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, 'finalized\nOUT FP32 [2]\n[3. 6.]\nparameters {"n": 1}\n')
        self.assertRegex(result.stderr, r"INFO model\.py:10 executing")

    def test_json_and_npy_inputs_and_json_output(self):
        path = os.path.join(self.folder.name, "a.npy")
        np.save(path, np.array([4, 5], np.float32))
        result = self.run_model("--input", f"A={path}", "--json", "--input", 'S=["x"]')
        self.assertEqual(
            json.loads(result.stdout.splitlines()[-1]),
            [{"outputs": [{"name": "OUT", "datatype": "FP32", "shape": [2], "data": [12, 15]}], "parameters": {"n": 1}}],
        )

    def test_missing_inputs_are_zeros_or_random(self):
        self.assertIn("[0. 0.]", self.run_model().stdout)
        first, second = (self.run_model("--random", "--seed", "7").stdout for _ in range(2))
        self.assertEqual(first, second)
        self.assertNotIn("[0. 0.]", first)

    def test_mistakes_are_explained_with_status_1(self):
        for arguments, text in (
            (["--input", "B=[1]"], "The model has no input 'B'; its inputs are A, S."),
            (["--input", "A=[1,"], "Input 'A' is neither JSON nor a file"),
            (["--input", "A=['x']"], "Input 'A' is neither JSON nor a file"),
            (["--input", 'A=["x"]'], "Input 'A' cannot be read as FP32"),
            (["--input", "A=[1,2,3]"], "Input 'A' must have the shape [2], found [3]."),
            (["--input", "A=[[1,2]]"], "Input 'A' must have the shape [2], found [1, 2]."),
            (["--input", "A"], "--input needs NAME=VALUE, found 'A'."),
            (["--config", "no.pbtxt"], "There is no configuration 'no.pbtxt'."),
        ):
            with self.subTest(arguments):
                result = self.run_model(*arguments)
                self.assertEqual(result.returncode, 1)
                self.assertIn(text, result.stderr)

    def test_batches_have_rows_of_the_configured_shape_up_to_their_maximum(self):
        config = CONFIG.replace("max_batch_size: 0", "max_batch_size: 2")
        result = self.run_model("--input", "A=[[1,2],[3,4]]", config=config)
        self.assertIn("[ 9. 12.]", result.stdout, result.stderr)
        for value, text in (
            ("[1,2]", "Input 'A' must have the shape [-1, 2], found [2]."),
            ("[[1,2],[3,4],[5,6]]", "Input 'A' has 3 rows, more than the max_batch_size 2."),
        ):
            with self.subTest(value):
                self.assertIn(text, self.run_model("--input", f"A={value}", config=config).stderr)

    def test_a_reshaped_input_has_the_shape_that_the_model_sees(self):
        config = CONFIG.replace("dims: [ 2 ] },", "dims: [ 2 ] reshape { shape: [ 1, 2 ] } },", 1)
        self.assertIn("[[3. 6.]]", self.run_model("--input", "A=[[1,2]]", config=config).stdout)

    def test_a_missing_package_names_the_interpreter(self):
        result = self.run_model(code="import not_there\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"To install it: {sys.executable} -m pip install not_there", result.stderr)

    def test_an_exception_of_the_model_shows_its_frames(self):
        result = self.run_model(code="class TritonPythonModel:\n    def execute(self, requests):\n        1 / 0\n")
        self.assertIn("ZeroDivisionError: division by zero\n\nAt:\n  ", result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_a_call_of_another_model_is_explained(self):
        code = """
import triton_python_backend_utils as pb
class TritonPythonModel:
    def execute(self, requests):
        pb.InferenceRequest(model_name="other", inputs=[], requested_output_names=[]).exec()
"""
        self.assertIn("The model 'other' cannot be called here: calls of other models need a server.", self.run_model(code=code).stderr)

    def test_decoupled_models_show_all_their_responses(self):
        code = """
import threading
import numpy as np
import triton_python_backend_utils as pb
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_model_transaction_policy({"decoupled": True})
        return config
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        def send():
            for i in range(2):
                sender.send(pb.InferenceResponse([pb.Tensor("OUT", np.array([i]))]))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        threading.Thread(target=send).start()
"""
        result = self.run_model("--json", code=code, config=None)
        self.assertEqual([part["outputs"][0]["data"] for part in json.loads(result.stdout)], [[0], [1]], result.stderr)

    def test_an_error_response_is_shown_with_status_1(self):
        code = """
import triton_python_backend_utils as pb
class TritonPythonModel:
    async def execute(self, requests):
        return [pb.InferenceResponse(error=pb.TritonError("no", pb.TritonError.NOT_FOUND))]
"""
        result = self.run_model(code=code)
        self.assertEqual((result.returncode, result.stdout), (1, "error NOT_FOUND: no\n"))

    def test_plain_functions_run_by_name(self):
        result = self.run_model("--function", "double", "--input", "A=[1,2]", code="def double(A, S=None):\n    return A * 2\n")
        self.assertIn("[2. 4.]", result.stdout, result.stderr)

    def test_the_configuration_may_be_json(self):
        config = json.dumps(
            {"input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [2]}], "parameters": {"factor": {"string_value": "2"}}}
        )
        self.assertIn("[2. 4.]", self.run_model("--input", "A=[1,2]", config=config, name="config.json").stdout or "")

    def test_help_describes_every_option(self):
        result = self.run_model("--help")
        for word in ("--input", "--config", "--repository", "--json", "--random", "--function", "pdb", "BLS"):
            self.assertIn(word, result.stdout)


class Pbtxt(unittest.TestCase):
    def test_messages_lists_maps_strings_and_numbers_are_read(self):
        config = parse_pbtxt(CONFIG + 'dynamic_batching { }\nversion_policy: { specific { versions: [1, 2] } }\nx: 1.5e2 y: -3 z: "a\\n" "b"')
        self.assertEqual([entry["name"] for entry in config["input"]], ["A", "S"])
        self.assertEqual(config["input"][1], {"name": "S", "data_type": "TYPE_STRING", "dims": [-1], "optional": True})
        self.assertEqual(config["output"], [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [2]}])
        self.assertEqual(config["parameters"], {"factor": {"string_value": "3"}})
        self.assertEqual(config["dynamic_batching"], {})
        self.assertEqual(config["version_policy"], {"specific": {"versions": [1, 2]}})
        self.assertEqual((config["x"], config["y"], config["z"]), (150.0, -3, "a\nb"))

    def test_mistakes_have_a_line(self):
        for text, message in (("a: 1\nb {", "line 2"), ("a: 1\n@", "line 2: unexpected character '@'"), ("{", "line 1")):
            with self.assertRaisesRegex(ValueError, message):
                parse_pbtxt(text)


if __name__ == "__main__":
    unittest.main()
