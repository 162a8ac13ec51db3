"""Frames and receive buffers: every cut and every split of a stream, and the return of buffers."""

import gc
import json
import random
import socket
import struct
import threading
import unittest

import fake_server
import numpy as np

from nereid_model.buffers import Buffers
from nereid_model.frames import FrameSocket, Kind, ProtocolError
from nereid_model.tensor import Tensor, TensorWriter, read_tensors


def pair(buffers=None):
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    return ours, FrameSocket(theirs, buffers.take if buffers else bytearray)


MESSAGES = [
    (1, {"x": 1, "text": "\u00fc"}, b""),
    (2, {}, b"body"),
    (3, {"long": "y" * 20_000}, bytes(range(256)) * 100),
    (4, {"k": [1, 2]}, b"z" * 9000),
]


class Frames(unittest.TestCase):
    def test_every_split_of_a_stream_gives_the_same_frames(self):
        stream = b"".join(fake_server.frame(*message) for message in MESSAGES)
        chance = random.Random(3)
        for split in [1, 15, 16, 17, *(chance.randrange(1, len(stream)) for _ in range(20))]:
            ours, frames = pair()

            def send(ours=ours, split=split):
                ours.sendall(stream[:split])
                ours.sendall(stream[split:])
                ours.close()

            sender = fake_server.in_thread(send)
            got = []
            while True:
                frame = frames.receive()
                if frame is None:
                    break
                got.append((frame.kind, frame.header, bytes(frame.body or b"")))
            self.assertEqual(got, MESSAGES)
            sender.join()
            frames.close()

    def test_a_stream_cut_at_any_byte_gives_whole_frames_and_then_an_error(self):
        messages = [(1, {"a": 1}, b""), (2, {"b": 2}, b"0123456789")]
        whole = [fake_server.frame(*message) for message in messages]
        stream = b"".join(whole)
        ends = {0: 0, len(whole[0]): 1, len(stream): 2}
        for cut in range(len(stream) + 1):
            ours, frames = pair()
            ours.sendall(stream[:cut])
            ours.close()
            count = sum(1 for end in ends if 0 < end <= cut)
            got = [frames.receive() for _ in range(count)]
            self.assertTrue(all(got))
            if cut in ends:
                self.assertIsNone(frames.receive())
            else:
                with self.assertRaisesRegex(ProtocolError, "ended inside a frame"):
                    frames.receive()
            frames.close()

    def test_random_bytes_never_do_more_than_raise(self):
        chance = random.Random(11)
        for _ in range(200):
            ours, frames = pair()
            ours.sendall(bytes(chance.choice([0, 0, 0, 1, 7, 255]) for _ in range(chance.randrange(1, 200))))
            ours.close()
            try:
                while frames.receive() is not None:
                    pass
            except ProtocolError:
                pass
            frames.close()

    def test_damaged_tensor_headers_never_do_more_than_raise(self):
        chance = random.Random(13)
        writer = TensorWriter()
        items = json.loads(f'[{writer.add([Tensor("A", np.arange(4)), Tensor("B", np.array([b"x"]))])}]')
        values = [None, -1, 0, 10**30, "x", [], [-1, -8], {}, 1.5, True, [2, 2], [10**20], "BYTES", "FP32"]
        for _ in range(2000):
            damaged = [dict(item, s=list(item["s"])) for item in items]
            damaged[chance.randrange(2)][chance.choice("ntsbm")] = chance.choice(values)
            try:
                read_tensors(chance.choice([damaged, damaged[0], damaged[::-1]]), bytearray(writer.length))
            except ProtocolError:
                pass

    def test_executions_with_the_same_fields_share_them(self):
        ours, theirs = socket.socketpair()
        frames = FrameSocket(theirs, executes=True)

        def receive(text):
            ours.sendall(struct.pack("<IIQ", len(text), 1, 0) + text)
            return frames.receive()

        first, second = receive(b'{"x":7,"r":[{"i":[]}]}'), receive(b'{"x":123456,"r":[{"i":[]}]}')
        self.assertEqual((first.number, second.number, second.header), (7, 123456, {"r": [{"i": []}]}))
        self.assertIs(first.header, second.header)
        other = receive(b'{"x":8,"r":[{"i":[],"id":"a"}]}')
        self.assertEqual((other.number, other.header), (8, {"r": [{"i": [], "id": "a"}]}))
        # Fields of another order, a long text and one among many are parsed again.
        self.assertEqual(receive(b'{"r":[],"x":9}')[1:5:3], ({"r": []}, 9))
        for text in (b'{"x":%d,"r":[{"id":"' + b"a" * 3000 + b'"}]}', b'{"x":%d,"r":[{"i":[]}]}'):
            header = receive(text % 1).header
            for number in range(200):
                receive(b'{"x":1,"r":[{"id":"%d"}]}' % number)
            again = receive(text % 2)
            self.assertEqual((again.number, again.header), (2, header))
            self.assertIsNot(again.header, header)
        for text in (b'{"x":"1","r":[{"i":[]}]}', b'{"x":1.5,"r":[{"i":[]}]}', b'{"x":,"r":[{"i":[]}]}', b'{"x":1'):
            try:
                self.assertNotIsInstance(receive(text).number, int)
            except ProtocolError:
                pass
        ours.close()
        frames.close()

    def test_large_frames_with_many_pieces_arrive_whole(self):
        ours, frames = pair()
        tensors = [Tensor(f"T{i}", np.full(i + 1, i % 251, np.uint8)) for i in range(1500)]
        tensors.append(Tensor("L", np.arange(1_000_000)))
        writer = TensorWriter()
        text = f'{{"o":[{writer.add(tensors)}]}}'
        thread = threading.Thread(target=frames.send, args=(Kind.RETURNED, text, writer.pieces, writer.length))
        thread.start()
        kind, header, body = fake_server.receive(ours)
        thread.join()
        got, end = fake_server.unpack(header["o"], body)
        self.assertEqual((kind, end), (2, writer.length))
        for tensor in tensors:
            np.testing.assert_array_equal(got[tensor.name()], tensor.as_numpy())
        ours.close()
        frames.close()

    def test_frames_of_many_threads_do_not_mix(self):
        ours, frames = pair()
        threads = [
            threading.Thread(
                target=lambda n=n: [frames.send(3, {"n": n}, [bytes([n]) * 50_000], 50_000) for _ in range(20)]
            )
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for _ in range(80):
            _, header, body = fake_server.receive(ours)
            self.assertEqual(body, bytes([header["n"]]) * 50_000)
        for thread in threads:
            thread.join()
        ours.close()
        frames.close()


class ReceiveBuffers(unittest.TestCase):
    def views(self, buffer):
        """The ways in which a model can keep a view."""
        array = np.ndarray((100,), np.int64, buffer, 16)
        yield array
        yield array[3:7]
        yield array.reshape(10, 10).T[2]
        yield memoryview(array)[1:2]
        yield np.frombuffer(array, np.uint8)
        yield np.from_dlpack(Tensor("A", array))
        yield memoryview(buffer)[5:6]
        yield Tensor("A", array)
        yield np.asarray(memoryview(array))[1:]

    def test_a_buffer_returns_when_its_last_view_is_gone_and_not_before(self):
        for which in range(9):
            pool = Buffers()
            buffer = pool.take(10_000)
            view = list(self.views(buffer))[which]
            gc.collect()
            del buffer
            gc.collect()
            self.assertEqual((which, pool.lent), (which, 1))
            del view
            gc.collect()
            self.assertEqual((which, pool.lent), (which, 0))
            self.assertGreater(pool.kept_bytes, 0)

    def test_a_returned_buffer_is_lent_again(self):
        pool = Buffers()
        first = pool.take(100_000)
        address = first.ctypes.data
        del first
        self.assertEqual(pool.take(99_000).ctypes.data, address)

    def test_the_pool_keeps_no_more_than_its_limit(self):
        pool = Buffers(kept_bytes=1_000_000)
        taken = [pool.take(300_000) for _ in range(10)]
        del taken
        gc.collect()
        self.assertEqual(pool.lent, 0)
        self.assertLessEqual(pool.kept_bytes, 1_000_000)

    def test_a_ten_megabyte_tensor_is_a_writable_view_of_the_receive_buffer(self):
        pool = Buffers()
        ours, frames = pair(pool)
        array = np.arange(10_000_000 // 8)
        items, body = fake_server.pack({"A": array})
        sender = fake_server.in_thread(ours.sendall, fake_server.frame(1, {"i": items}, body))
        frame = frames.receive()
        sender.join()
        tensors = read_tensors(frame.header["i"], frame.body)
        view = tensors[0].as_numpy()
        self.assertTrue(np.shares_memory(view, frame.body))
        self.assertEqual(view.ctypes.data, frame.body.ctypes.data)
        self.assertTrue(view.flags.writeable)
        np.testing.assert_array_equal(view, array)
        del view, tensors, frame
        self.assertEqual(pool.lent, 0)
        ours.close()
        frames.close()


if __name__ == "__main__":
    unittest.main()
