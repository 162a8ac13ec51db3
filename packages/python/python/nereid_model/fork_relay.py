"""Connection of forked processes: a relay in the process that forked them.

The process of a model may fork, for example for `multiprocessing.Pool`. The fork gets one end of a socket pair as its
control connection, and a thread of the parent passes its frames on under other numbers. The fork ends when the parent
does.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import Any, Callable, Optional, Sequence

from .buffers import Buffers
from .control import read_control
from .errors import ErrorCode
from .frames import Frame, FrameSocket, Kind, ProtocolError
from .server_host import ServerHost, error_header, no_memory
from .shared_bodies import SharedBodies


class ForkRelay:
    """Connects forks of this process, and of its forks."""

    def __init__(
        self,
        host: ServerHost,
        buffers: Buffers,
        in_fork: Callable[[], None],
        shared: Sequence[SharedBodies] = (),
    ) -> None:
        self._host = host
        self._buffers = buffers
        self._shared = shared
        # Closes and resets in a fork what belongs to the parent alone.
        self._in_fork = in_fork
        self._pairs = threading.local()
        self._relays: set[FrameSocket] = set()

    def install(self) -> None:
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
        )

    def _before_fork(self) -> None:
        self._pairs.bodies = [shared.copy_lent() for shared in self._shared]
        try:
            self._pairs.pair = socket.socketpair()
        except OSError:
            self._pairs.pair = None

    def _after_in_parent(self) -> None:
        self._pairs.bodies = None
        pair = self._pairs.pair
        self._pairs.pair = None
        if pair is None:
            return
        pair[1].close()
        relay = FrameSocket(pair[0], self._buffers.take)
        self._relays.add(relay)
        threading.Thread(target=self._relay, args=(relay,), name="nereid-fork-relay", daemon=True).start()

    def _after_in_child(self) -> None:
        for shared, bodies in zip(self._shared, self._pairs.bodies):
            shared.detach(bodies)
        self._pairs.bodies = None
        pair = self._pairs.pair
        self._pairs.pair = None
        self._host.control.close()
        for relay in list(self._relays):
            relay.close()
        self._relays.clear()
        self._in_fork()
        if pair is None:
            # Calls then fail with a closed socket.
            return
        pair[0].close()
        # Another thread may have left the lock of the old ones.
        self._buffers = Buffers()
        control = FrameSocket(pair[1], self._buffers.take)
        self._host.reconnect(control)
        handlers = {Kind.REPLY: self._host.reply}
        threading.Thread(
            target=read_control, args=(control, handlers, _end_fork), name="nereid-control", daemon=True
        ).start()

    def _relay(self, relay: FrameSocket) -> None:
        numbers: dict[Any, int] = {}
        try:
            while True:
                frame = relay.receive()
                if frame is None:
                    break
                self._pass_on(relay, frame, numbers)
        except (OSError, ProtocolError):
            pass
        self._relays.discard(relay)
        relay.close()
        for number in list(numbers.values()):
            self._host.abandon(number)

    def _pass_on(self, relay: FrameSocket, frame: Frame, numbers: dict[Any, int]) -> None:
        theirs: Optional[int] = frame.header.get("n")
        pieces = [] if frame.body is None else [frame.body]
        count = 0 if frame.body is None else len(frame.body)
        if frame.kind in (Kind.CANCEL_CALL, Kind.CREDIT_CALL):
            ours = numbers.get(theirs)
            if ours is not None:
                self._host.control.send(frame.kind, {**frame.header, "n": ours})
            return
        if theirs is None:
            self._host.control.send(frame.kind, frame.header, pieces, count)
            return

        def receive(reply: Frame) -> bool:
            final = bool(reply.header.get("final", 1))
            header = reply.header
            if reply.lost_body:
                header = error_header(no_memory(reply.lost_body), ErrorCode.INTERNAL, final)
            body = [] if reply.body is None else [reply.body]
            length = 0 if reply.body is None else len(reply.body)
            if final:
                # First, since the fork may end as soon as it has the reply: its open calls are abandoned then.
                numbers.pop(theirs, None)
            try:
                relay.send(Kind.REPLY, {**header, "n": theirs}, body, length)
            except OSError:
                pass
            return final

        numbers[theirs] = self._host.forward(frame.kind, frame.header, pieces, count, receive)


def _end_fork() -> None:
    sys.stderr.flush()
    os._exit(1)
