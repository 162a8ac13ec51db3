"""The type stubs beside the modules of the API have the names and the signatures of the modules themselves."""

import ast
import importlib
import importlib.util
import inspect
import os
import subprocess
import sys
import tempfile
import unittest

import fake_server  # noqa: F401 (puts the package on the path)

MODULES = ("triton_python_backend_utils", "c_python_backend_utils")
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def stub_of(name):
    with open(os.path.join(FOLDER, name + ".pyi")) as file:
        return ast.parse(file.read()).body


def imports_of(body):
    """Names that a stub has from other modules: the module and the name there, by the name here."""
    return {
        alias.asname: (node.module, alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }


def exported(body):
    """The value of `__all__` in a stub."""
    [node] = [node for node in body if isinstance(node, ast.Assign)]
    assert [target.id for target in node.targets] == ["__all__"], ast.unparse(node)
    return ast.literal_eval(node.value)


def described(signature):
    """Parameters with their kinds, types and defaults, and the type of the result."""
    parameters = [
        (each.name, each.kind, each.annotation, each.default is not inspect.Parameter.empty)
        for each in signature.parameters.values()
    ]
    return parameters, signature.return_annotation


def stub_signature(node):
    """The signature of a function of a stub; its types are texts, as those of the modules are."""
    names = {}
    code = "from __future__ import annotations\n" + ast.unparse(node)
    exec(code, names)  # noqa: S102 (the code is that of the stub)
    return inspect.signature(names[node.name])


class Stubs(unittest.TestCase):
    def test_a_stub_has_every_public_name_and_no_other(self):
        for name in MODULES:
            with self.subTest(name):
                body = stub_of(name)
                functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
                self.assertEqual(exported(body), importlib.import_module(name).__all__)
                self.assertEqual(functions | set(imports_of(body)), set(exported(body)))

    def test_a_name_from_another_module_is_the_one_of_the_module(self):
        for name in MODULES:
            module = importlib.import_module(name)
            for here, (source, there) in imports_of(stub_of(name)).items():
                with self.subTest(f"{name}.{here}"):
                    self.assertIs(getattr(module, here), getattr(importlib.import_module(source), there))

    def test_a_function_has_the_parameters_types_and_defaults_of_the_module(self):
        for name in MODULES:
            module = importlib.import_module(name)
            for node in stub_of(name):
                if isinstance(node, ast.FunctionDef):
                    with self.subTest(f"{name}.{node.name}"):
                        own = inspect.signature(getattr(module, node.name))
                        self.assertEqual(described(stub_signature(node)), described(own))

    def test_other_statements_than_these_are_not_overlooked(self):
        for name in MODULES:
            for node in stub_of(name):
                known = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign)
                self.assertIsInstance(node, known, f"{name}:{node.lineno}")

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "needs mypy")
    def test_stubtest_of_mypy_finds_no_difference(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "mypy.ini")
            with open(config, "w") as file:
                file.write("[mypy]\ncache_dir = /dev/null\n[mypy-nereid_model.*]\nignore_errors = True\n")
            command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--mypy-config-file", config, *MODULES]
            ended = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=150)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
