"""How many responses of one request may be ahead of their reader. ResponseCredit.ts of the server is its other half."""

from __future__ import annotations

import asyncio
import threading
from typing import Optional


class Credit:
    """Responses that may be sent now. Each one takes 1, and the server gives it back once a reader has the response."""

    __slots__ = ("_changed", "_left", "_lock", "_waiting")

    def __init__(self, count: int) -> None:
        # None once no reader will take the responses any more.
        self._left: Optional[int] = count
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # Coroutines that wait, each with its loop.
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def try_take(self) -> bool:
        """Takes 1 unless there is none; never waits."""
        with self._lock:
            return self._take()

    def take(self) -> None:
        """Takes 1, and waits for it."""
        with self._lock:
            while not self._take():
                self._changed.wait()

    async def take_later(self) -> None:
        """Takes 1, and waits for it without the thread of the event loop."""
        loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                if self._take():
                    return
                change = loop.create_future()
                self._waiting.append((loop, change))
            await change

    def wait(self) -> None:
        """Waits until there is at least 1, which another thread may take first."""
        with self._lock:
            while self._left == 0:
                self._changed.wait()

    def give(self, count: int) -> None:
        with self._lock:
            if self._left is not None:
                self._left += count
                self._wake()

    def release(self) -> None:
        """Ends all waiting, now and later."""
        with self._lock:
            self._left = None
            self._wake()

    def _take(self) -> bool:
        if self._left is None:
            return True
        if self._left == 0:
            return False
        self._left -= 1
        return True

    def _wake(self) -> None:
        self._changed.notify_all()
        waiting, self._waiting = self._waiting, []
        for loop, change in waiting:
            try:
                loop.call_soon_threadsafe(_settle, change)
            except RuntimeError:
                # The loop is closed: no coroutine waits any more.
                pass


def _settle(change: asyncio.Future[None]) -> None:
    if not change.done():
        change.set_result(None)
