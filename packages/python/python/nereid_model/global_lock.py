"""Whether this Python has a global interpreter lock (GIL) in force. Free-threaded builds have none by default."""

from __future__ import annotations

import sys


def has_global_lock() -> bool:
    """Whether only one thread at a time executes Python code."""
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    return is_enabled is None or is_enabled()
