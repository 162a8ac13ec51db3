"""Room for bodies in a ring of bytes. Bodies leave in the order in which they came. `SharedRing.ts` is its twin."""

from __future__ import annotations

from collections import deque
from typing import Optional

# Bodies begin at multiples of this.
_ALIGNMENT = 64


class Ring:
    """Offsets of bodies in `capacity` bytes. The first bytes are used again early, so that few pages are touched."""

    __slots__ = ("_at", "_capacity", "_starts", "_wrapped")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._starts: deque[int] = deque()
        self._at = 0
        # Whether the next body lies before the oldest one.
        self._wrapped = False

    def __len__(self) -> int:
        return len(self._starts)

    def take(self, count: int) -> Optional[int]:
        """Offset of room for `count` bytes; None if there is none."""
        size = -(-count // _ALIGNMENT) * _ALIGNMENT
        if not self._starts:
            self._at, self._wrapped = 0, False
        oldest = self._starts[0] if self._starts else 0
        if not self._wrapped and (oldest >= 2 * size or (oldest >= size and self._at + size > self._capacity)):
            self._at, self._wrapped = 0, True
        if self._at + size > (oldest if self._wrapped else self._capacity):
            return None
        start = self._at
        self._starts.append(start)
        self._at += size
        return start

    def release(self, number: int) -> None:
        """Removes the oldest bodies; raises IndexError if there are fewer."""
        for _ in range(number):
            start = self._starts.popleft()
            if self._starts and self._starts[0] < start:
                self._wrapped = False
