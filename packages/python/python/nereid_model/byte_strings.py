"""Codec of BYTES tensors: for each element a length (u32, little endian) and its bytes.

Elements are cut out of one `bytes` object and joined in one call; nothing is packed element by element.
"""

from __future__ import annotations

from itertools import chain
from struct import Struct, error
from typing import Any, Optional

import numpy as np

_unpack_length = Struct("<I").unpack_from
_LIMIT = 0xFFFFFFFF
# Encoded lengths of short elements.
_LENGTHS = [length.to_bytes(4, "little") for length in range(4096)]


def encode_byte_strings(array: np.ndarray) -> bytes:
    """Encodes the elements of an object or bytes array in C order; str becomes UTF-8, other objects their str()."""
    items: list[Any] = array.ravel().tolist()
    kinds = set(map(type, items))
    if kinds == {str}:
        items = [item.encode("utf-8") for item in items]
    elif kinds != {bytes}:
        items = [item if type(item) is bytes else _as_bytes(item) for item in items]
    try:
        return b"".join(chain.from_iterable(zip(map(_LENGTHS.__getitem__, map(len, items)), items)))
    except IndexError:
        return b"".join(chain.from_iterable(zip(map(_encode_length, items), items)))


def decode_byte_strings(buffer: Any, count: Optional[int] = None) -> np.ndarray:
    """Decodes to a 1-D object array of bytes; raises ValueError unless `buffer` holds exactly `count` elements."""
    raw = buffer if isinstance(buffer, bytes) else bytes(buffer)
    items = _equally_long(raw)
    if items is None:
        items = _walk(raw) if count is None else _cut(raw, count)
    if count is not None and len(items) != count:
        raise ValueError(f"expected {count} elements in a BYTES tensor, found {len(items)}")
    array = np.empty(len(items), dtype=np.object_)
    array[:] = items
    return array


def _as_bytes(item: Any) -> bytes:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    return str(item).encode("utf-8")


def _encode_length(item: bytes) -> bytes:
    if len(item) > _LIMIT:
        raise ValueError(f"an element of {len(item)} bytes is too long for BYTES; the limit is {_LIMIT}")
    return len(item).to_bytes(4, "little")


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


def _cut(raw: bytes, count: int) -> list[bytes]:
    """The fast way for a known number of elements; mistakes are left to `_walk`, which explains them."""
    if count > len(raw) // 4:
        return _walk(raw)
    offset = 0
    try:
        items = [raw[(start := offset + 4) : (offset := start + _unpack_length(raw, offset)[0])] for _ in range(count)]
    except error:
        return _walk(raw)
    return items if offset == len(raw) else _walk(raw)


def _walk(raw: bytes) -> list[bytes]:
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
