"""Calls of other models (business logic scripting): one response, or an iterator of several.

The control thread receives replies and puts them into a queue of the call, where the caller waits. A decoupled model
waits for its caller: the server sends no further responses while the caller has not read the last ones.
"""

from __future__ import annotations

import asyncio
import queue
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Optional, Sequence, Union

from .errors import TritonModelException
from .host import Host, Phase, current_host
from .response import InferenceResponse
from .response_stream import AHEAD, ResponseStream, call
from .tensor import Tensor

if TYPE_CHECKING:
    from .cleanup import Cleanup

_ONLY_IN_EXECUTE = "BLS is only supported during the 'execute' function."


class ResponseIterator:
    """Responses of a decoupled call, in the order of arrival; a second iteration replays them."""

    __slots__ = ("_cleanup", "_next", "_stream", "__weakref__")

    def __init__(self, stream: ResponseStream, cleanup: Cleanup) -> None:
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
        call(host, header, tensors, lambda reply, outputs: first.put(InferenceResponse._received(reply, outputs)))
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
        cancel = call(
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
    stream = ResponseStream(header["model"])
    iterator = ResponseIterator(stream, host.cleanup)
    # Until then. The server must not keep the iterator, since its end matters.
    waiting = [iterator]

    def arrive(reply: dict[str, Any], outputs: list[Tensor]) -> None:
        stream.add(InferenceResponse._received(reply, outputs), bool(reply.get("final", 1)))
        if waiting:
            on_first(waiting.pop())

    stream.begin(call(host, {**header, "credit": AHEAD}, tensors, arrive))
    return iterator


def _serving_host() -> Host:
    host = current_host()
    if host.phase is not Phase.SERVE:
        raise TritonModelException(_ONLY_IN_EXECUTE)
    return host
