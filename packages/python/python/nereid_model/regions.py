"""Shared memory that clients registered with the server, mapped on demand.

Each tensor gets a private mapping of its own: the model may write into it, the client never sees that, and the next
request sees what the client wrote meanwhile.
"""

from __future__ import annotations

import mmap
import os
import threading
from typing import Any

import numpy as np

from .frames import ProtocolError

# The order of two sockets is unknown: a request may arrive before the message that registers its region.
_WAIT_SECONDS = 5.0


class Regions:
    """Open files of the registered regions by number."""

    __slots__ = ("_changed", "_open")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[int, tuple[int, int, int]] = {}

    def add(self, header: dict[str, Any]) -> None:
        """Opens a region."""
        number = header["number"]
        handle = os.open(header["file"], os.O_RDONLY | os.O_CLOEXEC)
        with self._changed:
            previous = self._open.pop(number, None)
            self._open[number] = (handle, int(header["size"]), int(header.get("offset") or 0))
            self._changed.notify_all()
        if previous is not None:
            os.close(previous[0])

    def remove(self, number: int) -> None:
        """Forgets a region; tensors that use it stay valid."""
        with self._changed:
            entry = self._open.pop(number, None)
        if entry is not None:
            os.close(entry[0])

    def view(self, number: int, offset: int, count: int) -> Any:
        """Writable private view of `count` bytes of a region."""
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._open, _WAIT_SECONDS):
                raise ProtocolError(f"a tensor is in region {number}, which is not registered")
            handle, size, base = self._open[number]
            if offset < 0 or count < 0 or offset + count > size:
                raise ProtocolError(f"bytes {offset} to {offset + count} pass the end of region {number}, {size}")
            if count == 0:
                return b""
            start = base + offset
            lead = start % mmap.ALLOCATIONGRANULARITY
            if start + count > os.fstat(handle).st_size:
                raise ProtocolError(f"the file of region {number} is shorter than its registration says")
            mapping = mmap.mmap(handle, lead + count, access=mmap.ACCESS_COPY, offset=start - lead)
        return np.ndarray(count, np.uint8, mapping, lead)
