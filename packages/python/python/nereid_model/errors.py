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


def expect_text(name: str, value: Any) -> str:
    """Returns `value`, or raises TypeError unless it is a str, and ValueError if UTF-8 cannot express it."""
    text: str = expect(name, value, str)
    fault = text_fault(text)
    if fault is not None:
        raise ValueError(f"{name} must be text that UTF-8 can express; {fault}")
    return text


def text_fault(text: str) -> Optional[str]:
    """What UTF-8 cannot express of a text, or None."""
    if text.isascii():
        return None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return surrogate_fault(error)
    return None


def surrogate_fault(error: UnicodeEncodeError) -> str:
    """Text that names the lone surrogate at which encoding failed."""
    return f"character {error.start} is the lone surrogate {ascii(error.object[error.start])}"


def expect_int(name: str, value: Any, least: Optional[int] = None, most: Optional[int] = None) -> int:
    """Returns `value` as an int, or raises TypeError unless it is an integer, of NumPy or of Python, in this range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be int, not {type(value).__name__}") from None
    if (least is not None and number < least) or (most is not None and number > most):
        raise TypeError(f"{name} must be an int from {least} to {most}, not {describe_int(number)}")
    return number


def describe_int(number: int) -> str:
    """The number, or only its length if it is long: Python refuses to print some."""
    return str(number) if number.bit_length() <= 128 else f"one of {number.bit_length()} bits"


def escaped(text: str) -> str:
    """The text, with lone surrogates as escape sequences: file names of other encodings have them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def cut(text: str) -> str:
    """Text of an error that fits into a frame: cut to a length, and with lone surrogates escaped."""
    text = escaped(text)
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
    return f"{text}\n\nAt:\n{escaped(lines)}"


def describe_failure(error: BaseException) -> str:
    """Text of what an execute raised: with frames, except for wrong returns, which have none of interest."""
    return cut(str(error)) if isinstance(error, WrongReturn) else describe_exception(error)


def user_frames(trace: Optional[TracebackType]) -> list[traceback.FrameSummary]:
    """Frames of a traceback without those of this package and of the machinery that called it, outermost first."""
    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(_PACKAGE)]
    first = 0
    while first < len(frames) and frames[first].filename.startswith(_MACHINERY):
        first += 1
    return frames[first:]
