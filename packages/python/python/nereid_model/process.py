"""Main program of a model's process. The server starts it with the control socket as descriptor 3.

The main thread executes requests of the data socket. A daemon thread reads the control socket, so that cancellations,
replies and the end of the server are noticed while the model works.
"""

from __future__ import annotations

import os
import sys

_CONTROL_DESCRIPTOR = 3


def _prepare_path() -> None:
    """Replaces this file's folder in sys.path by the folder of the package, for the imports below."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    sys.path.append(os.path.dirname(here))


def _close_inherited_descriptors() -> None:
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        try:
            names = os.listdir("/dev/fd")
        except OSError:
            return
    for name in names:
        if int(name) > _CONTROL_DESCRIPTOR:
            try:
                os.close(int(name))
            except OSError:
                pass


if __name__ == "__main__":
    _close_inherited_descriptors()
    _prepare_path()
    from nereid_model.model_process import run_process

    run_process(_CONTROL_DESCRIPTOR)
