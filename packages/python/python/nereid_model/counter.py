"""Numbers for frames and objects, unique in all threads."""

from __future__ import annotations

import itertools
import threading


class Counter:
    """Counts up from 1; any thread may call it, and finalizers too."""

    __slots__ = ("_lock", "_numbers")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Starts again, in a forked process, where another thread may have left the lock."""
        self._numbers = itertools.count(1)
        # Without Python's global lock, two threads may get the same number from `itertools.count`. A finalizer may run
        # while its own thread has this lock.
        self._lock = threading.RLock()

    def next(self) -> int:
        with self._lock:
            return next(self._numbers)
