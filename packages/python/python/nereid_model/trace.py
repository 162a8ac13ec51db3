"""Trace of a request, to be passed on to requests to other models."""

from __future__ import annotations

from typing import Optional


class InferenceTrace:
    """Context of a trace, opaque to models."""

    __slots__ = ("_context",)

    _context: Optional[str]

    def __init__(self) -> None:
        self._context = None

    @classmethod
    def _of(cls, context: Optional[str]) -> InferenceTrace:
        trace = cls.__new__(cls)
        trace._context = context
        return trace

    def get_context(self) -> Optional[str]:
        """The OpenTelemetry context as JSON text; None without a trace."""
        return self._context
