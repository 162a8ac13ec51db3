"""Pool of receive buffers.

A buffer is lent as a NumPy array of bytes. Tensors are views of it, so the buffer comes back by itself when the last
view is gone: NumPy keeps the lent array as the base of every view, and a weak reference tells of its end. The memory
itself must not be an array: NumPy would make that the base of the views and let the lent array go.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

# A small buffer is cheaper to allocate than to track.
_SMALL = 4 * 1024
_KEPT_OF_A_SIZE = 8
_KEPT_BYTES = 256 * 1024 * 1024


class Buffers:
    """Lends writable buffers and keeps the returned ones for reuse, up to a number of bytes."""

    __slots__ = ("_free", "_kept", "_limit", "_lent", "_lock", "_returned", "__weakref__")

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._free: dict[int, list[bytearray]] = {}
        self._kept = 0
        self._limit = kept_bytes
        # The weak references must live as long as the arrays that they watch.
        self._lent: dict[int, Any] = {}
        # Memory that came back. Finalizers only add to it: they may run in the middle of anything.
        self._returned: deque[bytearray] = deque()
        self._lock = threading.Lock()

    def take(self, count: int) -> Any:
        """Lends a writable buffer of `count` bytes; it returns to the pool with its last view."""
        if count <= _SMALL:
            return bytearray(count)
        size = _size_class(count)
        with self._lock:
            self._take_back()
            free = self._free.get(size)
            memory = free.pop() if free else None
            if memory is not None:
                self._kept -= size
        if memory is None:
            memory = bytearray(size)
        lent: np.ndarray = np.ndarray(count, dtype=np.uint8, buffer=memory)
        key = id(lent)

        def take_back(_: Any, pool: Any = weakref.ref(self), memory: bytearray = memory) -> None:
            owner = pool()
            if owner is not None:
                owner._lent.pop(key, None)
                owner._returned.append(memory)

        self._lent[key] = weakref.ref(lent, take_back)
        return lent

    @property
    def lent(self) -> int:
        """Number of buffers that some view still uses."""
        return len(self._lent)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the free buffers."""
        with self._lock:
            self._take_back()
            return self._kept

    def _take_back(self) -> None:
        while self._returned:
            memory = self._returned.popleft()
            size = len(memory)
            free = self._free.setdefault(size, [])
            if len(free) < _KEPT_OF_A_SIZE and self._kept + size <= self._limit:
                free.append(memory)
                self._kept += size


def _size_class(count: int) -> int:
    """Rounds up to an eighth of the next lower power of two, so that near sizes share buffers."""
    step = max(1 << (count.bit_length() - 4), 4096)
    return -(-count // step) * step
