"""Tensors of the model API, and their form on the wire.

A received tensor is a view of its receive buffer. BYTES stay encoded until the model reads them, so a tensor that is
passed on to another model is neither decoded nor encoded again.
"""

from __future__ import annotations

from math import prod
from typing import Any, Optional, Sequence

import numpy as np

from .byte_strings import decode_byte_strings, encode_byte_strings
from .datatypes import STORAGE, DataType, datatype_of
from .dlpack import export_capsule, import_tensor
from .errors import TritonModelException, expect
from .frames import ALIGNMENT, PADDING, ProtocolError
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
        expect("name", name, str)
        expect("array", array, np.ndarray)
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        datatype = datatype_of(array.dtype)
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
        expect("name", name, str)
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
        return encode_byte_strings(self._array)


def wire_parts(
    tensors: Sequence[Tensor], targets: Optional[Sequence[Optional[Target]]] = None
) -> tuple[list[dict[str, Any]], list[Any], int]:
    """Header items, pieces of the body with their padding, and the length of the body.

    `targets` is shared memory for the tensors, by their positions. BYTES go to the server, which checks the elements.
    """
    items: list[dict[str, Any]] = []
    pieces: list[Any] = []
    length = 0
    for position, tensor in enumerate(tensors):
        memory = tensor._memory()
        count = memory.nbytes if isinstance(memory, (np.ndarray, memoryview)) else len(memory)
        item = {"n": tensor._name, "t": tensor._datatype, "s": tensor._shape, "b": count}
        items.append(item)
        target = targets[position] if targets is not None else None
        if target is not None and tensor._datatype != "BYTES" and target.take(memory, count):
            item["m"] = 1
        elif count:
            padding = -length % ALIGNMENT
            if padding:
                pieces.append(PADDING[padding])
            pieces.append(memory)
            length += padding + count
    return items, pieces, length


def read_tensors(
    items: Any, body: Any, start: int = 0
) -> tuple[list[Tensor], int]:
    """Tensors of a header as views of the body, from byte `start` of it, and where the last one ends.

    Raises RequestError if shared memory of a client cannot be mapped.
    """
    tensors: list[Tensor] = []
    offset = start
    size = 0 if body is None else len(body)
    try:
        for item in items:
            name, datatype, shape, count = item["n"], item["t"], tuple(item["s"]), item["b"]
            place = item.get("m")
            if place is not None:
                memory, at = Place(*place).map(count), 0
            else:
                offset += -offset % ALIGNMENT if count else 0
                if count < 0 or offset + count > size:
                    raise ProtocolError(f"tensor '{name}' ends at byte {offset + count} of a body of {size} bytes")
                memory, at = body, offset
                offset += count
            if datatype == "BYTES":
                encoded = memoryview(memory)[at : at + count] if count else b""
                tensors.append(Tensor._of(name, datatype, shape, None, encoded))
                continue
            dtype = STORAGE[datatype]
            if prod(shape) * dtype.itemsize != count:
                raise ProtocolError(f"tensor '{name}' of {datatype} {list(shape)} cannot have {count} bytes")
            array: np.ndarray = np.ndarray(shape, dtype, memory, at) if count else np.empty(shape, dtype)
            tensors.append(Tensor._of(name, datatype, shape, array))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ProtocolError(f"a tensor in a header is wrong: {type(error).__name__}: {error}") from None
    return tensors, offset
