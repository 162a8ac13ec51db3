"""Datatypes of tensors: the protocol's name, the number in the Python API and the NumPy type."""

from __future__ import annotations

import enum
from typing import Any, Optional

import numpy as np


class DataType(enum.IntEnum):
    """Number of a datatype in the Python API."""

    INVALID = 0
    BOOL = 1
    UINT8 = 2
    UINT16 = 3
    UINT32 = 4
    UINT64 = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FP16 = 10
    FP32 = 11
    FP64 = 12
    BYTES = 13
    BF16 = 14


_NUMPY: dict[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}

# BF16 has no NumPy type: its elements travel as 16 bits each.
STORAGE: dict[str, np.dtype] = {name: np.dtype(kind) for name, kind in _NUMPY.items()}
STORAGE["BF16"] = np.dtype(np.uint16)

_NAMES: dict[np.dtype, str] = {np.dtype(kind): name for name, kind in _NUMPY.items()}

TRITON_STRING_TO_NUMPY: dict[str, Any] = {f"TYPE_{name}": kind for name, kind in _NUMPY.items()}
TRITON_STRING_TO_NUMPY["TYPE_STRING"] = np.object_

_TRITON_TO_NUMPY: dict[int, Any] = {int(DataType[name]): kind for name, kind in _NUMPY.items()}
_TRITON_TO_NUMPY[int(DataType.BYTES)] = np.object_


def datatype_of(dtype: np.dtype) -> Optional[str]:
    """Protocol name for a NumPy dtype in native byte order; None where there is none."""
    name = _NAMES.get(dtype)
    if name is None and dtype.kind in "OS":
        return "BYTES"
    return name


def triton_string_to_numpy(triton_type_string: str) -> Any:
    """NumPy type for a configuration's datatype such as `TYPE_FP32`; KeyError for others, BF16 included."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def triton_to_numpy_type(data_type: int) -> Any:
    """NumPy type for a datatype's number; KeyError for others."""
    return _TRITON_TO_NUMPY[int(data_type)]


def numpy_to_triton_type(data_type: Any) -> int:
    """Number of the datatype for a NumPy type or dtype; KeyError for others."""
    name = datatype_of(np.dtype(data_type))
    if name is None:
        raise KeyError(data_type)
    return int(DataType[name])
