"""Codec of BYTES tensors: for each element a length (u32, little endian) and its bytes.

Elements are cut out of one `bytes` object and joined in one call; nothing is packed element by element.
"""

from __future__ import annotations

from itertools import chain
from struct import Struct
from typing import Any, Optional

import numpy as np

_unpack_length = Struct("<I").unpack_from
_LIMIT = 0xFFFFFFFF


def encode_byte_strings(array: np.ndarray) -> bytes:
    """Encodes the elements of an object or bytes array in C order; str becomes UTF-8, other objects their str()."""
    items: list[Any] = array.ravel().tolist()
    if not items:
        return b""
    if set(map(type, items)) != {bytes}:
        items = [item if type(item) is bytes else _as_bytes(item) for item in items]
    sizes = np.fromiter(map(len, items), dtype=np.int64, count=len(items))
    if int(sizes.max()) > _LIMIT:
        raise ValueError(f"an element of {int(sizes.max())} bytes is too long for BYTES; the limit is {_LIMIT}")
    lengths = sizes.astype("<u4").view("V4").tolist()
    return b"".join(chain.from_iterable(zip(lengths, items)))


def decode_byte_strings(buffer: Any, count: Optional[int] = None) -> np.ndarray:
    """Decodes to a 1-D object array of bytes; raises ValueError unless `buffer` holds exactly `count` elements."""
    raw = buffer if isinstance(buffer, bytes) else bytes(buffer)
    items = _equally_long(raw) or _short(raw) or _any(raw)
    if count is not None and len(items) != count:
        raise ValueError(f"expected {count} elements in a BYTES tensor, found {len(items)}")
    array = np.empty(len(items), dtype=np.object_)
    array[:] = items
    return array


def _as_bytes(item: Any) -> bytes:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    return str(item).encode("utf-8")


def _equally_long(raw: bytes) -> Optional[list[bytes]]:
    """Elements of one length, by columns; None if they are not."""
    if len(raw) < 4:
        return None
    (size,) = _unpack_length(raw, 0)
    rows, rest = divmod(len(raw), size + 4)
    if rest or size == 0 or rows < 8:
        return None
    table = np.frombuffer(raw, dtype=np.uint8).reshape(rows, size + 4)
    lengths = np.ascontiguousarray(table[:, :4]).view("<u4")
    if not (lengths == size).all():
        return None
    return np.ascontiguousarray(table[:, 4:]).view(f"V{size}").ravel().tolist()


def _short(raw: bytes) -> Optional[list[bytes]]:
    """Elements of fewer than 256 bytes: the first byte is the length. None if some are longer or the end is wrong."""
    items: list[bytes] = []
    append = items.append
    offset, end = 0, len(raw)
    try:
        while offset < end:
            start = offset + 4
            offset = start + raw[offset]
            append(raw[start:offset])
    except IndexError:
        return None
    if offset != end or not items:
        return None
    # The three upper bytes of every length must have been 0.
    sizes = np.fromiter(map(len, items), dtype=np.int64, count=len(items))
    ends = np.cumsum(sizes + 4)
    starts = ends - sizes - 4
    bytes_of = np.frombuffer(raw, dtype=np.uint8)
    if bytes_of[starts + 1].any() or bytes_of[starts + 2].any() or bytes_of[starts + 3].any():
        return None
    return items


def _any(raw: bytes) -> list[bytes]:
    items: list[bytes] = []
    append = items.append
    offset, end = 0, len(raw)
    while offset < end:
        if offset + 4 > end:
            raise ValueError(f"a BYTES tensor ends inside a length, at byte {offset} of {end}")
        (size,) = _unpack_length(raw, offset)
        start = offset + 4
        offset = start + size
        if offset > end:
            raise ValueError(f"an element of {size} bytes at byte {start} passes the end of a BYTES tensor, {end}")
        append(raw[start:offset])
    return items


def serialize_byte_tensor(input_tensor: np.ndarray) -> Any:
    """Encodes an object or bytes array; `()` for an empty array, None for another dtype."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    return encode_byte_strings(input_tensor)


def deserialize_bytes_tensor(encoded_tensor: Any) -> np.ndarray:
    """Decodes to a 1-D object array of bytes."""
    return decode_byte_strings(encoded_tensor)
