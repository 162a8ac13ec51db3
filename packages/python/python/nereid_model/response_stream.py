"""Responses of calls of decoupled models, which wait for the code that reads them.

A model with one instance may be the one of several calls, of which the code reads one after the other. The others would
wait for it for ever, and it for the code. So a call ends the wait of earlier ones for the code, if they are of the same
model, and the code may wait for the call before it reads.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Callable, Optional, Sequence

from .host import Call, Host, OnReply
from .response import InferenceResponse
from .tensor import Tensor

# Responses of a call that may be there before they are read.
AHEAD = 16

# The calls of this process that have several responses, until the last has come.
_streams: dict[ResponseStream, None] = {}
# The models of the calls without a response yet.
_unanswered: dict[object, str] = {}


def _after_fork() -> None:
    # The calls of the parent are not those of the fork.
    _streams.clear()
    _unanswered.clear()


os.register_at_fork(after_in_child=_after_fork)


class ResponseStream:
    """Responses of one call, as far as they have come."""

    __slots__ = ("arrived", "cancel", "changed", "complete", "_caller", "_dropped", "_free", "_give", "_model", "_read")

    def __init__(self, model: str) -> None:
        self._model = model
        self._caller = _caller()
        self.arrived: list[InferenceResponse] = []
        self.complete = False
        # Nothing can read the responses any more.
        self._dropped = False
        self.changed = threading.Condition()
        self.cancel: Optional[Callable[[], None]] = None
        self._give: Optional[Callable[[int], None]] = None
        # Responses that were read for the first time, and how many of them the server knows.
        self._read = 0
        self._free = 0

    def begin(self, call: Call) -> None:
        """The call is under way."""
        self.cancel = call.cancel
        self._give = call.give
        _streams[self] = None
        if self.complete:
            _streams.pop(self, None)

    def add(self, response: InferenceResponse, final: bool) -> None:
        with self.changed:
            if not self._dropped:
                self.arrived.append(response)
            self.complete = final
            self.changed.notify_all()
        if final:
            _streams.pop(self, None)
        elif self._is_unread() and self._model in list(_unanswered.values()):
            self.give(0)

    def read(self, index: int) -> int:
        """Counts a response that is read, and returns how many more the server may send: 0 for none yet."""
        if index < self._read:
            return 0
        self._read = index + 1
        count = self._read - self._free
        if self.complete or count < AHEAD // 2:
            return 0
        self._free = self._read
        return count

    def give(self, count: int) -> None:
        """Lets the server send as many further responses; 0 for any number."""
        if self._give is not None and not self.complete:
            self._give(count)

    def drop(self) -> None:
        """Lets the called model run to its end."""
        with self.changed:
            self._dropped = True
            self.arrived.clear()
        _streams.pop(self, None)
        self.give(0)

    def may_wait_for(self, model: str, caller: int) -> bool:
        """Whether the model of a new call may wait for the code, which may wait for the call."""
        return self._model == model and (self._caller == caller or self._is_unread())

    def _is_unread(self) -> bool:
        """Whether the model waits, and the code has not begun to read."""
        return self._read == 0 and len(self.arrived) >= AHEAD


def call(host: Host, header: dict[str, Any], tensors: Sequence[Tensor], on_reply: OnReply) -> Call:
    """Starts a call."""
    key, model = object(), header["model"]

    def receive(reply: dict[str, Any], outputs: list[Tensor]) -> None:
        _unanswered.pop(key, None)
        on_reply(reply, outputs)

    _unanswered[key] = model
    if _streams:
        caller = _caller()
        for stream in list(_streams):
            if stream.may_wait_for(model, caller):
                stream.give(0)
    return host.call(header, tensors, receive)


def _caller() -> int:
    """Identifies the running task of asyncio, or the thread."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident() if task is None else id(task)
