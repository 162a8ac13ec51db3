"""Reader of a control socket. It runs in a thread that never waits for the model."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Callable, Mapping

from .frames import Frame, FrameSocket, ProtocolError


def read_control(
    control: FrameSocket, handlers: Mapping[int, Callable[[Frame], None]], on_end: Callable[[], None]
) -> None:
    """Hands frames to their handlers until the connection ends; a wrong frame ends the process."""
    try:
        while True:
            frame = control.receive()
            if frame is None:
                break
            handler = handlers.get(frame.kind)
            if handler is None:
                raise ProtocolError(f"unexpected frame of kind {frame.kind} on the control socket")
            try:
                handler(frame)
            except (KeyError, TypeError, ValueError) as error:
                raise ProtocolError(f"a frame of kind {frame.kind} is wrong: {error!r}") from error
            del frame
    except ProtocolError as error:
        end_with_protocol_error(error)
    except OSError:
        pass
    except BaseException:
        traceback.print_exc()
        os._exit(2)
    on_end()


def end_with_protocol_error(error: ProtocolError) -> None:
    """Ends the process after a clear line on stderr."""
    sys.stderr.write(f"The process of the model ends, because the server broke the protocol: {error}\n")
    sys.stderr.flush()
    os._exit(2)
