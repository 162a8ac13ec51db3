"""Log lines of a model in the server's log, with the file and line of the caller."""

from __future__ import annotations

import enum
import os
import sys

from .errors import expect
from .host import current_host


class LogLevel(enum.IntEnum):
    """Level of a log line."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


class Logger:
    """Writes to the server's log, as its log settings allow."""

    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: LogLevel = LogLevel.INFO) -> None:
        _write(message, expect("level", level, LogLevel))

    @staticmethod
    def log_info(message: str) -> None:
        _write(message, LogLevel.INFO)

    @staticmethod
    def log_warn(message: str) -> None:
        _write(message, LogLevel.WARNING)

    @staticmethod
    def log_error(message: str) -> None:
        _write(message, LogLevel.ERROR)

    @staticmethod
    def log_verbose(message: str) -> None:
        _write(message, LogLevel.VERBOSE)


def _write(message: str, level: LogLevel) -> None:
    expect("message", message, str)
    host = current_host()
    if not host.log_levels.allows(level):
        return
    # Two frames up: the caller of the public function.
    frame = sys._getframe(2)
    host.log(int(level), message, os.path.basename(frame.f_code.co_filename), frame.f_lineno)
