"""Responses of a model, of its own and of the models that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Optional

from .errors import ErrorCode, TritonError, TritonModelException, cut, expect
from .frames import encode
from .parameters import encode_parameters
from .tensor import Tensor, TensorWriter

if TYPE_CHECKING:
    from .sender import RequestState


class InferenceResponse:
    """Output tensors, or an error, for one request."""

    __slots__ = ("_error", "_parameters", "_tensors")

    def __init__(
        self,
        output_tensors: Iterable[Tensor] = (),
        error: Optional[TritonError] = None,
        parameters: Optional[dict[str, Any]] = None,
    ) -> None:
        if output_tensors is None or isinstance(output_tensors, (str, bytes, Tensor)):
            raise TypeError(f"output_tensors must be a list of Tensor, not {type(output_tensors).__name__}")
        tensors = list(output_tensors)
        for tensor in tensors:
            if type(tensor) is Tensor:
                continue
            if tensor is None:
                raise TritonModelException("Output tensor for inference response should not be empty.")
            expect("output_tensors", tensor, Tensor)
        if error is not None:
            expect("error", error, TritonError)
        self._tensors = tensors
        self._error = error
        self._parameters = None if parameters is None else encode_parameters(parameters)

    @classmethod
    def _received(cls, header: dict[str, Any], tensors: list[Tensor]) -> InferenceResponse:
        response = cls.__new__(cls)
        response._tensors = tensors
        response._error = None
        response._parameters = header.get("p")
        if "e" in header:
            response._error = TritonError(str(header["e"]), _code_of(header.get("k", 1)))
        return response

    def output_tensors(self) -> list[Tensor]:
        """The output tensors; the list may be changed."""
        return self._tensors

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> Optional[TritonError]:
        return self._error

    def parameters(self) -> str:
        """Parameters as JSON text."""
        return "{}" if self._parameters is None else self._parameters


def response_fields(response: InferenceResponse, state: RequestState, tensors: TensorWriter) -> str:
    """Fields of a response as JSON, without braces; `tensors` gets the outputs that the request wants."""
    error = response._error
    if error is not None:
        return encode({"e": cut(error.message()), "k": int(error.code())})[1:-1]
    # A caller that has cancelled may already use its shared memory for something else.
    targets = None if state.cancelled else state.targets
    text = f'"o":[{tensors.add(response._tensors, state.requested, targets)}]'
    if response._parameters is None or response._parameters == "{}":
        return text
    return f'"p":{encode(response._parameters)},{text}'


def _code_of(number: Any) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.INTERNAL
