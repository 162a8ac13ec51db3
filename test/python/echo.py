"""Sends every block of bytes back over a Unix socket: the bare cost of the transport, for bench.ts."""

import socket
import sys

from one_connection import accept

length = int(sys.argv[2])
connection = accept()
block = memoryview(bytearray(length))
while True:
    if connection.recv_into(block, length, socket.MSG_WAITALL) < length:
        break
    connection.sendall(block)
