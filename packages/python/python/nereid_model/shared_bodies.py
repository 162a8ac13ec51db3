"""Memory for the bodies of large frames that the server and this process share, so that their bytes skip the socket.

    | bodies of the server | bodies of the process |

The memory is a file without a name. The server opens it through this process, and nothing is left of it when both have
ended. Each half is a ring of its writer. Every frame tells how many bodies its sender has released, in their order. A
body without room travels over the socket.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any, Optional, Sequence

import numpy as np

from .frames import LEAST_SHARED, RELEASED_MASK, ProtocolError
from .ring import Ring

# Of each half.
CAPACITY = 16 * 1024 * 1024
# With more bytes, the socket is as fast or faster: both sides copy at the same time.
_MOST = CAPACITY // 8


class SharedBodies:
    """Reads the bodies of the server where they are, and writes those of the process beside them."""

    __slots__ = (
        "_allocated",
        "_bytes",
        "_descriptor",
        "_done",
        "_lent",
        "_memory",
        "_received",
        "_released",
        "_returned",
        "_ring",
        "_told",
        "_writes",
    )

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory = mmap.mmap(descriptor, 2 * CAPACITY)
        self._bytes: np.ndarray = np.ndarray(2 * CAPACITY, np.uint8, self._memory)
        self._ring = Ring(CAPACITY)
        # Number of bodies of the process that the server has released: what it last told, and what the ring knows.
        self._told = 0
        self._returned = 0
        # Bytes of the process's half that have memory. Without, a write to them could kill the process.
        self._allocated = 0
        self._writes = False
        self._received = 0
        self._released = 0
        # Numbers of released bodies of the server. Finalizers only add to it.
        self._done: set[int] = set()
        # Of each lent body, by its number: a weak reference, its offset and its length.
        self._lent: dict[int, tuple[Any, int, int]] = {}

    @classmethod
    def make(cls) -> Optional[SharedBodies]:
        """None where the system has no such memory."""
        if not hasattr(os, "memfd_create"):
            return None
        try:
            descriptor = os.memfd_create("nereid", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(descriptor, 2 * CAPACITY)
            _seal(descriptor)
            return cls(descriptor)
        except (OSError, ValueError):
            return None

    def describe(self) -> dict[str, Any]:
        """Where the server finds the memory."""
        inode = os.fstat(self._descriptor).st_ino
        return {"pid": os.getpid(), "fd": self._descriptor, "inode": inode, "capacity": CAPACITY}

    def opened(self) -> None:
        """The server has opened the memory: the process may use its half."""
        self._writes = True

    @property
    def released(self) -> int:
        """Number of bodies of the server that are released. Only the sender of a frame may call it."""
        while self._released in self._done:
            self._done.discard(self._released)
            self._released += 1
        return self._released & RELEASED_MASK

    def peer_released(self, total: int) -> None:
        """Takes the number of bodies that the server has released; any thread may call it."""
        self._told = total

    def view(self, offset: int, count: int) -> Any:
        """A body of the server, which is released with its last view."""
        if offset + count > CAPACITY:
            raise ProtocolError(f"a body ends at byte {offset + count} of {CAPACITY}")
        number = self._received
        self._received += 1
        body: np.ndarray = np.ndarray(count, np.uint8, self._memory, offset)

        def release(_: Any, number: int = number) -> None:
            self._lent.pop(number, None)
            self._done.add(number)

        self._lent[number] = (weakref.ref(body, release), offset, count)
        return body

    def copy_lent(self) -> list[tuple[int, bytes]]:
        """Offsets and contents of the lent bodies, for a fork: others may come there once its parent releases them."""
        return [
            (offset, self._bytes[offset : offset + count].tobytes())
            for reference, offset, count in self._lent.copy().values()
            if reference() is not None
        ]

    def detach(self, copies: list[tuple[int, bytes]]) -> None:
        """Gives a fork memory of its own at the same address, with these bodies."""
        self._writes = False
        if _map_private(self._bytes.ctypes.data, self._bytes.nbytes):
            for offset, content in copies:
                self._bytes[offset : offset + len(content)] = np.frombuffer(content, np.uint8)

    def write(self, pieces: Sequence[Any], count: int) -> Optional[int]:
        """Offset of a written body; None if it must travel over the socket. Only the sender of a frame may call it."""
        if not self._writes or not LEAST_SHARED <= count <= _MOST:
            return None
        self._take_back()
        parts = [np.frombuffer(piece, np.uint8) for piece in pieces]
        start = self._ring.take(count)
        if start is None or not self._allocate(start + count):
            return None
        at = CAPACITY + start
        for part in parts:
            self._bytes[at : at + len(part)] = part
            at += len(part)
        return start

    def _take_back(self) -> None:
        number = (self._told - self._returned) & RELEASED_MASK
        if number > len(self._ring):
            raise ProtocolError(f"the server released {number} bodies of {len(self._ring)}")
        self._returned += number
        self._ring.release(number)

    def _allocate(self, end: int) -> bool:
        if end <= self._allocated:
            return True
        try:
            os.posix_fallocate(self._descriptor, CAPACITY + self._allocated, end - self._allocated)
        except OSError:
            self._writes = False
            return False
        self._allocated = end
        return True


_MAP_FIXED = 0x10


def _map_private(address: int, count: int) -> bool:
    """Replaces a mapping by empty private memory."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    return libc.mmap(address, count, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == address


def _seal(descriptor: int) -> None:
    """Forbids to change the size: a shorter file would kill the process that reads behind its end."""
    import fcntl

    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
