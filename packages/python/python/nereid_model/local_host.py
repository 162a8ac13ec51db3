"""Host of a model without a server: log lines are printed and metrics stay in the process."""

from __future__ import annotations

import sys
from typing import Any, Sequence

from .errors import TritonModelException
from .host import Call, Host, OnReply
from .tensor import Tensor

_LEVELS = ("INFO", "WARNING", "ERROR", "VERBOSE")


class LocalHost(Host):
    """Stands in for the server in the local runner."""

    def __init__(self) -> None:
        super().__init__()
        self.log_levels.verbose = 1
        self._families: dict[int, tuple[str, str]] = {}
        self._of_name: dict[str, str] = {}
        # Metrics with the same labels share a value.
        self._keys: dict[int, tuple[str, str, str]] = {}
        self.values: dict[tuple[str, str, str], float] = {}

    def log(self, level: int, text: str, file: str, line: int) -> None:
        sys.stderr.write(f"{_LEVELS[level]} {file}:{line} {text}\n")

    def call(self, header: dict[str, Any], tensors: Sequence[Tensor], on_reply: OnReply) -> Call:
        raise TritonModelException(
            f"The model '{header['model']}' cannot be called here: calls of other models need a server. Serve the "
            "repository with Nereid to run this."
        )

    def control_model(self, header: dict[str, Any], pieces: Sequence[Any] = (), body_bytes: int = 0) -> Any:
        raise TritonModelException("Models can be loaded, unloaded and checked only in a server.")

    def metric(self, header: dict[str, Any]) -> Any:
        operation = header["do"]
        if operation == "family":
            name, kind = header["name"], header["kind"]
            if self._of_name.setdefault(name, kind) != kind:
                raise TritonModelException(f"the family '{name}' exists with the kind {self._of_name[name]}")
            self._families[header["family"]] = (name, kind)
            return True
        if operation == "metric":
            labels = ",".join(f'{key}="{value}"' for key, value in sorted(header["labels"].items()))
            key = (*self._families[header["family"]], labels)
            self._keys[header["metric"]] = key
            self.values.setdefault(key, 0.0)
            return True
        return self._change(operation, header)

    def drop_metric(self, header: dict[str, Any]) -> None:
        pass

    def _change(self, operation: str, header: dict[str, Any]) -> Any:
        key = self._keys[header["metric"]]
        kind = key[1]
        if operation == "value":
            if kind == "histogram":
                raise TritonModelException("a histogram has no single value")
            return self.values[key]
        value = float(header["value"])
        allowed = {"counter": ("increment",), "gauge": ("increment", "set"), "histogram": ("observe",)}[kind]
        if operation not in allowed:
            raise TritonModelException(f"a {kind} does not support {operation}")
        if kind == "counter" and value < 0:
            raise TritonModelException(f"a counter cannot decrease; the increment is {value}")
        self.values[key] = value if operation == "set" else self.values[key] + value
        return True
