"""Host of a model inside a server's process: sends calls, log lines and metrics over the control socket."""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import Any, Callable, Optional, Sequence

from .counter import Counter
from .errors import ErrorCode, TritonModelException, cut, escaped
from .frames import Frame, FrameSocket, Header, Kind, encode
from .host import Call, Host, OnReply
from .tensor import Tensor, TensorWriter, read_tensors

# Receives each reply frame of a number and returns whether it was the last.
OnFrame = Callable[[Frame], bool]


class _SentCall:
    """A call to another model, sent or waiting for its turn."""

    __slots__ = ("body_bytes", "header", "number", "pieces", "receive", "takes_all")

    def __init__(self, number: int, header: str, pieces: list[Any], count: int, receive: OnFrame) -> None:
        self.number = number
        self.header = header
        self.pieces = pieces
        self.body_bytes = count
        self.receive = receive
        # Whether it takes all responses at once.
        self.takes_all = False


class ServerHost(Host):
    """The server, as the model's API sees it."""

    def __init__(self, control: FrameSocket, calls_at_once: int = 32) -> None:
        super().__init__()
        self._calls_at_once = calls_at_once
        self.reconnect(control)

    def reconnect(self, control: FrameSocket) -> None:
        """Starts afresh on another connection, in a forked process."""
        self.control = control
        self._lock = threading.Lock()
        self._numbers = Counter()
        self._pending: dict[int, OnFrame] = {}
        self._calls = 0
        self._waiting: deque[_SentCall] = deque()

    def log(self, level: int, text: str, file: str, line: int) -> None:
        self.control.send(Kind.LOG, {"l": [[level, cut(text), escaped(file), line]]})

    def control_model(self, header: dict[str, Any], pieces: Sequence[Any] = (), body_bytes: int = 0) -> Any:
        return self._ask(Kind.CONTROL_MODEL, header, pieces, body_bytes)

    def metric(self, header: dict[str, Any]) -> Any:
        return self._ask(Kind.METRIC, header)

    def drop_metric(self, header: dict[str, Any]) -> None:
        # The reply has no receiver and is dropped.
        self.control.send(Kind.METRIC, {"n": self._numbers.next(), **header})

    def forward(
        self, kind: int, header: dict[str, Any], pieces: Sequence[Any], body_bytes: int, receive: OnFrame
    ) -> int:
        """Sends a frame under a new number, which is returned; `receive` gets its replies."""
        number = self._numbers.next()
        self._pending[number] = receive
        self.control.send(kind, {**header, "n": number}, pieces, body_bytes)
        return number

    def abandon(self, number: int) -> None:
        """Cancels a call whose replies nobody waits for."""
        if self._pending.pop(number, None) is not None:
            self.control.send(Kind.CANCEL_CALL, {"n": number})

    def call(self, header: dict[str, Any], tensors: Sequence[Tensor], on_reply: OnReply) -> Call:
        number = self._numbers.next()
        writer = TensorWriter()
        text = f'{encode({**header, "n": number})[:-1]},"i":[{writer.add(tensors)}]}}'

        def receive(frame: Frame) -> bool:
            final = bool(frame.header.get("final", 1))
            if frame.lost_body:
                on_reply(error_header(no_memory(frame.lost_body), ErrorCode.INTERNAL, final), [])
            else:
                on_reply(frame.header, read_tensors(frame.header.get("o") or (), frame.body))
            return final

        call = _SentCall(number, text, writer.pieces, writer.length, receive)
        with self._lock:
            waits = self._calls >= self._calls_at_once
            if waits:
                self._waiting.append(call)
            else:
                self._calls += 1
        if not waits:
            self._send_call(call)
        return Call(lambda: self._cancel(call), lambda count: self._give(call, count))

    def reply(self, frame: Frame) -> None:
        """Hands a REPLY frame to whoever waits for it; runs in the control thread."""
        number = frame.header.get("n")
        receive = self._pending.get(number)  # type: ignore[arg-type]
        if receive is None:
            return
        if receive(frame):
            self._pending.pop(number, None)  # type: ignore[arg-type]

    def _send_call(self, call: _SentCall) -> None:
        receive = call.receive

        def receive_call(frame: Frame) -> bool:
            final = receive(frame)
            if final:
                self._next_call()
            return final

        self._pending[call.number] = receive_call
        self.control.send(Kind.CALL, call.header, call.pieces, call.body_bytes)
        if call.takes_all:
            self.control.send(Kind.CREDIT_CALL, {"n": call.number, "c": 0})

    def _next_call(self) -> None:
        with self._lock:
            call: Optional[_SentCall] = self._waiting.popleft() if self._waiting else None
            if call is None:
                self._calls -= 1
        if call is not None:
            self._send_call(call)

    def _give(self, call: _SentCall, count: int) -> None:
        if count == 0:
            # First, for a call that another thread sends now.
            call.takes_all = True
        if call.number in self._pending:
            self.control.send(Kind.CREDIT_CALL, {"n": call.number, "c": count})

    def _cancel(self, call: _SentCall) -> None:
        with self._lock:
            waits = call in self._waiting
            if waits:
                self._waiting.remove(call)
        if waits:
            header = error_header("The call was cancelled.", ErrorCode.CANCELLED, True)
            call.receive(Frame(Kind.REPLY, Header(header), None))
        elif call.number in self._pending:
            self.control.send(Kind.CANCEL_CALL, {"n": call.number})

    def _ask(self, kind: int, header: dict[str, Any], pieces: Sequence[Any] = (), body_bytes: int = 0) -> Any:
        """Sends a frame and waits for its reply; raises TritonModelException with the text of an error."""
        replies: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

        def receive(frame: Frame) -> bool:
            replies.put(frame.header)
            return True

        self.forward(kind, header, pieces, body_bytes, receive)
        reply = replies.get()
        if "e" in reply:
            raise TritonModelException(str(reply["e"]))
        return reply.get("ok")


def error_header(text: str, code: ErrorCode, final: bool) -> dict[str, Any]:
    """Header of a reply with an error."""
    return {"e": text, "k": int(code), "final": 1 if final else 0}


def no_memory(count: int) -> str:
    """Text for a response that the process cannot hold."""
    return f"The response of {count} bytes does not fit into the memory of the calling model's process."
