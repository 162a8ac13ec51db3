"""Takes the one connection of a program for bench.ts, over a Unix socket whose file is removed then."""

import os
import socket
import sys


def accept():
    """The connection; the first argument of the program is the path."""
    path = sys.argv[1]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    print("listening", flush=True)
    connection, _ = listener.accept()
    os.unlink(path)
    return connection
