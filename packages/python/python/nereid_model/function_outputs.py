"""Results of plain functions, checked against the declared outputs and turned into tensors."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from .datatypes import STORAGE, datatype_of
from .errors import TritonModelException, WrongReturn
from .start import Field
from .tensor import Tensor


class FunctionOutputs:
    """Turns what a function returned into output tensors; raises WrongReturn with what came and what was expected."""

    __slots__ = ("_batches", "_fields", "_names")

    def __init__(self, fields: Sequence[Field], batches: bool) -> None:
        self._fields = tuple(fields)
        self._names = [field.name for field in fields]
        self._batches = batches

    def convert(self, result: Any, rows: Optional[int]) -> list[Tensor]:
        """Tensors of a result; `rows` is the expected length of the batch axis, None for any."""
        return [self._convert_one(field, value, rows) for field, value in zip(self._fields, self._values(result))]

    def _values(self, result: Any) -> Sequence[Any]:
        expected = f"the function must return {_count(len(self._fields), 'output')}, {', '.join(self._names)}"
        if isinstance(result, dict):
            missing = [name for name in self._names if name not in result]
            unknown = [str(name) for name in result if name not in self._names]
            if missing or unknown:
                parts = [f"without {', '.join(missing)}"] if missing else []
                parts += [f"with the unknown {', '.join(unknown)}"] if unknown else []
                raise WrongReturn(f"{expected}; it returned a dict {' and '.join(parts)}")
            return [result[name] for name in self._names]
        if result is None and self._fields:
            raise WrongReturn(f"{expected}; it returned None")
        several = len(self._fields) != 1
        if isinstance(result, tuple) or (several and isinstance(result, list)):
            if len(result) != len(self._fields):
                raise WrongReturn(f"{expected}; it returned a {type(result).__name__} of {len(result)}")
            return result
        if several:
            if result is None:
                return []
            raise WrongReturn(f"{expected}; it returned {_describe(result)}")
        return [result]

    def _convert_one(self, field: Field, value: Any, rows: Optional[int]) -> Tensor:
        tensor = self._tensor(field, value)
        shape = tensor._shape
        dims = ((-1, *field.dims) if self._batches else field.dims)
        fits = len(shape) == len(dims) and all(wanted in (-1, size) for wanted, size in zip(dims, shape))
        if tensor._datatype != field.datatype or not fits:
            raise WrongReturn(self._mismatch(field, value))
        if self._batches and rows is not None and shape[0] != rows:
            raise WrongReturn(
                f"output '{field.name}' must have {_count(rows, 'row')}, as many as the inputs; it has {shape[0]}"
            )
        return tensor

    def _tensor(self, field: Field, value: Any) -> Tensor:
        name = field.name
        if isinstance(value, Tensor):
            return Tensor._of(name, value._datatype, value._shape, value._array, value._encoded)
        if field.datatype == "BYTES":
            return self._strings(field, value)
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
            if datatype_of(array.dtype) != field.datatype:
                raise WrongReturn(self._mismatch(field, value))
            return Tensor(name, array)
        if hasattr(value, "__dlpack__"):
            try:
                return Tensor.from_dlpack(name, value)
            except TritonModelException as error:
                raise WrongReturn(f"output '{name}' cannot be read by DLPack: {error}") from None
        if field.datatype == "BF16":
            raise WrongReturn(f"output '{name}' of BF16 must support DLPack, found {type(value).__name__}")
        try:
            return Tensor(name, np.asarray(value, STORAGE[field.datatype]))
        except (TypeError, ValueError, OverflowError) as error:
            raise WrongReturn(f"output '{name}' cannot be converted to {field.datatype}: {error}") from None

    def _strings(self, field: Field, value: Any) -> Tensor:
        array = value if isinstance(value, np.ndarray) else np.asarray(value, np.object_)
        if array.dtype.kind == "U":
            array = array.astype(np.object_)
        if array.dtype.kind not in "OS":
            raise WrongReturn(self._mismatch(field, value))
        for item in array.ravel().tolist():
            if not isinstance(item, (str, bytes)):
                raise WrongReturn(
                    f"output '{field.name}' must hold str or bytes, found {type(item).__name__}"
                )
        return Tensor(field.name, array)

    def _mismatch(self, field: Field, value: Any) -> str:
        dims = [-1, *field.dims] if self._batches else list(field.dims)
        return f"output '{field.name}' must be {field.datatype} {dims}; the function returned {_describe(value)}"


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value._datatype} {value.shape()}"
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{datatype_of(value.dtype) or value.dtype} {list(value.shape)}"
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"{type(value).__name__} {list(shape)} of {getattr(value, 'dtype', 'unknown type')}"
    if isinstance(value, (list, int, float, str, bytes)):
        return f"a {type(value).__name__} of shape {list(np.shape(np.asarray(value, np.object_)))}"
    return f"an object of type {type(value).__name__}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
