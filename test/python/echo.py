"""Sends every block of bytes back over a Unix socket: the bare cost of the transport, for bench.ts."""

import os
import socket
import sys

path, length = sys.argv[1], int(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(1)
print("listening", flush=True)
connection, _ = listener.accept()
os.unlink(path)
block = memoryview(bytearray(length))
while True:
    if connection.recv_into(block, length, socket.MSG_WAITALL) < length:
        break
    connection.sendall(block)
