"""Registry of the requests under way, so that a cancellation finds its request."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Iterable

from .sender import RequestState

# Cancellations kept for requests that the process has not read yet; numbers of executions are never used again.
_EARLY_LIMIT = 1024


class OpenRequests:
    """Open requests by number of execution and index."""

    __slots__ = ("_early", "_lock", "_open")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, int], RequestState] = {}
        self._early: OrderedDict[tuple[int, int], None] = OrderedDict()

    def add(self, states: Iterable[RequestState]) -> None:
        with self._lock:
            for state in states:
                key = (state.execution, state.index)
                self._open[key] = state
                if self._early and key in self._early:
                    del self._early[key]
                    state.cancelled = True

    def cancel(self, execution: int, index: int) -> None:
        """Marks a request as cancelled, also one that has not been read yet."""
        key = (execution, index)
        with self._lock:
            state = self._open.get(key)
            if state is not None:
                state.cancelled = True
                return
            self._early[key] = None
            if len(self._early) > _EARLY_LIMIT:
                self._early.popitem(last=False)

    def forget(self, execution: int, index: int) -> None:
        self._open.pop((execution, index), None)

    def __len__(self) -> int:
        return len(self._open)
