"""DLPack in both directions for memory of the CPU.

NumPy exports no read-only array and no BF16, so the capsule is made here with ctypes: `DLManagedTensor` of DLPack 0.x,
which every framework reads. Tensors of another device are copied to the CPU by the framework that owns them.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from typing import Any

import numpy as np

from .errors import TritonModelException

_CPU, _CUDA_HOST, _ROCM_HOST = 1, 3, 11
_NAME, _USED_NAME = b"dltensor", b"used_dlpack"
_VERSIONED_NAME, _USED_VERSIONED_NAME = b"dltensor_versioned", b"used_dltensor_versioned"

NOT_CONTIGUOUS = (
    "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
)


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _VersionedManaged(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_CODES: dict[str, tuple[int, int]] = {
    "BOOL": (6, 8),
    "UINT8": (1, 8),
    "UINT16": (1, 16),
    "UINT32": (1, 32),
    "UINT64": (1, 64),
    "INT8": (0, 8),
    "INT16": (0, 16),
    "INT32": (0, 32),
    "INT64": (0, 64),
    "FP16": (2, 16),
    "FP32": (2, 32),
    "FP64": (2, 64),
    "BF16": (4, 16),
}
_DATATYPES = {code: name for name, code in _CODES.items()}

_api = ctypes.pythonapi
_new_capsule = _api.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_capsule = _api.PyCapsule_IsValid
_is_capsule.restype = ctypes.c_int
_is_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer_of = _api.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_rename = _api.PyCapsule_SetName
_rename.restype = ctypes.c_int
_rename.argtypes = [ctypes.py_object, ctypes.c_char_p]

# A destructor receives an object without references, so it must never become a py_object: own prototypes with pointers.
_is_dying_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer_of_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)

# Exported tensors by the address of their DLManagedTensor: what must stay alive until the consumer calls the deleter.
_exported: dict[int, Any] = {}
_exporting = threading.Lock()


@_Deleter
def _release_export(address: int) -> None:
    _exported.pop(address, None)


@_Deleter
def _destroy_capsule(capsule: int) -> None:
    if _is_dying_capsule(capsule, _NAME):
        _exported.pop(_pointer_of_dying(capsule, _NAME), None)


def export_capsule(datatype: str, shape: tuple[int, ...], array: np.ndarray) -> Any:
    """Capsule "dltensor" over the memory of a C-contiguous array, which lives until the consumer has released it."""
    managed = _Managed()
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(shape), 1))(*_strides(shape))
    code, bits = _CODES[datatype]
    managed.tensor.data = array.ctypes.data
    managed.tensor.device = _Device(_CPU, 0)
    managed.tensor.ndim = len(shape)
    managed.tensor.dtype = _DataType(code, bits, 1)
    managed.tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    managed.tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(_release_export, ctypes.c_void_p).value
    address = ctypes.addressof(managed)
    _exported[address] = (managed, sizes, steps, array)
    return _new_capsule(address, _NAME, ctypes.cast(_destroy_capsule, ctypes.c_void_p))


def import_tensor(source: Any) -> tuple[str, np.ndarray]:
    """Datatype and array over the memory of a DLPack capsule or of an object with `__dlpack__`; BF16 as uint16."""
    if isinstance(source, np.ndarray):
        return _of_numpy(source)
    if type(source).__name__ == "PyCapsule":
        return _of_capsule(source)
    if not hasattr(source, "__dlpack__") or not hasattr(source, "__dlpack_device__"):
        raise TritonModelException(
            "Provided tensor is not supported. Tensor must be a DLPack capsule or have `__dlpack__` and "
            "`__dlpack_device__` attributes."
        )
    if int(source.__dlpack_device__()[0]) not in (_CPU, _CUDA_HOST, _ROCM_HOST):
        source = _to_cpu(source)
        if isinstance(source, np.ndarray):
            return _of_numpy(source)
    if getattr(source, "requires_grad", False) and hasattr(source, "detach"):
        source = source.detach()
    return _of_capsule(source.__dlpack__())


def _of_numpy(array: np.ndarray) -> tuple[str, np.ndarray]:
    from .datatypes import datatype_of

    datatype = datatype_of(array.dtype)
    if datatype is None or datatype == "BYTES":
        raise TritonModelException(f"DLPack does not have support for arrays of type {array.dtype}.")
    if not array.flags.c_contiguous:
        raise TritonModelException(NOT_CONTIGUOUS)
    return datatype, array


def _to_cpu(source: Any) -> Any:
    """Copy of a tensor of another device in the memory of the CPU, made by its framework."""
    for method in ("cpu", "get"):  # torch and paddle, cupy
        copy = getattr(source, method, None)
        if callable(copy):
            return copy()
    raise TritonModelException(
        f"The tensor of type {type(source).__name__} is not in the memory of the CPU and has no method that copies it "
        "there."
    )


def _of_capsule(capsule: Any) -> tuple[str, np.ndarray]:
    if _is_capsule(capsule, _NAME):
        address = _pointer_of(capsule, _NAME)
        managed: Any = _Managed.from_address(address)
        used = _USED_NAME
    elif _is_capsule(capsule, _VERSIONED_NAME):
        address = _pointer_of(capsule, _VERSIONED_NAME)
        managed = _VersionedManaged.from_address(address)
        used = _USED_VERSIONED_NAME
    else:
        raise TritonModelException("Provided capsule is not a DLPack capsule, or was already used.")
    tensor = managed.tensor
    if tensor.device.kind not in (_CPU, _CUDA_HOST, _ROCM_HOST):
        return _of_capsule(_cpu_capsule(capsule))
    datatype = _DATATYPES.get((tensor.dtype.code, tensor.dtype.bits))
    if datatype is None or tensor.dtype.lanes != 1:
        raise TritonModelException(
            f"DLPack datatype with code {tensor.dtype.code}, {tensor.dtype.bits} bits and {tensor.dtype.lanes} lanes "
            "is not supported."
        )
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if tensor.strides and not _is_contiguous(shape, [tensor.strides[axis] for axis in range(tensor.ndim)]):
        raise TritonModelException(NOT_CONTIGUOUS)
    from .datatypes import STORAGE

    dtype = STORAGE[datatype]
    count = 1
    for size in shape:
        count *= size
    deleter = managed.deleter
    release = _Release(address, deleter)
    _rename(capsule, used)
    if count == 0:
        release()
        return datatype, np.empty(shape, dtype)
    memory: Any = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(tensor.data + tensor.byte_offset)
    # The ctypes object is the base of every view, so the memory is released with the last of them.
    weakref.finalize(memory, release).atexit = False
    return datatype, np.frombuffer(memory, dtype=dtype).reshape(shape)


class _Release:
    """Calls the deleter of a consumed DLPack tensor."""

    __slots__ = ("_address", "_deleter")

    def __init__(self, address: int, deleter: Any) -> None:
        self._address = address
        self._deleter = deleter

    def __call__(self) -> None:
        if self._deleter:
            ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self._deleter)(self._address)


def _cpu_capsule(capsule: Any) -> Any:
    """Capsule in the memory of the CPU for one of another device, by a framework that the model has imported."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.from_dlpack(capsule).cpu().__dlpack__()
    raise TritonModelException("The DLPack capsule is not in the memory of the CPU. Pass the tensor itself instead.")


def _strides(shape: tuple[int, ...]) -> list[int]:
    steps, step = [0] * len(shape), 1
    for axis in range(len(shape) - 1, -1, -1):
        steps[axis] = step
        step *= shape[axis]
    return steps


def _is_contiguous(shape: tuple[int, ...], strides: list[int]) -> bool:
    if 0 in shape:
        return True
    return all(size == 1 or step == wanted for size, step, wanted in zip(shape, strides, _strides(shape)))
