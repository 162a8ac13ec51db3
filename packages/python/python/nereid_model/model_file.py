"""Import of a model's file, as Triton does it, with its folders at the end of sys.path.

The name is `<version>.<stem>`, and `<stem>` for the file of a backend.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from typing import Any

from .errors import TritonModelException, cut, describe_exception
from .start import Start

PACKAGE_DIRECTORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def extend_path(start: Start) -> None:
    """Appends the folders from which a model may import."""
    folders = [os.path.dirname(os.path.abspath(start.file))] if start.file else []
    folders += [folder for folder in (start.version_dir, start.model_dir, PACKAGE_DIRECTORY) if folder]
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)


def import_api() -> None:
    """Imports the API's modules, so that a model gets these and no others of the same name."""
    for name in ("triton_python_backend_utils", "c_python_backend_utils"):
        if name not in sys.modules:
            path = os.path.join(PACKAGE_DIRECTORY, name + ".py")
            _load(name, path)


def import_model(file: str, module: str = "", version_dir: str = "") -> types.ModuleType:
    """Imports the model's file, or a module by its dotted name. A file beside `version_dir` is that of a backend."""
    if module:
        return importlib.import_module(module)
    path = os.path.abspath(file)
    if not os.path.isfile(path):
        raise TritonModelException(f"Python model file not found in '{file}'")
    if not path.endswith(".py"):
        raise TritonModelException(f"The name of a Python model's file must end in .py: '{file}'")
    folder, base = os.path.split(path)
    stem = base[: -len(".py")]
    # The folders are compared, since the file itself may be a link to elsewhere.
    if version_dir and os.path.realpath(folder) != os.path.realpath(version_dir):
        return _load(stem, path)
    # A namespace package for the folder, so that `from . import other` works. A folder that is no version directory
    # gets a name that hides no other module.
    parent = os.path.basename(folder)
    if not parent.isdigit():
        parent = f"folder_of_model.{parent}".replace(".", "_")
    package = sys.modules.get(parent)
    if package is None or list(getattr(package, "__path__", [])) != [folder]:
        package = types.ModuleType(parent)
        package.__path__ = [folder]
        sys.modules[parent] = package
    loaded = _load(f"{parent}.{stem}", path)
    setattr(package, stem, loaded)
    return loaded


def _load(name: str, path: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def model_class(module: types.ModuleType) -> Any:
    """The class of a Triton model."""
    return module.TritonPythonModel


def describe_load_error(error: BaseException) -> dict[str, Any]:
    """Fields of STARTED for an exception: its text, and for a missing package its name and how to install it."""
    fields: dict[str, Any] = {"e": describe_exception(error)}
    if isinstance(error, TritonModelException):
        fields["e"] = cut(str(error))
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing:
        package = missing.partition(".")[0]
        version = ".".join(map(str, sys.version_info[:3]))
        fields["missing"] = missing
        fields["e"] += (
            f"\nThe package '{package}' is missing in {sys.executable} (Python {version}). "
            f"To install it: {sys.executable} -m pip install {_PACKAGES.get(package, package)}"
        )
    return fields


# Packages whose names differ from the modules that they bring.
_PACKAGES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
