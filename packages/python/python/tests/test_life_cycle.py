"""Load, initialize, readiness, finalize and auto-complete of a model's process."""

import json
import os
import queue
import signal
import socket
import threading
import unittest

from fake_server import CHECK_READY, LISTENING, READY, SEQUENCE_ENDED, STARTED, FakeServer, frame

NOTHING = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


class Load(unittest.TestCase):
    def test_the_process_describes_its_interpreter_before_it_loads_the_model(self):
        with FakeServer(NOTHING) as server:
            self.assertEqual(set(server.listening), {"pid", "python", "numpy", "executable"})
            memory = server.started.pop("memory")
            self.assertEqual(len(memory), int(hasattr(os, "memfd_create")))
            maps = os.path.isdir("/proc/self/fd")
            has_no_hook = {"has_ready": False, "has_sequence_ended": False}
            self.assertEqual(server.started, {"ok": 1, "mode": "sync", **has_no_hook, "maps": maps})

    def test_initialize_gets_the_arguments_and_finalize_runs_at_stop(self):
        code = """
import json, sys
class TritonPythonModel:
    def initialize(self, args):
        print(json.dumps(args))
    def execute(self, requests):
        return []
    def finalize(self):
        print("finalized")
"""
        with FakeServer(code) as server:
            self.assertEqual(server.stop(), {})
            lines = server.process.stdout.read().decode().splitlines()
            self.assertEqual(json.loads(lines[0]), server.settings["args"])
            self.assertEqual(lines[1], "finalized")

    def test_the_end_of_a_sequence_is_told_before_finalize(self):
        code = """
class TritonPythonModel:
    def execute(self, requests):
        return []
    async def sequence_ended(self, correlation_id, reason):
        print(repr(correlation_id), reason)
    def finalize(self):
        print("finalized")
"""
        with FakeServer(code) as server:
            self.assertIs(server.started["has_sequence_ended"], True)
            for correlation_id in (2**64 - 1, "x"):
                server.data.sendall(frame(SEQUENCE_ENDED, {"c": correlation_id, "e": "expired"}))
            self.assertEqual(server.stop(), {})
            lines = server.process.stdout.read().decode().splitlines()
            self.assertEqual(lines, ["18446744073709551615 expired", "'x' expired", "finalized"])

    def test_models_import_their_files_in_every_way(self):
        code = """
import file1, file2
from . import file1 as relative
from .file1 import NAME
import triton_python_backend_utils as pb, c_python_backend_utils as c
assert __name__ == "1.model" and relative.NAME == NAME == file1.NAME == "one" and file2.NAME == "two"
assert c.Tensor is pb.Tensor
import model
assert model is not __import__("sys").modules["1.model"]
class TritonPythonModel:
    def initialize(self, args):
        assert pb.get_model_dir().endswith("/1")
"""
        with FakeServer(
            code.replace("import model\n", "if __name__ == '1.model':\n    import model\n").replace(
                "assert model is", "    assert model is"
            ).replace('assert __name__ == "1.model" and', "assert").replace("from . import file1 as relative", "import file1 as relative").replace(
                "from .file1 import NAME", "from file1 import NAME"
            ),
            files={"1/file1.py": "NAME = 'one'", "file2.py": "NAME = 'two'"},
        ) as server:
            self.assertEqual(server.started.get("ok"), 1, server.started)
        with FakeServer(
            "from . import file1\nfrom .file1 import NAME\nassert __name__ == '1.model' and file1.NAME == NAME\n" + NOTHING,
            files={"1/file1.py": "NAME = 'one'"},
        ) as server:
            self.assertEqual(server.started.get("ok"), 1, server.started)

    def test_the_package_hides_none_of_the_models_modules(self):
        code = "import config, tensor, request\nassert config.NAME == tensor.NAME == request.NAME == 'mine'\n" + NOTHING
        files = {f"1/{name}.py": "NAME = 'mine'" for name in ("config", "tensor", "request")}
        with FakeServer(code, files=files) as server:
            self.assertEqual(server.started.get("ok"), 1, server.started)

    def test_an_exception_in_initialize_fails_the_load_with_its_text(self):
        code = "class TritonPythonModel:\n    def initialize(self, args):\n        lorem_ipsum\n"
        with FakeServer(code) as server:
            self.assertRegex(
                server.started["e"], r"\ANameError: name 'lorem_ipsum' is not defined\n\nAt:\n  .*model\.py\(3\): initialize\n"
            )
            self.assertIn("NameError: name 'lorem_ipsum' is not defined", self.end(server))

    def end(self, server):
        server.tell(13, {})
        return server.error_output()

    def test_a_file_without_the_class_fails_the_load(self):
        with FakeServer("x = 1") as server:
            self.assertIn("has no attribute 'TritonPythonModel'", server.started["e"])

    def test_a_missing_file_is_named(self):
        with FakeServer(file="/nowhere/model.py") as server:
            self.assertEqual(server.started["e"], "Python model file not found in '/nowhere/model.py'")

    def test_a_missing_package_is_named_with_the_interpreter_and_the_remedy(self):
        with FakeServer("import not_there.at_all\n") as server:
            self.assertEqual(server.started["missing"], "not_there")
            executable = server.listening["executable"]
            self.assertIn("ModuleNotFoundError: No module named 'not_there'", server.started["e"])
            self.assertIn(f"To install it: {executable} -m pip install not_there", server.started["e"])

    def test_missing_numpy_is_reported_like_any_package(self):
        with FakeServer(
            NOTHING,
            files={"block/numpy/__init__.py": "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')"},
            start=False,
        ) as probe:
            block = os.path.join(probe.model, "block")
            with FakeServer(NOTHING, environment={"PYTHONPATH": block}) as server:
                self.assertIsNone(server.listening["numpy"])
                self.assertEqual(server.started["missing"], "numpy")
                self.assertIn("-m pip install numpy", server.started["e"])

    def test_death_in_initialize_ends_both_connections(self):
        code = f"import os\nos.kill(os.getpid(), {int(signal.SIGKILL)})\n"
        with FakeServer(code, start=False) as server:
            with self.assertRaises(AssertionError):
                server.start()
            self.assertEqual(server.process.wait(), -signal.SIGKILL)

    def test_an_exception_in_finalize_is_reported_and_the_exit_is_clean(self):
        code = NOTHING + "    def finalize(self):\n        undefined_variable\n"
        with FakeServer(code) as server:
            self.assertIn("NameError: name 'undefined_variable' is not defined", server.stop()["e"])

    def test_environment_variables_reach_the_model(self):
        code = "import os\nassert os.environ['MODEL_WORD'] == 'hello'\n" + NOTHING
        with FakeServer(code, environment={"MODEL_WORD": "hello"}) as server:
            self.assertEqual(server.started.get("ok"), 1)

    def test_exit_handlers_of_the_model_run(self):
        with FakeServer("import atexit\natexit.register(print, 'at the end')\n" + NOTHING) as server:
            server.stop()
            self.assertEqual(server.process.stdout.read(), b"at the end\n")

    # P1.output.lines@local
    def test_prints_arrive_line_by_line(self):
        with FakeServer("print('loaded', 5)\n" + NOTHING) as server:
            self.assertEqual(server.process.stdout.readline(), b"loaded 5\n")


class AutoComplete(unittest.TestCase):
    def complete(self, body, **config):
        code = f"class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n        {body}\n"
        args = {"model_name": "m", "model_config": json.dumps({"name": "m", **config})}
        with FakeServer(code, mode="autocomplete", data=None, args=args) as server:
            if "ok" in server.started:
                server.stop()
            return server.started

    def test_the_result_is_the_configuration(self):
        started = self.complete(
            "config.add_input({'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [4]}); config.set_max_batch_size(8); return config"
        )
        self.assertEqual(
            started["config"],
            {
                "name": "m",
                "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [4]}],
                "output": [],
                "max_batch_size": 8,
            },
        )

    def test_a_model_without_it_leaves_the_configuration_alone(self):
        with FakeServer(NOTHING, mode="autocomplete", data=None) as server:
            self.assertEqual(server.started, {"ok": 1})
            server.stop()

    def test_another_result_fails_the_load(self):
        self.assertEqual(
            self.complete("return None")["e"],
            "auto_complete_config function in model 'm' must return a valid pb.ModelConfig object.",
        )

    def test_an_exception_fails_the_load_with_its_text(self):
        self.assertIn("NameError: name 'lorem_ipsum' is not defined", self.complete("lorem_ipsum")["e"])


class Ready(unittest.TestCase):
    def check(self, server, number=1):
        server.tell(CHECK_READY, {"n": number})
        return server.wait(READY)[0]

    def test_a_model_without_a_check_is_ready(self):
        with FakeServer(NOTHING) as server:
            self.assertEqual(self.check(server), {"n": 1, "ready": True})

    def test_the_result_of_the_check_counts(self):
        for body, why in (
            ("return True", None),
            ("return False", "Model 'm_0_0' is not ready (user-defined check failed)."),
            ("return 1", "is_ready() must return a boolean value"),
        ):
            for prefix in ("", "async "):
                with self.subTest(prefix + body):
                    code = f"{NOTHING}    {prefix}def is_ready(self):\n        {body}\n"
                    with FakeServer(code) as server:
                        self.assertTrue(server.started["has_ready"])
                        expected = {"n": 1, "ready": why is None, **({} if why is None else {"why": why})}
                        self.assertEqual(self.check(server), expected)

    def test_every_instance_of_the_process_must_be_ready(self):
        code = """
class TritonPythonModel:
    def initialize(self, args):
        self.first = args["model_instance_name"] == "m_0_0"
    def execute(self, requests):
        return []
    def is_ready(self):
        return self.first
"""
        with FakeServer(code, threads=[{"model_instance_name": "m_0_1"}]) as server:
            self.assertEqual(self.check(server)["why"], "Model 'm_0_1' is not ready (user-defined check failed).")

    def test_an_exception_means_not_ready_with_its_text(self):
        with FakeServer(NOTHING + "    def is_ready(self):\n        raise OSError('gone')\n") as server:
            self.assertIn("OSError: gone", self.check(server)["why"])

    def test_a_check_is_answered_while_execute_runs(self):
        code = """
import threading
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        self.go = threading.Event()
    def execute(self, requests):
        self.go.wait(15)
        return [pb.InferenceResponse([])]
    def is_ready(self):
        self.go.set()
        return True
"""
        with FakeServer(code) as server:
            server.send_execute({"inputs": {}})
            self.assertTrue(self.check(server)["ready"])
            self.assertIn("r", server.answer()[1])

    def test_concurrent_checks_share_one_call(self):
        code = """
import threading
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        self.go, self.calls = threading.Event(), 0
    def execute(self, requests):
        self.go.set()
        return [pb.InferenceResponse(parameters={"calls": self.calls})]
    def is_ready(self):
        self.calls += 1
        self.go.wait(15)
        return True
"""
        with FakeServer(code) as server:
            for number in range(16):
                server.tell(CHECK_READY, {"n": number})
            # DUMP_STACKS is answered after the 16 checks have been taken up.
            server.tell(18, {"n": 99})
            server.wait(35)
            server.execute({"inputs": {}})
            self.assertEqual({server.wait(READY)[0]["n"] for _ in range(16)}, set(range(16)))
            self.assertEqual(server.execute({"inputs": {}})["r"][0]["p"], '{"calls": 1}')


class ReadinessAlone(unittest.TestCase):
    # P2.ready.limit@local P2.ready.late@local
    def test_a_check_past_its_limit_goes_on_and_its_result_is_shared_later(self):
        from nereid_model.event_loop import EventLoop
        from nereid_model.readiness import Readiness

        go, calls = threading.Event(), []

        def check():
            calls.append(1)
            go.wait(15)
            return True

        readiness = Readiness(check, "m_0_0", EventLoop(), limit_seconds=0.01)
        results = queue.Queue()
        readiness.answer(results.put)
        self.assertEqual(results.get(timeout=15), "Timed out waiting for user-defined is_ready() response")
        patient = Readiness(check, "m_0_0", EventLoop())
        patient._running = readiness._running
        patient.answer(results.put)
        go.set()
        self.assertIsNone(results.get(timeout=15))
        self.assertEqual(len(calls), 1)


class Handshake(unittest.TestCase):
    def test_the_data_socket_is_private_and_leaves_no_file(self):
        with FakeServer(NOTHING, start=False) as server:
            server.tell(10, server.settings)
            server.wait(LISTENING)
            self.assertEqual(os.stat(server.path).st_mode & 0o777, 0o600)
            server.data = socket.socket(socket.AF_UNIX)
            server.data.connect(server.path)
            server.wait(STARTED)
            self.assertFalse(os.path.exists(server.path))


if __name__ == "__main__":
    unittest.main()
