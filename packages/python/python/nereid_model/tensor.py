"""Tensors of the model API, and their form on the wire.

A received tensor is a view of its receive buffer. BYTES stay encoded until the model reads them, so a tensor that is
passed on to another model is neither decoded nor encoded again.
"""

from __future__ import annotations

from math import prod
from typing import Any, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from .byte_strings import decode_byte_strings, encode_byte_strings
from .datatypes import STORAGE, DataType, datatype_of
from .dlpack import export_capsule, import_tensor
from .errors import TritonModelException, expect, expect_text, surrogate_fault
from .frames import ALIGNMENT, PADDING, ProtocolError, encode
from .mapped import Place, Target

_BF16_TO_NUMPY = (
    "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
)


class Tensor:
    """A named n-dimensional array."""

    __slots__ = ("_array", "_datatype", "_encoded", "_name", "_shape")

    _name: str
    _datatype: str
    _shape: tuple[int, ...]
    # Elements; for BYTES an object array, or None as long as they are only encoded; for BF16 their 16 bits.
    _array: Optional[np.ndarray]
    # The encoded elements of BYTES, once they are known.
    _encoded: Any

    def __init__(self, name: str, array: np.ndarray) -> None:
        if type(name) is not str or type(array) is not np.ndarray:
            expect("name", name, str)
            expect("array", array, np.ndarray)
        if not name.isascii():
            expect_text("name", name)
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        dtype = array.dtype
        if not dtype.isnative:
            array = array.astype(dtype.newbyteorder("="))
            dtype = array.dtype
        datatype = datatype_of(dtype)
        if datatype is None:
            raise TritonModelException("NumPy dtype is not supported.")
        if not array.flags.c_contiguous:
            array = array.copy(order="C")
        self._name = name
        self._datatype = datatype
        self._shape = array.shape
        self._array = array
        self._encoded = None

    @classmethod
    def _of(
        cls, name: str, datatype: str, shape: tuple[int, ...], array: Optional[np.ndarray], encoded: Any = None
    ) -> Tensor:
        tensor = cls.__new__(cls)
        tensor._name = name
        tensor._datatype = datatype
        tensor._shape = shape
        tensor._array = array
        tensor._encoded = encoded
        return tensor

    def name(self) -> str:
        """Name of the tensor."""
        return self._name

    def shape(self) -> list[int]:
        """Sizes of the dimensions."""
        return list(self._shape)

    def triton_dtype(self) -> DataType:
        """Number of the datatype."""
        return DataType[self._datatype]

    def is_cpu(self) -> bool:
        """True: every tensor is in the memory of the CPU."""
        return True

    def as_numpy(self) -> np.ndarray:
        """The elements without a copy; those of BYTES as an object array of bytes, decoded at the first call."""
        if self._datatype == "BF16":
            raise TritonModelException(_BF16_TO_NUMPY)
        if self._array is None:
            try:
                self._array = decode_byte_strings(self._encoded, prod(self._shape)).reshape(self._shape)
            except ValueError as error:
                raise TritonModelException(f"Tensor '{self._name}' cannot be decoded: {error}.") from None
            # The caller may change elements of the array, so the encoded form is no longer the truth.
            self._encoded = None
        elif self._array.dtype.kind == "S":
            self._array = self._array.astype(np.object_)
        return self._array

    def to_dlpack(self) -> Any:
        """DLPack capsule over the memory of the tensor."""
        if self._datatype == "BYTES":
            raise TritonModelException("DLPack does not have support for string tensors.")
        assert self._array is not None
        return export_capsule(self._datatype, self._shape, self._array)

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> Tensor:
        """Tensor over the memory of a DLPack capsule, or of an object with `__dlpack__` and `__dlpack_device__`."""
        expect_text("name", name)
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        datatype, array = import_tensor(tensor)
        return Tensor._of(name, datatype, array.shape, array)

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        if stream not in (None, -1):
            raise TritonModelException("DLPack tensors of the CPU have no stream.")
        return self.to_dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __repr__(self) -> str:
        return f"Tensor({self._name!r}, {self._datatype}, {self.shape()})"

    def _memory(self) -> Any:
        """The elements as one contiguous buffer in the protocol's form."""
        if self._datatype != "BYTES":
            return self._array
        if self._encoded is not None:
            return self._encoded
        assert self._array is not None
        try:
            return encode_byte_strings(self._array)
        except UnicodeEncodeError as error:
            raise TritonModelException(
                f"Tensor '{self._name}' must have texts that UTF-8 can express; in an element, {surrogate_fault(error)}."
            ) from None


_new = Tensor.__new__


class TensorWriter:
    """Tensors of the body of a frame: its pieces with their padding, and their length."""

    __slots__ = ("length", "pieces")

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.length = 0

    def add(
        self,
        tensors: Sequence[Tensor],
        requested: Optional[frozenset[str]] = None,
        targets: Optional[Mapping[str, Target]] = None,
    ) -> str:
        """Adds the requested tensors, or all, and returns their descriptions as JSON, with commas between them.

        `targets` is shared memory for some of them, by their names. BYTES go to the server, which checks the elements.
        """
        texts: list[str] = []
        for tensor in tensors:
            name, datatype = tensor._name, tensor._datatype
            if requested is not None and name not in requested:
                continue
            memory = tensor._memory()
            count = memory.nbytes if isinstance(memory, (np.ndarray, memoryview)) else len(memory)
            key = (name, datatype, tensor._shape, count)
            text = _descriptions.get(key) or _describe(key)
            if targets is not None and datatype != "BYTES":
                target = targets.get(name)
                if target is not None and target.take(memory, count):
                    texts.append(f'{text[:-1]},"m":1}}')
                    continue
            texts.append(text)
            if count:
                padding = -self.length % ALIGNMENT
                if padding:
                    self.pieces.append(PADDING[padding])
                self.pieces.append(memory)
                self.length += padding + count
        return texts[0] if len(texts) == 1 else ",".join(texts)


# Descriptions are often the same again.
_KNOWN = 256
_KNOWN_NAME = 256
_descriptions: dict[tuple[str, str, tuple[int, ...], int], str] = {}


def _describe(key: tuple[str, str, tuple[int, ...], int]) -> str:
    name, datatype, shape, count = key
    text = encode({"n": name, "t": datatype, "s": shape, "b": count})
    if len(_descriptions) >= _KNOWN:
        _descriptions.clear()
    if len(name) <= _KNOWN_NAME:
        _descriptions[key] = text
    return text


class TensorPlan(NamedTuple):
    """A received tensor, as its description in a header says."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    # None for BYTES.
    dtype: Optional[np.dtype]
    count: int
    # In the body, or in the memory of a client.
    offset: int
    place: Optional[Place]


def plan_tensors(items: Any, start: int = 0) -> tuple[list[TensorPlan], int]:
    """Reads descriptions of tensors from byte `start` of a body on, and returns where the last one ends."""
    plans: list[TensorPlan] = []
    offset = start
    try:
        for item in items:
            name, datatype, shape, count = item["n"], item["t"], tuple(item["s"]), item["b"]
            if count < 0:
                raise ProtocolError(f"tensor '{name}' has {count} bytes")
            dtype = None if datatype == "BYTES" else STORAGE[datatype]
            if dtype is not None and prod(shape) * dtype.itemsize != count:
                raise ProtocolError(f"tensor '{name}' of {datatype} {list(shape)} cannot have {count} bytes")
            place = item.get("m")
            if place is not None:
                plans.append(TensorPlan(name, datatype, shape, dtype, count, 0, Place(*place)))
                continue
            offset += -offset % ALIGNMENT if count else 0
            plans.append(TensorPlan(name, datatype, shape, dtype, count, offset, None))
            offset += count
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ProtocolError(f"a tensor in a header is wrong: {type(error).__name__}: {error}") from None
    return plans, offset


def view_tensors(plans: Sequence[TensorPlan], body: Any) -> list[Tensor]:
    """Tensors as views of the body.

    Raises RequestError if shared memory of a client cannot be mapped.
    """
    tensors: list[Tensor] = []
    size = 0 if body is None else len(body)
    try:
        for name, datatype, shape, dtype, count, at, place in plans:
            memory = body if place is None else place.map(count)
            if place is None and at + count > size:
                raise ProtocolError(f"tensor '{name}' ends at byte {at + count} of a body of {size} bytes")
            if dtype is None:
                encoded = memoryview(memory)[at : at + count] if count else b""
                tensors.append(Tensor._of(name, datatype, shape, None, encoded))
            else:
                tensor = _new(Tensor)
                tensor._name = name
                tensor._datatype = datatype
                tensor._shape = shape
                tensor._array = np.ndarray(shape, dtype, memory, at) if count else np.empty(shape, dtype)
                tensor._encoded = None
                tensors.append(tensor)
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"a tensor in a header is wrong: {type(error).__name__}: {error}") from None
    return tensors


def read_tensors(items: Any, body: Any) -> list[Tensor]:
    """Tensors of a header as views of the body."""
    return view_tensors(plan_tensors(items)[0], body)
