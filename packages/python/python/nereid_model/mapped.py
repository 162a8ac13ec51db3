"""Shared memory that clients registered with the server: inputs are mapped from it, outputs are written into it.

Each input gets a private mapping of its own: the model may write into it, the client never sees that, and the next
request sees what the client wrote meanwhile. The server keeps its file open while a request uses it.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from .errors import ErrorCode, RequestError


class Place:
    """Where a tensor is: the server's path of the file, the file's number, and the offset in it."""

    __slots__ = ("_inode", "_offset", "_path")

    def __init__(self, path: str, inode: int, offset: int) -> None:
        self._path = path
        self._inode = inode
        self._offset = offset

    def map(self, count: int) -> Any:
        """Writable private view of `count` bytes; raises RequestError if they cannot be mapped."""
        if count == 0:
            return b""
        try:
            handle = self._open(os.O_RDONLY)
            try:
                # A mapping beyond the end of a file kills the process when it is read.
                if self._offset + count > os.fstat(handle).st_size:
                    raise RequestError("The shared memory of an input has become shorter.", ErrorCode.INTERNAL)
                lead = self._offset % mmap.ALLOCATIONGRANULARITY
                mapping = mmap.mmap(handle, lead + count, access=mmap.ACCESS_COPY, offset=self._offset - lead)
            finally:
                os.close(handle)
        except (OSError, ValueError) as error:
            text = f"The shared memory of an input cannot be mapped: {error}"
            raise RequestError(text, ErrorCode.INTERNAL) from None
        return np.ndarray(count, np.uint8, mapping, lead)

    def write(self, memory: Any) -> bool:
        """Writes a contiguous buffer; False if the file does not take it, and the server says why."""
        view = memoryview(memory).cast("B")
        try:
            handle = self._open(os.O_WRONLY)
            try:
                if self._offset + len(view) > os.fstat(handle).st_size:
                    return False
                done = 0
                while done < len(view):
                    done += os.pwrite(handle, view[done:], self._offset + done)
            finally:
                os.close(handle)
        except OSError:
            return False
        return True

    def _open(self, flags: int) -> int:
        handle = os.open(self._path, flags | os.O_CLOEXEC)
        if os.fstat(handle).st_ino != self._inode:
            os.close(handle)
            raise OSError("the file is another one now")
        return handle


class Target:
    """Shared memory that takes one output of a request."""

    __slots__ = ("_limit", "_place")

    def __init__(self, place: Place, limit: int) -> None:
        self._place = place
        self._limit = limit

    def take(self, memory: Any, count: int) -> bool:
        """Whether the bytes of an output were written; otherwise they go to the server."""
        return 0 < count <= self._limit and self._place.write(memory)


def read_targets(items: Any) -> dict[str, Target]:
    """Targets of a request by the names of outputs."""
    return {name: Target(Place(*place), limit) for name, (place, limit) in items.items()}


def can_map() -> bool:
    """Whether files of the server can be opened by its path of them."""
    try:
        os.listdir(f"/proc/{os.getppid()}/fd")
    except OSError:
        return False
    return True
