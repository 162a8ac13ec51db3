"""Errors that the API raises, and errors that a model answers a request with.

`TritonModelException` is raised by this library. `TritonError` is a value, not an exception: a response carries it.
`RequestError` is for plain functions, which have no response object to put an error into.
"""

from __future__ import annotations

import enum
import operator
import os
import traceback
from types import TracebackType
from typing import Any, Optional

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_MACHINERY = (_PACKAGE, _LIBRARY + "asyncio" + os.sep, _LIBRARY + "concurrent" + os.sep, "<frozen importlib")


# A longer text of an error is cut: it travels in the header of a frame.
_TEXT_LIMIT = 256 * 1024


class TritonModelException(Exception):
    """An error that the Python model API raises itself."""


class ErrorCode(enum.IntEnum):
    """Code of a failed request; the server maps it to an HTTP and a gRPC status."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class TritonError:
    """Error of one response: a message and a code."""

    __slots__ = ("_code", "_message")

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        self._message = expect("message", message, str)
        self._code = expect("code", code, ErrorCode)

    def message(self) -> str:
        return self._message

    def code(self) -> ErrorCode:
        return self._code

    def __repr__(self) -> str:
        return f"TritonError({self._message!r}, TritonError.{self._code.name})"


class RequestError(Exception):
    """Raised by a plain function to fail its request with a code; the message reaches the client as it is."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_ARG) -> None:
        super().__init__(message)
        self.code = ErrorCode(code)


class WrongReturn(Exception):
    """An execute returned what it must not; the text reaches the client without the name of this class."""


def expect(name: str, value: Any, *kinds: type) -> Any:
    """Returns `value`, or raises TypeError unless it is an instance of one of `kinds`; bool is no int here."""
    if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
        return value
    expected = " or ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"{name} must be {expected}, not {type(value).__name__}")


def expect_int(name: str, value: Any) -> int:
    """Returns `value` as an int, or raises TypeError unless it is an integer, of NumPy or of Python."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be int, not {type(value).__name__}") from None


def cut(text: str) -> str:
    """Text of an error, cut to a length that fits into a frame."""
    if len(text) <= _TEXT_LIMIT:
        return text
    return f"{text[:_TEXT_LIMIT]}… (cut at {_TEXT_LIMIT} of {len(text)} characters)"


def describe_exception(error: BaseException) -> str:
    """Text of an exception with its frames, innermost first, without the frames of this package."""
    try:
        message = str(error)
    except Exception:
        message = "<the exception has no text>"
    text = f"{type(error).__name__}: {cut(message)}" if message else type(error).__name__
    frames = user_frames(error.__traceback__)
    if not frames:
        return text
    lines = "".join(f"  {frame.filename}({frame.lineno}): {frame.name}\n" for frame in reversed(frames))
    return f"{text}\n\nAt:\n{lines}"


def describe_failure(error: BaseException) -> str:
    """Text of what an execute raised: with frames, except for wrong returns, which have none of interest."""
    return str(error) if isinstance(error, WrongReturn) else describe_exception(error)


def user_frames(trace: Optional[TracebackType]) -> list[traceback.FrameSummary]:
    """Frames of a traceback without those of this package and of the machinery that called it, outermost first."""
    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(_PACKAGE)]
    first = 0
    while first < len(frames) and frames[first].filename.startswith(_MACHINERY):
        first += 1
    return frames[first:]
