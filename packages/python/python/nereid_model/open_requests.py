"""Registry of the requests under way, so that a cancellation finds its request."""

from __future__ import annotations

import threading
from collections import OrderedDict

from .sender import RequestState

# Cancellations kept for requests that the process has not read yet; numbers of executions are never used again.
_EARLY_LIMIT = 1024


class OpenRequests:
    """Requests of the executions under way, by number of execution and index."""

    __slots__ = ("_early", "_is_released", "_lock", "_open")

    def __init__(self) -> None:
        self._open: dict[int, list[RequestState]] = {}
        self._early: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._lock = threading.Lock()
        self._is_released = False

    def add(self, execution: int, states: list[RequestState]) -> None:
        with self._lock:
            self._open[execution] = states
            if self._early:
                for state in states:
                    if self._early.pop((execution, state.index), state) is None:
                        state.cancel()
            if self._is_released:
                for state in states:
                    state.end_waiting()

    def cancel(self, execution: int, index: int) -> None:
        """Marks a request as cancelled, also one that has not been read yet."""
        with self._lock:
            if self._mark(execution, index):
                return
            self._early[(execution, index)] = None
            if len(self._early) > _EARLY_LIMIT:
                self._early.popitem(last=False)

    def _mark(self, execution: int, index: int) -> bool:
        states = self._open.get(execution)
        if states is None or index >= len(states):
            return False
        states[index].cancel()
        return True

    def give(self, execution: int, index: int, count: int) -> None:
        """Lets a request send as many further responses; does nothing for one that is complete."""
        states = self._open.get(execution)
        credit = states[index].credit if states is not None and index < len(states) else None
        if credit is not None:
            credit.give(count)

    def release(self) -> None:
        """Ends all waiting for readers, now and later: the process is to stop."""
        with self._lock:
            self._is_released = True
            for states in list(self._open.values()):
                for state in states:
                    state.end_waiting()

    def end(self, execution: int) -> None:
        """Removes an execution whose requests are closed."""
        self._open.pop(execution, None)

    def forget(self, execution: int) -> None:
        """Removes an execution once all of its requests are closed."""
        states = self._open.get(execution)
        if states is not None and all(state.closed for state in states):
            self.end(execution)

    def __len__(self) -> int:
        return len(self._open)
