"""Calls of other models (business logic scripting): one response, or an iterator of several.

The control thread receives replies and puts them into a queue of the call, where the caller waits. A decoupled model
waits for its caller: the server sends no further responses while the caller has not read the last ones.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Optional, Sequence, Union

from .errors import TritonModelException
from .host import Call, Host, OnReply, Phase, current_host
from .response import InferenceResponse
from .tensor import Tensor

if TYPE_CHECKING:
    from .cleanup import Cleanup

_ONLY_IN_EXECUTE = "BLS is only supported during the 'execute' function."

# Responses of a call that may be there before they are read.
_AHEAD = 16

# The calls of this process that have several responses, until the last has come.
_streams: dict[_ResponseStream, None] = {}

# The streams of a fork's parent are not its own.
os.register_at_fork(after_in_child=_streams.clear)


class _ResponseStream:
    """Responses of one call, as far as they have come."""

    __slots__ = ("arrived", "caller", "changed", "complete", "cancel", "dropped", "model", "_free", "_give", "_read")

    def __init__(self, model: str, caller: int) -> None:
        self.model = model
        self.caller = caller
        self.arrived: list[InferenceResponse] = []
        self.complete = False
        # Nothing can read the responses any more.
        self.dropped = False
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
            if not self.dropped:
                self.arrived.append(response)
            self.complete = final
            self.changed.notify_all()
        if final:
            _streams.pop(self, None)

    def read(self, index: int) -> int:
        """Counts a response that is read, and returns how many more the server may send: 0 for none yet."""
        if index < self._read:
            return 0
        self._read = index + 1
        count = self._read - self._free
        if self.complete or count < _AHEAD // 2:
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
            self.dropped = True
            self.arrived.clear()
        _streams.pop(self, None)
        self.give(0)


class ResponseIterator:
    """Responses of a decoupled call, in the order of arrival; a second iteration replays them."""

    __slots__ = ("_cleanup", "_next", "_stream", "__weakref__")

    def __init__(self, stream: _ResponseStream, cleanup: Cleanup) -> None:
        self._stream = stream
        self._cleanup = cleanup
        self._next = 0

    def __iter__(self) -> ResponseIterator:
        self._next = 0
        return self

    def __next__(self) -> InferenceResponse:
        stream = self._stream
        with stream.changed:
            while self._next >= len(stream.arrived):
                if stream.complete:
                    raise StopIteration
                stream.changed.wait()
            response = stream.arrived[self._next]
            count = stream.read(self._next)
            self._next += 1
        if count:
            stream.give(count)
        return response

    def __aiter__(self) -> ResponseIterator:
        self._next = 0
        return self

    async def __anext__(self) -> InferenceResponse:
        stream = self._stream
        with stream.changed:
            ready = self._next < len(stream.arrived) or stream.complete
        advance: Callable[[], Optional[InferenceResponse]] = lambda: next(self, None)  # noqa: E731
        response = advance() if ready else await asyncio.get_running_loop().run_in_executor(None, advance)
        if response is None:
            raise StopAsyncIteration
        return response

    def cancel(self) -> None:
        """Cancels the call; does nothing once it has ended."""
        stream = self._stream
        with stream.changed:
            cancel = None if stream.complete else stream.cancel
        if cancel is not None:
            cancel()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None and not stream.complete:
            # A finalizer may run anywhere, so another thread sends.
            self._cleanup.add(stream.drop)


def infer(
    header: dict[str, Any], tensors: Sequence[Tensor], decoupled: bool
) -> Union[InferenceResponse, ResponseIterator]:
    """Runs a call and waits for its response, or for the first of several."""
    host = _serving_host()
    first: queue.SimpleQueue[Union[InferenceResponse, ResponseIterator]] = queue.SimpleQueue()
    if not decoupled:
        _call(host, header, tensors, lambda reply, outputs: first.put(InferenceResponse._received(reply, outputs)))
        return first.get()
    iterator = _iterate(header, tensors, first.put)
    first.get()
    return iterator


def async_infer(
    header: dict[str, Any], tensors: Sequence[Tensor], decoupled: bool
) -> Awaitable[Union[InferenceResponse, ResponseIterator]]:
    """Starts a call; the result resolves with its response, or with the iterator once the first of several is there.

    Cancelling the result cancels the call.
    """
    loop = asyncio.get_running_loop()
    host = _serving_host()
    result: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any) -> None:
        if not result.done():
            result.set_result(value)

    def arrived(value: Any) -> None:
        try:
            loop.call_soon_threadsafe(settle, value)
        except RuntimeError:
            # The loop is closed: nobody waits any more.
            pass

    if decoupled:
        iterator = _iterate(header, tensors, arrived)
        cancel = iterator.cancel
    else:
        cancel = _call(
            host, header, tensors, lambda reply, outputs: arrived(InferenceResponse._received(reply, outputs))
        ).cancel
    result.add_done_callback(lambda ended: cancel() if ended.cancelled() else None)
    return result


def _iterate(
    header: dict[str, Any], tensors: Sequence[Tensor], on_first: Callable[[Any], None]
) -> ResponseIterator:
    """Starts a call with several responses; `on_first` gets the iterator when the first has come."""
    host = _serving_host()
    host.cleanup.start()
    stream = _ResponseStream(header["model"], _caller())
    iterator = ResponseIterator(stream, host.cleanup)
    # Until then. The server must not keep the iterator, since its end matters.
    waiting = [iterator]

    def arrive(reply: dict[str, Any], outputs: list[Tensor]) -> None:
        stream.add(InferenceResponse._received(reply, outputs), bool(reply.get("final", 1)))
        if waiting:
            on_first(waiting.pop())

    stream.begin(_call(host, {**header, "credit": _AHEAD}, tensors, arrive))
    return iterator


def _call(host: Host, header: dict[str, Any], tensors: Sequence[Tensor], on_reply: OnReply) -> Call:
    """Starts a call.

    Its caller may wait for it before it reads a response of an earlier call. If that is of the same model, the model
    must not wait for the caller: with one instance, both would wait for ever.
    """
    if _streams:
        caller = _caller()
        for stream in list(_streams):
            if stream.caller == caller and stream.model == header["model"]:
                stream.give(0)
    return host.call(header, tensors, on_reply)


def _caller() -> int:
    """Identifies the running task of asyncio, or the thread."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident() if task is None else id(task)


def _serving_host() -> Host:
    host = current_host()
    if host.phase is not Phase.SERVE:
        raise TritonModelException(_ONLY_IN_EXECUTE)
    return host
