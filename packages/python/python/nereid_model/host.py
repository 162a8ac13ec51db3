"""What runs around a model: the server, through the control connection, or the local runner.

The API's objects (requests, metrics, the logger) reach it through `current_host()`.
"""

from __future__ import annotations

import enum
import threading
from typing import Any, Callable, NamedTuple, Optional, Sequence

from .cleanup import Cleanup
from .errors import TritonModelException
from .tensor import Tensor

# Receives each reply to a call: header and tensors.
OnReply = Callable[[dict[str, Any], list[Tensor]], None]


class Call(NamedTuple):
    """A call of another model, under way."""

    cancel: Callable[[], None]
    # Lets the server send as many further responses; 0 for any number.
    give: Callable[[int], None]


class Phase(enum.Enum):
    """Part of a model's life; calls of other models are allowed only while it serves."""

    AUTO_COMPLETE = "auto_complete_config"
    INITIALIZE = "initialize"
    SERVE = "execute"
    FINALIZE = "finalize"


class LogLevels:
    """Levels that the server writes at present."""

    __slots__ = ("error", "info", "verbose", "warning")

    def __init__(self, verbose: int = 0, info: bool = True, warning: bool = True, error: bool = True) -> None:
        self.verbose = verbose
        self.info = info
        self.warning = warning
        self.error = error

    def allows(self, level: int) -> bool:
        return (self.info, self.warning, self.error, self.verbose > 0)[level]


class Host:
    """Base of both hosts, with what does not depend on a connection."""

    def __init__(self) -> None:
        self.phase = Phase.INITIALIZE
        self.log_levels = LogLevels()
        self._levels_number = 0
        self._changing_levels = threading.Lock()
        self.model_directory = ""
        self.cleanup = Cleanup()

    def set_log_levels(self, header: dict[str, Any]) -> None:
        """Takes over the server's log settings. They come on both sockets; older ones than the known do not count."""
        number = int(header.get("n") or 0)
        with self._changing_levels:
            if number and number <= self._levels_number:
                return
            self._levels_number = number
            self.log_levels = LogLevels(
                int(header.get("verbose") or 0),
                bool(header.get("info", True)),
                bool(header.get("warning", True)),
                bool(header.get("error", True)),
            )

    def log(self, level: int, text: str, file: str, line: int) -> None:
        """Writes one line to the server's log."""
        raise NotImplementedError

    def call(self, header: dict[str, Any], tensors: Sequence[Tensor], on_reply: OnReply) -> Call:
        """Starts an inference of another model; `on_reply` runs in another thread."""
        raise NotImplementedError

    def control_model(self, header: dict[str, Any], pieces: Sequence[Any] = (), body_bytes: int = 0) -> Any:
        """Loads, unloads or checks a model; returns the result or raises TritonModelException."""
        raise NotImplementedError

    def metric(self, header: dict[str, Any]) -> Any:
        """Does one operation on metrics; returns the result or raises TritonModelException."""
        raise NotImplementedError

    def drop_metric(self, header: dict[str, Any]) -> None:
        """Releases a metric or a family; safe from a finalizer, and does not wait."""
        raise NotImplementedError


_current: Optional[Host] = None


def current_host() -> Host:
    """The host of this process; raises TritonModelException outside a model's process."""
    if _current is None:
        raise TritonModelException(
            "This is only available while a server or `python -m nereid_model` runs the model."
        )
    return _current


def set_current_host(host: Optional[Host]) -> None:
    """Sets the host of this process."""
    global _current
    _current = host
