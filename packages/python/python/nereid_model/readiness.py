"""The model's own readiness check: one call at a time, shared by all checks that come meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import Future, TimeoutError
from typing import Any, Callable, Optional

from .errors import describe_exception
from .event_loop import EventLoop

LIMIT_SECONDS = 5.0
_TIMED_OUT = "Timed out waiting for user-defined is_ready() response"
_NOT_BOOL = "is_ready() must return a boolean value"


class Readiness:
    """Answers checks with the result of `is_ready`, or with ready where the model has none."""

    def __init__(
        self,
        check: Optional[Callable[[], Any]],
        instance_name: str,
        loop: EventLoop,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> None:
        self._check = check
        self._instance_name = instance_name
        self._loop = loop
        self._limit_seconds = limit_seconds
        self._lock = threading.Lock()
        # The call under way; it goes on after a check has given up on it.
        self._running: Optional[Future[Optional[str]]] = None

    @property
    def checks(self) -> bool:
        """Whether the model has a check of its own."""
        return self._check is not None

    def answer(self, on_result: Callable[[Optional[str]], None]) -> None:
        """Gives `on_result` None for ready, or why not; never blocks."""
        if self._check is None:
            on_result(None)
            return
        with self._lock:
            running = self._running
            if running is None:
                running = self._running = Future()
                threading.Thread(target=self._call, args=(running,), name="nereid-is-ready", daemon=True).start()
        threading.Thread(target=self._wait, args=(running, on_result), name="nereid-ready", daemon=True).start()

    def _wait(self, running: Future[Optional[str]], on_result: Callable[[Optional[str]], None]) -> None:
        try:
            why = running.result(self._limit_seconds)
        except TimeoutError:
            why = _TIMED_OUT
        on_result(why)

    def _call(self, running: Future[Optional[str]]) -> None:
        assert self._check is not None
        try:
            result = self._check()
            if hasattr(result, "__await__"):
                result = self._loop.run(result)
            if not isinstance(result, bool):
                why: Optional[str] = _NOT_BOOL
            elif result:
                why = None
            else:
                why = f"Model '{self._instance_name}' is not ready (user-defined check failed)."
        except BaseException as error:
            why = describe_exception(error)
        with self._lock:
            self._running = None
        running.set_result(why)
