"""Limits that the operating system enforces on a model's process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def limit_memory(limit: int) -> None:
    """Limits the memory that the process may allocate, in bytes; 0 for no limit.

    Allocations beyond it raise MemoryError. On Linux file mappings, such as those of libraries, do not count, nor does
    the address space that a free-threaded Python has reserved for its heap.
    """
    if limit <= 0:
        return
    import resource

    kind = resource.RLIMIT_DATA if sys.platform.startswith("linux") else resource.RLIMIT_AS
    _, hard = resource.getrlimit(kind)
    limit += _reserved()
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (soft, hard))


def _reserved() -> int:
    """Bytes of memory that the allocator of a free-threaded Python has, and that are not used yet."""
    import sysconfig

    if sysconfig.get_config_var("Py_GIL_DISABLED") != 1:
        return 0
    try:
        with open("/proc/self/status") as status:
            fields = dict(line.split(":", 1) for line in status)
        data, used = (int(fields[name].split()[0]) for name in ("VmData", "RssAnon"))
        return max(0, data - used) * 1024
    except (OSError, KeyError, ValueError):
        return 0


def set_death_signal() -> None:
    """Has Linux kill this process when the thread that spawned it ends.

    The end of the control socket says the same, but native code that holds Python's lock keeps its reader waiting.
    """
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        # The parent died before the call took effect.
        os._exit(1)
