"""Requests: those that the server hands to a model, and those that a model makes to others."""

from __future__ import annotations

import json
from typing import Any, Awaitable, Iterable, Optional, Union

from .calls import ResponseIterator, async_infer, infer
from .errors import TritonModelException, expect, expect_int, expect_text
from .flags import REQUEST_RELEASE_ALL, REQUEST_RELEASE_RESCHEDULE
from .memory import PreferredMemory
from .parameters import encode_parameters
from .response import InferenceResponse
from .sender import InferenceResponseSender, RequestState, take_sender
from .tensor import Tensor
from .trace import InferenceTrace

_REQUIRED: Any = object()
# Unsigned integers of the protocol, and its versions.
_MOST_32, _MOST_64, _MOST_VERSION = (1 << 32) - 1, (1 << 64) - 1, (1 << 63) - 1
_ANY_MEMORY = PreferredMemory()
_NO_TRACE = InferenceTrace()


class InferenceRequest:
    """A request for one inference."""

    # Of a request that the server has sent.
    _id = ""
    _correlation: Union[int, str] = 0
    _model = ""
    _version = -1
    _flags = 0
    _timeout = 0
    _trace: Any = None
    _parameters: Optional[str] = None
    _state: Optional[RequestState] = None
    _sender: Optional[InferenceResponseSender] = None

    def __init__(
        self,
        request_id: str = "",
        correlation_id: Union[int, str] = 0,
        inputs: Iterable[Tensor] = _REQUIRED,
        requested_output_names: Iterable[str] = _REQUIRED,
        model_name: str = _REQUIRED,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory = _ANY_MEMORY,
        trace: InferenceTrace = _NO_TRACE,
        parameters: Optional[dict[str, Any]] = None,
    ) -> None:
        for name, value in (("inputs", inputs), ("requested_output_names", requested_output_names)):
            if value is _REQUIRED or value is None or isinstance(value, (str, bytes)):
                raise TypeError(f"{name} must be a list" + ("" if value is _REQUIRED else f", not {type(value)}"))
        if model_name is _REQUIRED:
            raise TypeError("model_name must be str")
        self._id = expect_text("request_id", request_id)
        if isinstance(correlation_id, bool) or not isinstance(correlation_id, (int, str)):
            if correlation_id is None:
                raise TypeError("correlation_id must be int or str, not NoneType")
            raise TritonModelException("Correlation ID must be integer or string")
        if isinstance(correlation_id, str):
            self._correlation = expect_text("correlation_id", correlation_id)
        else:
            self._correlation = expect_int("correlation_id", correlation_id, 0, _MOST_64)
        self._model = expect_text("model_name", model_name)
        tensors = list(inputs)
        for tensor in tensors:
            if tensor is None:
                raise TritonModelException(
                    f"Input tensor for request with id '{request_id}' and model name '{model_name}' should not be "
                    "empty."
                )
            expect("inputs", tensor, Tensor)
        self._inputs = tensors
        self._requested = list(requested_output_names)
        for name in self._requested:
            expect_text("requested_output_names", name)
        self._version = expect_int("model_version", model_version, -1, _MOST_VERSION)
        self._flags = expect_int("flags", flags, 0, _MOST_32)
        self._timeout = expect_int("timeout", timeout, 0, _MOST_64)
        expect("preferred_memory", preferred_memory, PreferredMemory)
        self._trace = expect("trace", trace, InferenceTrace)
        self._parameters = encode_parameters(parameters)

    @classmethod
    def _received(
        cls, header: dict[str, Any], inputs: list[Tensor], state: RequestState, outputs: Optional[list[str]]
    ) -> InferenceRequest:
        request = cls.__new__(cls)
        request._inputs = inputs
        request._state = state
        request._requested = header.get("o", outputs) or []
        # Most requests have nothing but inputs.
        if len(header) > 1:
            request._id = header.get("id", "")
            request._correlation = header.get("c", 0)
            request._flags = header.get("f", 0)
            request._timeout = header.get("to", 0)
            request._trace = header.get("tr")
            request._parameters = header.get("p")
        return request

    def inputs(self) -> list[Tensor]:
        """Input tensors in the order of the request."""
        return self._inputs

    def request_id(self) -> str:
        return self._id

    def correlation_id(self) -> Union[int, str]:
        """Number or name of the request's sequence; 0 outside sequences."""
        return self._correlation

    def flags(self) -> int:
        """Sequence flags."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        self._flags = expect_int("flags", flags, 0, _MOST_32)

    def timeout(self) -> int:
        """Timeout in microseconds; 0 for none."""
        return self._timeout

    def parameters(self) -> str:
        """Parameters as JSON text."""
        return "{}" if self._parameters is None else self._parameters

    def trace(self) -> InferenceTrace:
        """Trace of the request; pass it on to requests to other models."""
        if not isinstance(self._trace, InferenceTrace):
            self._trace = InferenceTrace._of(self._trace)
        return self._trace

    def requested_output_names(self) -> set[str]:
        return set(self._requested)

    def model_name(self) -> str:
        """Name of the model that the request is for."""
        return self._model

    def preferred_memory(self) -> PreferredMemory:
        return PreferredMemory()

    def is_cancelled(self) -> bool:
        """Whether the client has cancelled the request."""
        return self._state is not None and self._state.cancelled

    def get_response_sender(self) -> InferenceResponseSender:
        """The sender of this request's responses."""
        if self._sender is None:
            self._sender = take_sender(self._state)
        return self._sender

    def set_release_flags(self, flags: int) -> None:
        """Sets what happens to the request when execute returns."""
        flags = expect_int("flags", flags)
        if flags not in (REQUEST_RELEASE_ALL, REQUEST_RELEASE_RESCHEDULE):
            raise TritonModelException("Unable to set request release flags. Unsupported flag provided.")
        if self._state is None:
            raise TritonModelException("Unable to set request release flags. The request was made by the model.")
        self._state.release_flags = flags

    def exec(self, decoupled: bool = False) -> Union[InferenceResponse, ResponseIterator]:
        """Runs the request on its model and waits for the response, or for the first of several."""
        return infer(self._call_header(decoupled), self._inputs, decoupled)

    def async_exec(self, decoupled: bool = False) -> Awaitable[Union[InferenceResponse, ResponseIterator]]:
        """Runs the request on its model; needs a running event loop."""
        return async_infer(self._call_header(decoupled), self._inputs, decoupled)

    def _call_header(self, decoupled: bool) -> dict[str, Any]:
        if not self._model:
            raise TritonModelException("A request that the model received cannot be executed; make a new one.")
        header: dict[str, Any] = {"model": self._model, "decoupled": bool(decoupled), "o": self._requested}
        if self._version >= 0:
            header["version"] = str(self._version)
        context = self.trace().get_context()
        for key, value in (
            ("id", self._id),
            ("c", self._correlation),
            ("f", self._flags),
            ("to", self._timeout),
            ("p", self._parameters),
            ("tr", context),
        ):
            if value:
                header[key] = value
        return header

    def __repr__(self) -> str:
        return f"InferenceRequest(request_id={self._id!r}, inputs={self._inputs!r})"


def parameters_of(request: InferenceRequest) -> dict[str, Any]:
    """Parameters of a request as a dict."""
    return json.loads(request.parameters() or "{}")
