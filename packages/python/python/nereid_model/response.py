"""Responses of a model, of its own and of the models that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional, Sequence

from .errors import ErrorCode, TritonError, TritonModelException, cut, expect
from .parameters import encode_parameters
from .tensor import Tensor, wire_parts

if TYPE_CHECKING:
    from .mapped import Target


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
            if tensor is None:
                raise TritonModelException("Output tensor for inference response should not be empty.")
            expect("output_tensors", tensor, Tensor)
        if error is not None:
            expect("error", error, TritonError)
        self._tensors = tensors
        self._error = error
        self._parameters = encode_parameters(parameters)

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

    def _outcome(self, requested: Optional[frozenset[str]]) -> tuple[dict[str, Any], list[Tensor]]:
        """Header of the response without its tensors, and the tensors that the request wants."""
        if self._error is not None:
            return {"e": cut(self._error.message()), "k": int(self._error.code())}, []
        tensors = self._tensors
        if requested is not None:
            tensors = [tensor for tensor in tensors if tensor._name in requested]
        header: dict[str, Any] = {}
        if self._parameters is not None and self._parameters != "{}":
            header["p"] = self._parameters
        return header, tensors


def response_parts(
    response: InferenceResponse,
    requested: Optional[frozenset[str]],
    targets_of: Callable[[Sequence[Tensor]], Sequence[Optional[Target]]],
) -> tuple[dict[str, Any], list[Any], int]:
    """Header of a response with its tensors, the pieces of its body and their length."""
    header, tensors = response._outcome(requested)
    if "e" in header:
        return header, [], 0
    header["o"], pieces, length = wire_parts(tensors, targets_of(tensors))
    return header, pieces, length


def _code_of(number: Any) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.INTERNAL
