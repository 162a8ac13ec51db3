"""Frames of both sockets: a head of 16 bytes, a JSON header and a body of raw bytes. NumPy is not needed here.

    u32 header length | u8 kind | u24 released | u64 body length | header (UTF-8 JSON object) | body

With the highest bit of the kind, the body is not in the frame but in shared memory (shared_bodies.py): the upper half
of the body length is its offset there. `released` is for that memory, and 0 without.
"""

from __future__ import annotations

import enum
import json
import socket
import threading
from struct import Struct
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence, Union

if TYPE_CHECKING:
    from .shared_bodies import SharedBodies

_HEAD = Struct("<IIQ")
_unpack_head = _HEAD.unpack_from
HEAD_BYTES = _HEAD.size
HEADER_LIMIT = 16 * 1024 * 1024
BODY_LIMIT = 1 << 40
ALIGNMENT = 16
RELEASED_MASK = 0xFFFFFF
PADDING = tuple(bytes(count) for count in range(ALIGNMENT))

_IN_SHARED = 0x80
# The first read of a frame takes its head, its header and a little of its body; the rest goes straight to its buffer.
_STAGING = 8 * 1024
_PIECES_AT_ONCE = 512
# Bytes from which shared memory takes a body: the socket is faster with fewer.
LEAST_SHARED = 32 * 1024
# Up to this length of a body, one buffer costs less than a list of them.
_COPIED = 4 * 1024

# Beginning of the headers of executions. What follows the number is often the same text again.
_EXECUTION = b'{"x":'
_KNOWN_HEADERS = 128
_KNOWN_BYTES = 2 * 1024

# Both skip the general steps of `json.dumps` and `json.loads`, which take half of their time for a small header.
_scan = json.JSONDecoder().scan_once


def _encoder() -> Callable[[Any], str]:
    encoder = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    escape = json.encoder.encode_basestring_ascii
    chunks = make(None, encoder.default, escape, None, ":", ",", False, False, False)
    return lambda value: "".join(chunks(value, 0))


encode = _encoder()


class Kind(enum.IntEnum):
    """Kind of a frame."""

    EXECUTE = 1
    RETURNED = 2
    RESPONSE = 3
    START = 10
    CHECK_READY = 11
    CANCEL = 12
    STOP = 13
    REPLY = 14
    SHARED = 15
    LOG_LEVEL = 17
    DUMP_STACKS = 18
    SEQUENCE_ENDED = 19
    CREDIT = 20
    LISTENING = 29
    STARTED = 30
    READY = 31
    CALL = 32
    STOPPED = 33
    LOG = 34
    STACKS = 35
    CANCEL_CALL = 36
    CONTROL_MODEL = 37
    METRIC = 38
    CREDIT_CALL = 39


# As plain numbers: enums are slow in arithmetic.
EXECUTE, RETURNED, RESPONSE = int(Kind.EXECUTE), int(Kind.RETURNED), int(Kind.RESPONSE)


class ProtocolError(Exception):
    """The peer broke the rules of the wire; the connection cannot go on."""


class Header(dict[str, Any]):
    """Fields of a header. Frames of the same text share them, so nothing may change them."""

    # What the reader has made of the fields, for the next frame of the same text.
    plan: Any = None


class Frame(NamedTuple):
    """One received frame; `body` is a writable buffer, or None if the frame has none or memory ran out for it."""

    kind: int
    header: Header
    body: Any
    lost_body: int = 0
    # `x` of the header, which lacks it, where executions come.
    number: Any = None


class FrameSocket:
    """A stream socket that carries frames; any thread may send, one at a time receives."""

    __slots__ = (
        "_allocate",
        "_end",
        "_executes",
        "_known",
        "_sending",
        "_shared",
        "_socket",
        "_staging",
        "_start",
    )

    def __init__(
        self,
        stream: socket.socket,
        allocate: Callable[[int], Any] = bytearray,
        shared: Optional[SharedBodies] = None,
        executes: bool = False,
    ) -> None:
        """`executes`: whether executions come, which are short and frequent."""
        self._socket = stream
        self._executes = executes
        self._allocate = allocate
        self._shared = shared
        self._sending = threading.Lock()
        self._staging = memoryview(bytearray(_STAGING))
        self._start = 0
        self._end = 0
        self._known: dict[bytes, Header] = {}

    def allocate_with(self, allocate: Callable[[int], Any]) -> None:
        """Takes the buffers of later bodies from `allocate`."""
        self._allocate = allocate

    def send(
        self, kind: int, header: Union[dict[str, Any], str], pieces: Sequence[Any] = (), body_bytes: int = 0
    ) -> None:
        """Sends one frame; `pieces` are contiguous buffers, padding included, of `body_bytes` bytes together.

        `header` may be JSON text already, in ASCII. Raises ValueError for a header above its limit.
        """
        text = (header if isinstance(header, str) else encode(header)).encode("ascii")
        if len(text) > HEADER_LIMIT:
            raise ValueError(f"a header of {len(text)} bytes is longer than the limit of {HEADER_LIMIT}")
        shared = self._shared
        with self._sending:
            if shared is not None:
                offset = shared.write(pieces, body_bytes) if body_bytes >= LEAST_SHARED else None
                kind |= shared.released << 8
                if offset is not None:
                    self._socket.sendall(_HEAD.pack(len(text), kind | _IN_SHARED, offset << 32 | body_bytes) + text)
                    return
            head = _HEAD.pack(len(text), kind, body_bytes) + text
            if body_bytes == 0:
                self._socket.sendall(head)
            elif body_bytes <= _COPIED:
                self._socket.sendall(b"".join((head, *pieces)))
            else:
                _send_pieces(self._socket, [head, *pieces], len(head) + body_bytes)

    def receive(self) -> Optional[Frame]:
        """Waits for one frame; None at the end of the stream."""
        staging = self._staging
        if self._start == self._end:
            # The usual case: the thread waits, and then a small frame comes as a whole.
            self._start = 0
            self._end = self._socket.recv_into(staging)
        if self._end - self._start < HEAD_BYTES and not self._fill(HEAD_BYTES, may_end=True):
            return None
        header_bytes, kind, body_bytes = _unpack_head(staging, self._start)
        if header_bytes > HEADER_LIMIT:
            raise ProtocolError(f"a header of {header_bytes} bytes is longer than the limit of {HEADER_LIMIT}")
        released = kind >> 8
        is_shared = kind & _IN_SHARED
        kind &= 0x7F
        shared = self._shared
        if shared is not None:
            shared.peer_released(released)
        elif is_shared:
            raise ProtocolError("a body is in shared memory, and there is none")
        if body_bytes > BODY_LIMIT and not is_shared:
            raise ProtocolError(f"a body of {body_bytes} bytes is longer than the limit of {BODY_LIMIT}")
        start = self._start = self._start + HEAD_BYTES
        body_at = start + header_bytes
        if body_at <= self._end:
            text = bytes(staging[start:body_at])
            self._start = body_at
        else:
            text = self._read_header(header_bytes)
        header, number = self._parse(text)
        if body_bytes == 0:
            return Frame(kind, header, None, 0, number)
        if is_shared and shared is not None:
            return Frame(kind, header, shared.view(body_bytes >> 32, body_bytes & 0xFFFFFFFF), 0, number)
        if body_bytes <= _COPIED and body_bytes <= self._end - self._start:
            start = self._start
            self._start = start + body_bytes
            return Frame(kind, header, bytearray(staging[start : start + body_bytes]), 0, number)
        try:
            body = self._allocate(body_bytes)
        except MemoryError:
            self._discard(body_bytes)
            return Frame(kind, header, None, body_bytes, number)
        self._read_into(memoryview(body))
        return Frame(kind, header, body, 0, number)

    def _parse(self, text: bytes) -> tuple[Header, Any]:
        """Fields of a header, and the number of its execution."""
        if not self._executes:
            return _parse_header(text), None
        comma = text.find(b",")
        rest = text[comma:]
        header = self._known.get(rest)
        if header is not None and text.startswith(_EXECUTION):
            try:
                return header, int(text[len(_EXECUTION) : comma])
            except ValueError:
                # The whole text says it better.
                pass
        header = _parse_header(text)
        number = header.pop("x", None)
        if type(number) is int and text.startswith(_EXECUTION) and len(text) <= _KNOWN_BYTES:
            if len(self._known) >= _KNOWN_HEADERS:
                self._known.clear()
            self._known[rest] = header
        return header, number

    def end_receiving(self) -> None:
        """Makes a pending and every later `receive` return what has come, and then None."""
        try:
            self._socket.shutdown(socket.SHUT_RD)
        except OSError:
            pass

    def close(self) -> None:
        self._socket.close()

    def _fill(self, wanted: int, may_end: bool = False) -> bool:
        """Has at least `wanted` bytes in the staging buffer, which is no smaller; False if the stream ended before."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start + wanted > _STAGING:
            kept = bytes(self._staging[self._start : self._end])
            self._staging[: len(kept)] = kept
            self._start, self._end = 0, len(kept)
        while self._end - self._start < wanted:
            count = self._socket.recv_into(self._staging[self._end :])
            if count == 0:
                if may_end and self._start == self._end:
                    return False
                raise ProtocolError("the connection ended inside a frame")
            self._end += count
        return True

    def _read_header(self, count: int) -> bytes:
        if count <= _STAGING:
            self._fill(count)
            start = self._start
            self._start = start + count
            return bytes(self._staging[start : start + count])
        header = bytearray(count)
        self._read_into(memoryview(header))
        return bytes(header)

    def _read_into(self, target: memoryview) -> None:
        """Fills `target` from the staging buffer and then straight from the socket."""
        total = len(target)
        at = min(self._end - self._start, total)
        if at:
            target[:at] = self._staging[self._start : self._start + at]
            self._start += at
        while at < total:
            count = self._socket.recv_into(target[at:], total - at, socket.MSG_WAITALL)
            if count == 0:
                raise ProtocolError("the connection ended inside a frame")
            at += count

    def _discard(self, count: int) -> None:
        rest = memoryview(bytearray(min(count, 64 * 1024)))
        while count:
            part = rest[: min(count, len(rest))]
            self._read_into(part)
            count -= len(part)


def _parse_header(text: Any) -> Header:
    try:
        decoded = str(text, "utf-8")
        header, end = _scan(decoded, 0)
        if end != len(decoded):
            raise ValueError(f"{len(decoded) - end} characters follow it")
    except (ValueError, RecursionError, StopIteration) as error:
        raise ProtocolError(f"a header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ProtocolError(f"a header must be a JSON object, not {type(header).__name__}")
    return Header(header)


def _send_pieces(stream: socket.socket, pieces: list[Any], total: int) -> None:
    for first in range(0, len(pieces), _PIECES_AT_ONCE):
        part = pieces[first : first + _PIECES_AT_ONCE]
        whole = len(part) == len(pieces)
        wanted = total if whole else sum(memoryview(piece).nbytes for piece in part)
        sent = stream.sendmsg(part)
        if sent == wanted:
            continue
        for piece in part:
            view = memoryview(piece)
            if sent >= view.nbytes:
                sent -= view.nbytes
                continue
            stream.sendall(view.cast("B")[sent:])
            sent = 0
