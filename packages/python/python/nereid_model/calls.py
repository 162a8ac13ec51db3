"""Calls of other models (business logic scripting): one response, or an iterator of several.

The control thread receives replies and puts them into a queue of the call, where the caller waits.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import Any, Awaitable, Callable, Optional, Sequence, Union

from .errors import TritonModelException
from .host import Phase, current_host
from .response import InferenceResponse
from .tensor import Tensor

_ONLY_IN_EXECUTE = "BLS is only supported during the 'execute' function."


class ResponseIterator:
    """Responses of a decoupled call, in the order of arrival; a second iteration replays them."""

    __slots__ = ("_arrived", "_cancel", "_changed", "_complete", "_next", "__weakref__")

    def __init__(self) -> None:
        self._arrived: list[InferenceResponse] = []
        self._complete = False
        self._next = 0
        self._changed = threading.Condition()
        self._cancel: Optional[Callable[[], None]] = None

    def __iter__(self) -> ResponseIterator:
        self._next = 0
        return self

    def __next__(self) -> InferenceResponse:
        with self._changed:
            while self._next >= len(self._arrived):
                if self._complete:
                    raise StopIteration
                self._changed.wait()
            response = self._arrived[self._next]
            self._next += 1
            return response

    def __aiter__(self) -> ResponseIterator:
        self._next = 0
        return self

    async def __anext__(self) -> InferenceResponse:
        with self._changed:
            ready = self._next < len(self._arrived) or self._complete
        advance: Callable[[], Optional[InferenceResponse]] = lambda: next(self, None)  # noqa: E731
        response = advance() if ready else await asyncio.get_running_loop().run_in_executor(None, advance)
        if response is None:
            raise StopAsyncIteration
        return response

    def cancel(self) -> None:
        """Cancels the call; does nothing once it has ended."""
        with self._changed:
            cancel = None if self._complete else self._cancel
        if cancel is not None:
            cancel()

    def _add(self, response: InferenceResponse, final: bool) -> None:
        with self._changed:
            self._arrived.append(response)
            self._complete = final
            self._changed.notify_all()


def infer(
    header: dict[str, Any], tensors: Sequence[Tensor], decoupled: bool
) -> Union[InferenceResponse, ResponseIterator]:
    """Runs a call and waits for its response, or for the first of several."""
    host = _serving_host()
    first: queue.SimpleQueue[Union[InferenceResponse, ResponseIterator]] = queue.SimpleQueue()
    if not decoupled:
        host.call(header, tensors, lambda reply, outputs: first.put(InferenceResponse._received(reply, outputs)))
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
        cancel = host.call(
            header, tensors, lambda reply, outputs: arrived(InferenceResponse._received(reply, outputs))
        )
    result.add_done_callback(lambda ended: cancel() if ended.cancelled() else None)
    return result


def _iterate(
    header: dict[str, Any], tensors: Sequence[Tensor], on_first: Callable[[Any], None]
) -> ResponseIterator:
    """Starts a call with several responses; `on_first` gets the iterator when the first has come."""
    iterator = ResponseIterator()
    come = False

    def arrive(reply: dict[str, Any], outputs: list[Tensor]) -> None:
        nonlocal come
        iterator._add(InferenceResponse._received(reply, outputs), bool(reply.get("final", 1)))
        if not come:
            come = True
            on_first(iterator)

    iterator._cancel = _serving_host().call(header, tensors, arrive)
    return iterator


def _serving_host() -> Any:
    host = current_host()
    if host.phase is not Phase.SERVE:
        raise TritonModelException(_ONLY_IN_EXECUTE)
    return host
