"""The one asyncio loop of an instance, in a daemon thread that starts with the first use."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any, Awaitable, Optional


class EventLoop:
    """Runs coroutines of the model."""

    __slots__ = ("_loop", "_starting")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets the loop, in a forked process, where its thread does not exist."""
        self._starting = threading.Lock()
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    def submit(self, awaitable: Awaitable[Any]) -> Future[Any]:
        """Starts an awaitable on the loop."""
        return asyncio.run_coroutine_threadsafe(_coroutine(awaitable), self._started())

    def run(self, awaitable: Awaitable[Any]) -> Any:
        """Runs an awaitable on the loop and waits for its result."""
        return self.submit(awaitable).result()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._serve, args=(self._loop,), name="nereid-asyncio", daemon=True).start()
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()


async def _coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
