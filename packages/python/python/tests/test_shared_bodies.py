"""Shared memory for bodies: room in the ring, views of the server's bodies, and writes beside them."""

import gc
import os
import random
import socket
import struct
import unittest
from unittest import mock

import fake_server
import numpy as np

from nereid_model.frames import FrameSocket, ProtocolError
from nereid_model.ring import Ring
from nereid_model.shared_bodies import CAPACITY, SharedBodies

HEAD = struct.Struct("<IIQ")


class Rings(unittest.TestCase):
    def test_bodies_overlap_no_other_in_any_order(self):
        chance = random.Random(5)
        for _ in range(100):
            ring = Ring(16_384)
            bodies = []
            for _ in range(200):
                if chance.random() < 0.5:
                    if bodies:
                        bodies.pop(0)
                        ring.release(1)
                    continue
                count = chance.randrange(1, 5000)
                start = ring.take(count)
                if start is None:
                    continue
                self.assertLessEqual(start + count, 16_384)
                for other, end in bodies:
                    self.assertTrue(start + count <= other or end <= start)
                bodies.append((start, start + count))
            self.assertEqual(len(ring), len(bodies))
            ring.release(len(bodies))
            self.assertEqual(ring.take(16_384), 0)

    def test_a_body_that_leaves_one_turn_late_uses_three_places(self):
        ring = Ring(1 << 20)
        starts = set()
        for turn in range(100):
            starts.add(ring.take(1024))
            if turn:
                ring.release(1)
        self.assertEqual(starts, {0, 1024, 2048})


@unittest.skipUnless(hasattr(os, "memfd_create"), "this system has no memory without a name")
class Bodies(unittest.TestCase):
    def setUp(self):
        self.shared = SharedBodies.make()
        self.fd = self.shared.describe()["fd"]
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(20)
        self.frames = FrameSocket(theirs, bytearray, self.shared)
        self.addCleanup(self.ours.close)
        self.addCleanup(self.frames.close)

    def send(self, offset, count, released=0):
        """A frame of the server with a body in its half."""
        self.ours.sendall(HEAD.pack(2, 1 | (0x80 if count else 0) | released << 8, offset << 32 | count) + b"{}")
        return self.frames.receive()

    def read(self):
        """The released bodies, the offset and the length of the body in the next frame of the process."""
        length, word, body = HEAD.unpack(fake_server._exactly(self.ours, 16))
        fake_server._exactly(self.ours, length)
        if word & 0x80:
            return word >> 8, body >> 32, body & 0xFFFFFFFF
        fake_server._exactly(self.ours, body)
        return word >> 8, None, body

    def test_a_body_of_the_server_is_a_writable_view(self):
        os.pwrite(self.fd, b"abc" * 20_000, 640)
        frame = self.send(640, 60_000)
        self.assertEqual(bytes(frame.body[:6]), b"abcabc")
        frame.body[0] = 0
        self.assertEqual(os.pread(self.fd, 2, 640), b"\0b")

    def test_bodies_are_released_in_their_order_once_their_last_view_is_gone(self):
        first = self.send(0, 40_000)
        second = self.send(40_000, 40_000)
        kept = np.ndarray((10, 10), np.float32, first.body, 16)
        del first, second
        gc.collect()
        self.frames.send(1, {})
        self.assertEqual(self.read()[0], 0)
        del kept
        gc.collect()
        self.frames.send(1, {})
        self.assertEqual(self.read()[0], 2)

    def test_a_body_of_the_process_is_a_copy_in_its_half(self):
        self.shared.opened()
        array = np.arange(20_000, dtype=np.float32).reshape(100, 200)
        self.frames.send(1, {}, [array, b"tail"], array.nbytes + 4)
        array[:] = 0
        _, offset, count = self.read()
        content = os.pread(self.fd, count, CAPACITY + offset)
        self.assertEqual(content, np.arange(20_000, dtype=np.float32).tobytes() + b"tail")

    def test_bodies_travel_over_the_socket_before_the_server_has_opened_the_memory(self):
        self.assertIsNone(self.sent(40_000))
        self.shared.opened()
        self.assertEqual(self.sent(40_000), 0)

    def test_small_and_very_large_bodies_and_those_without_room_travel_over_the_socket(self):
        self.shared.opened()
        self.assertIsNone(self.sent(1000))
        self.assertIsNone(self.sent(CAPACITY // 8 + 1))
        for _ in range(8):
            self.assertIsNotNone(self.sent(CAPACITY // 8))
        self.assertIsNone(self.sent(40_000))
        self.send(0, 0, released=1)
        self.assertEqual(self.sent(40_000), 0)

    def sent(self, count):
        """Offset of the body of a sent frame."""
        sender = fake_server.in_thread(lambda: self.frames.send(1, {}, [bytes(count)], count))
        offset = self.read()[1]
        sender.join()
        return offset

    def test_a_fork_has_its_own_copy_of_the_lent_bodies(self):
        os.pwrite(self.fd, b"abc" * 20_000, 640)
        body = self.send(640, 60_000).body
        ready, go = os.pipe(), os.pipe()
        copies = self.shared.copy_lent()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                self.shared.detach(copies)
                body[:3] = np.frombuffer(b"xyz", np.uint8)
                os.write(ready[1], b".")
                os.read(go[0], 1)
                status = 0 if bytes(body) == b"xyz" + b"abc" * 19_999 else 2
            finally:
                os._exit(status)
        os.read(ready[0], 1)
        self.assertEqual(bytes(body), b"abc" * 20_000)
        # The server uses the memory for the next body.
        os.pwrite(self.fd, bytes(60_000), 640)
        os.write(go[1], b".")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for end in (*ready, *go):
            os.close(end)

    def test_without_memory_for_pages_bodies_travel_over_the_socket(self):
        self.shared.opened()
        with mock.patch("os.posix_fallocate", side_effect=OSError(28, "No space left on device")):
            self.assertIsNone(self.sent(40_000))
        self.assertIsNone(self.sent(40_000))

    def test_wrong_places_and_releases_are_protocol_errors(self):
        with self.assertRaisesRegex(ProtocolError, "a body ends at byte"):
            self.send(CAPACITY, 64)
        self.shared.opened()
        self.send(0, 0, released=1)
        with self.assertRaisesRegex(ProtocolError, "the server released 1 bodies of 0"):
            self.frames.send(1, {}, [bytes(40_000)], 40_000)
        ours, theirs = socket.socketpair()
        ours.sendall(HEAD.pack(2, 0x81, 64) + b"{}")
        with self.assertRaisesRegex(ProtocolError, "in shared memory, and there is none"):
            FrameSocket(theirs).receive()
        ours.close()
        theirs.close()

    def test_the_memory_cannot_become_shorter(self):
        with self.assertRaises(OSError):
            os.ftruncate(self.fd, 100)


if __name__ == "__main__":
    unittest.main()
