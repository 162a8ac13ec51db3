"""Thread that does what finalizers cannot do themselves.

A finalizer can run in the middle of anything, also while its thread holds the lock of a socket.
"""

from __future__ import annotations

import queue
import threading
from typing import Callable


class Cleanup:
    """Runs small tasks in order in a daemon thread, which starts with the first task."""

    __slots__ = ("_starting", "_started", "_tasks")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets the thread and its tasks, in a forked process."""
        # SimpleQueue.put is reentrant, which finalizers need.
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._started = False

    def start(self) -> None:
        """Starts the thread; call it outside finalizers."""
        with self._starting:
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="nereid-cleanup", daemon=True).start()

    def add(self, task: Callable[[], None]) -> None:
        """Queues a task; safe from a finalizer."""
        self._tasks.put(task)

    def wait(self) -> None:
        """Waits until the tasks queued so far are done."""
        done = threading.Event()
        self._tasks.put(done.set)
        self.start()
        done.wait()

    def _run(self) -> None:
        while True:
            task = self._tasks.get()
            try:
                task()
            except Exception:
                # The connection is gone; the process ends with it.
                pass
            del task
