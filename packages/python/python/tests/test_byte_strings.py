"""The codec of BYTES tensors."""

import random
import struct
import unittest

import fake_server  # noqa: F401 (puts the package on the path)
import numpy as np

from nereid_model.byte_strings import (
    decode_byte_strings,
    deserialize_bytes_tensor,
    encode_byte_strings,
    serialize_byte_tensor,
)


def encoded(items):
    return b"".join(struct.pack("<I", len(item)) + item for item in items)


def array_of(items):
    array = np.empty(len(items), np.object_)
    array[:] = items
    return array


class ByteStrings(unittest.TestCase):
    def test_both_ways_agree_with_the_definition_for_any_lengths(self):
        chance = random.Random(5)
        lengths = {
            "equal": lambda: 12,
            "empty": lambda: 0,
            "short": lambda: chance.randrange(0, 256),
            "around 256": lambda: chance.choice([0, 1, 255, 256, 257, 300]),
            "long": lambda: chance.choice([3, 70_000]),
        }
        for name, length in lengths.items():
            for count in (0, 1, 7, 8, 500 if name != "long" else 20):
                with self.subTest(name, count=count):
                    items = [chance.getrandbits(8 * size).to_bytes(size, "little") for size in (length() for _ in range(count))]
                    raw = encoded(items)
                    self.assertEqual(encode_byte_strings(array_of(items)), raw)
                    decoded = decode_byte_strings(raw, count)
                    self.assertEqual(decoded.tolist(), items)
                    self.assertTrue(all(type(item) is bytes for item in decoded))
                    self.assertEqual(deserialize_bytes_tensor(bytearray(raw)).tolist(), items)

    def test_text_and_other_objects_are_encoded_as_utf8(self):
        array = array_of(["\u00fc", b"x", 5, None, bytearray(b"y"), np.bytes_(b"z"), np.str_("w")])
        self.assertEqual(encode_byte_strings(array), encoded(["\u00fc".encode(), b"x", b"5", b"None", b"y", b"z", b"w"]))

    def test_zeros_at_the_end_survive(self):
        items = [b"ab\0\0"] * 20
        self.assertEqual(decode_byte_strings(encoded(items)).tolist(), items)

    def test_elements_are_in_c_order(self):
        array = array_of([b"a", b"b", b"c", b"d"]).reshape(2, 2)
        self.assertEqual(encode_byte_strings(array.T), encoded([b"a", b"c", b"b", b"d"]))

    def test_every_truncation_is_an_error(self):
        for items in ([b"abc", b"", b"defgh"], [b"abcd"] * 9, [b"x" * 300, b"y"]):
            raw = encoded(items)
            ends = {len(encoded(items[:count])) for count in range(len(items) + 1)}
            for end in range(len(raw)):
                if end in ends:
                    self.assertEqual(decode_byte_strings(raw[:end]).tolist(), items[: len(decode_byte_strings(raw[:end]))])
                else:
                    with self.assertRaises(ValueError):
                        decode_byte_strings(raw[:end])

    def test_lengths_that_only_look_short_are_not_misread(self):
        item = b"\x01" + bytes(255) + b"abc"
        raw = encoded([item, b"", item])
        self.assertEqual(decode_byte_strings(raw).tolist(), [item, b"", item])

    def test_the_count_is_checked(self):
        with self.assertRaisesRegex(ValueError, "expected 3 elements in a BYTES tensor, found 2"):
            decode_byte_strings(encoded([b"a", b"b"]), 3)

    # P3.bytes.serialize@local P3.bytes.deserialize@local
    def test_the_api_functions_keep_their_odd_results(self):
        self.assertEqual(serialize_byte_tensor(np.array([], np.object_)), ())
        self.assertIsNone(serialize_byte_tensor(np.array([1])))
        self.assertEqual(serialize_byte_tensor(np.array([b"ab", b"c"])), encoded([b"ab", b"c"]))


if __name__ == "__main__":
    unittest.main()
