"""Preference for the memory of response tensors; every tensor here is in the memory of the CPU."""

from __future__ import annotations

import enum

from .errors import expect, expect_int


class MemoryType(enum.IntEnum):
    """Kind of memory."""

    TRITONSERVER_MEMORY_CPU = 0
    TRITONSERVER_MEMORY_GPU = 2


TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU


class PreferredMemory:
    """Where a request wants its response tensors; has no effect."""

    __slots__ = ("_device", "_kind")

    def __init__(
        self, preferred_memory_type: MemoryType = TRITONSERVER_MEMORY_CPU, preferred_device_id: int = 0
    ) -> None:
        self._kind = expect("preferred_memory_type", preferred_memory_type, MemoryType)
        self._device = expect_int("preferred_device_id", preferred_device_id)
