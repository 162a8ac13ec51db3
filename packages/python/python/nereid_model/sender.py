"""Responses that a model sends itself, at any time and from any thread.

Each request of an execution has one `RequestState`; it outlives the request, because the sender keeps it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional

from .credit import Credit
from .errors import ErrorCode, TritonModelException, expect, expect_int
from .flags import RESPONSE_COMPLETE_FINAL
from .frames import RESPONSE, FrameSocket, encode
from .response import InferenceResponse, response_fields
from .tensor import TensorWriter

if TYPE_CHECKING:
    from .cleanup import Cleanup
    from .mapped import Target

_CLOSED = "Unable to send response. Response sender has been closed."
_ONLY_ONE = "Unable to send response. Non-decoupled model cannot send more than one response."
_NEVER_ANSWERED = "The model returned no response for the request and has sent none."


# Number of this process. It is asked for once, and again after a fork.
_process = os.getpid()


def _after_fork() -> None:
    global _process
    _process = os.getpid()


os.register_at_fork(after_in_child=_after_fork)


class Origin:
    """What all requests of a process have in common."""

    __slots__ = ("cleanup", "credit", "data", "decoupled", "forget")

    def __init__(
        self, data: FrameSocket, cleanup: Cleanup, decoupled: bool, forget: Callable[[int], None], credit: int = 0
    ) -> None:
        self.data = data
        self.cleanup = cleanup
        self.decoupled = decoupled
        # Tells the registry of open requests that one of an execution is complete.
        self.forget = forget
        # Responses of a request that may be ahead of their reader; 0 for any number.
        self.credit = credit if decoupled else 0


class RequestState:
    """What the process knows of one request under way."""

    # Most requests keep these values, so none has a field for them.
    cancelled = False
    # After the final flag, and once the process has answered the request itself.
    closed = False
    # Responses that a sender has sent.
    sent = 0
    # A sender was handed out.
    taken = False
    sender: Any = None
    release_flags = 0
    # Text of an exception that an asynchronous execute raised.
    failure: Optional[str] = None
    # Shared memory for outputs, by their names.
    targets: Optional[dict[str, Target]] = None

    def __init__(self, origin: Origin, execution: int, index: int, requested: Optional[frozenset[str]]) -> None:
        self.origin = origin
        self.execution = execution
        self.index = index
        self.requested = requested
        self.owner = _process
        self.lock = threading.Lock()
        # None for any number of responses.
        self.credit = Credit(origin.credit) if origin.credit else None

    def cancel(self) -> None:
        """Marks the request as one whose caller has left: its responses wait no longer."""
        self.cancelled = True
        self.end_waiting()

    def end_waiting(self) -> None:
        """Lets all senders of the request go on."""
        if self.credit is not None:
            self.credit.release()

    def close(self) -> None:
        """Marks the request as complete."""
        self.closed = True
        self.end_waiting()
        self.origin.forget(self.execution)

    def send(self, response: Optional[InferenceResponse], final: bool, extra: Optional[dict[str, Any]] = None) -> None:
        """Sends one RESPONSE frame; the caller holds the lock and has checked the state."""
        text = f'{{"x":{self.execution},"q":{self.index},"final":{1 if final else 0}'
        tensors = TensorWriter()
        if response is not None:
            text += f",{response_fields(response, self, tensors)}"
        if extra:
            text += f",{encode(extra)[1:-1]}"
        self.origin.data.send(RESPONSE, text + "}", tensors.pieces, tensors.length)

    def lose(self) -> None:
        """Ends a request that nothing can answer any more, because its sender was dropped unclosed."""
        with self.lock:
            if self.closed:
                return
            self.close()
            extra: dict[str, Any] = {"lost": 1}
            if self.failure is not None:
                extra.update(e=self.failure, k=int(ErrorCode.INTERNAL))
            elif not self.origin.decoupled and self.sent == 0:
                extra = {"e": _NEVER_ANSWERED, "k": int(ErrorCode.INTERNAL)}
            self.send(None, True, extra)


class InferenceResponseSender:
    """Sends the responses of one request."""

    __slots__ = ("_state", "__weakref__")

    _state: Optional[RequestState]

    def __init__(self) -> None:
        raise TypeError("a response sender comes from InferenceRequest.get_response_sender()")

    @classmethod
    def _of(cls, state: Optional[RequestState]) -> InferenceResponseSender:
        sender = cls.__new__(cls)
        sender._state = state
        return sender

    def send(self, response: Optional[InferenceResponse] = None, flags: int = 0) -> None:
        """Sends one response, or only the final flag; returns once the connection took it.

        A response first waits until the reader of the request is fewer than START's number of responses behind.
        """
        state = self._state
        if state is None:
            raise TritonModelException(
                "Unable to send response. Response sender has no reference to the decoupled state of the model."
            )
        if response is not None:
            expect("response", response, InferenceResponse)
        flags = expect_int("flags", flags)
        if state.owner != os.getpid():
            raise TritonModelException("Unable to send response. The process that executes the request must send it.")
        while not _try_to_send(state, response, flags):
            # Without the lock, so that another thread can close the request meanwhile.
            state.credit.wait()  # type: ignore[union-attr]

    def is_cancelled(self) -> bool:
        """Whether the client has cancelled the request."""
        return self._state is not None and self._state.cancelled

    def __del__(self) -> None:
        state = getattr(self, "_state", None)
        if state is not None and not state.closed and state.owner == os.getpid():
            # A finalizer may run anywhere, so another thread sends.
            state.origin.cleanup.add(state.lose)


def _try_to_send(state: RequestState, response: Optional[InferenceResponse], flags: int) -> bool:
    """Sends unless the response must wait for credit."""
    with state.lock:
        if state.closed:
            raise TritonModelException(_CLOSED)
        if flags not in (0, RESPONSE_COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        if not state.origin.decoupled:
            if response is not None and state.sent > 0:
                raise TritonModelException(_ONLY_ONE)
            if response is None and state.sent == 0:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
                )
        credit = None if response is None else state.credit
        if credit is not None and not credit.try_take():
            return False
        try:
            state.send(response, flags == RESPONSE_COMPLETE_FINAL)
        except BaseException:
            if credit is not None:
                credit.give(1)
            raise
        if response is not None:
            state.sent += 1
        if flags == RESPONSE_COMPLETE_FINAL:
            state.close()
    return True


def take_sender(state: Optional[RequestState]) -> InferenceResponseSender:
    """The one sender of a request."""
    if state is None:
        return InferenceResponseSender._of(None)
    with state.lock:
        sender = state.sender() if state.sender is not None else None
        if sender is None:
            sender = InferenceResponseSender._of(state)
            state.sender = weakref.ref(sender)
            state.taken = True
        return sender


def check_returned(state: RequestState) -> None:
    """Raises unless a returned response may still answer the request."""
    if state.closed:
        raise TritonModelException(_CLOSED)
    if state.sent > 0:
        raise TritonModelException(_ONLY_ONE)


def never_answered() -> dict[str, Any]:
    """Outcome of a request that got neither a response nor a sender."""
    return {"e": _NEVER_ANSWERED, "k": int(ErrorCode.INTERNAL)}
