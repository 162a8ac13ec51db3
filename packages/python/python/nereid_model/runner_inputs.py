"""Inputs of the local runner: from JSON, from .npy files, or made up from the configuration."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Optional

import numpy as np

from .datatypes import STORAGE
from .errors import TritonModelException
from .start import Field
from .tensor import Tensor


def fields_of(config: dict[str, Any], kind: str) -> list[Field]:
    """Declared inputs or outputs of a configuration, in the shapes that the model's code sees."""
    return [
        Field(
            name=entry["name"],
            datatype=_datatype(entry.get("data_type", "TYPE_FP32")),
            dims=tuple(int(size) for size in (entry.get("reshape") or {}).get("shape", entry.get("dims")) or ()),
            optional=bool(entry.get("optional")),
        )
        for entry in config.get(kind) or ()
    ]


def make_inputs(
    given: Iterable[str], fields: list[Field], max_batch_size: int, fill: str, seed: int
) -> list[Tensor]:
    """Inputs from `NAME=VALUE` arguments; declared inputs that are missing are filled unless they are optional."""
    declared = {field.name: field for field in fields}
    tensors: dict[str, Tensor] = {}
    for argument in given:
        name, equals, value = argument.partition("=")
        if not equals or not name:
            raise TritonModelException(f"--input needs NAME=VALUE, found '{argument}'.")
        if declared and name not in declared:
            raise TritonModelException(f"The model has no input '{name}'; its inputs are {', '.join(declared)}.")
        tensors[name] = _read(name, value, declared.get(name))
        if name in declared:
            _expect_shape(tensors[name], declared[name], max_batch_size)
    generator = np.random.default_rng(seed)
    for field in fields:
        if field.name not in tensors and not field.optional:
            tensors[field.name] = _fill(field, max_batch_size, fill, generator)
    return list(tensors.values())


def _expect_shape(tensor: Tensor, field: Field, max_batch_size: int) -> None:
    shape = tensor.shape()
    dims = [-1, *field.dims] if max_batch_size > 0 else list(field.dims)
    fits = len(shape) == len(dims) and all(dim in (-1, size) for size, dim in zip(shape, dims))
    if not fits:
        raise TritonModelException(f"Input '{field.name}' must have the shape {dims}, found {list(shape)}.")
    if max_batch_size > 0 and shape[0] > max_batch_size:
        raise TritonModelException(
            f"Input '{field.name}' has {shape[0]} rows, more than the max_batch_size {max_batch_size}."
        )


def _datatype(name: str) -> str:
    short = name[len("TYPE_") :] if name.startswith("TYPE_") else name
    datatype = "BYTES" if short == "STRING" else short
    if datatype != "BYTES" and datatype not in STORAGE:
        raise TritonModelException(f"The configuration has the unknown data_type '{name}'.")
    return datatype


def _read(name: str, text: str, field: Optional[Field]) -> Tensor:
    if text.endswith(".npy"):
        try:
            array = np.load(text, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise TritonModelException(f"Input '{name}' cannot be read from '{text}': {error}") from None
        array = array.astype(np.object_) if array.dtype.kind == "U" else array
        return _checked(name, array, field)
    if os.path.isfile(text):
        with open(text, encoding="utf-8") as file:
            text = file.read()
    try:
        value = json.loads(text)
    except ValueError as error:
        raise TritonModelException(f"Input '{name}' is neither JSON nor a file: {error}") from None
    return _from_json(name, value, field)


def _from_json(name: str, value: Any, field: Optional[Field]) -> Tensor:
    if field is not None and field.datatype == "BF16":
        bits = np.ascontiguousarray(np.asarray(value, np.float32)).view(np.uint32)
        return Tensor._of(name, "BF16", bits.shape, ((bits + 0x8000) >> 16).astype(np.uint16))
    dtype = None if field is None else np.object_ if field.datatype == "BYTES" else STORAGE[field.datatype]
    try:
        array = np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        expected = "" if field is None else f" as {field.datatype}"
        raise TritonModelException(f"Input '{name}' cannot be read{expected}: {error}") from None
    if array.dtype.kind in "OU":
        array = np.frompyfunc(_bytes_of, 1, 1)(array)
        array = np.asarray(array, np.object_)
    return _checked(name, array, field)


def _bytes_of(item: Any) -> bytes:
    return item if isinstance(item, bytes) else str(item).encode("utf-8")


def _checked(name: str, array: np.ndarray, field: Optional[Field]) -> Tensor:
    tensor = Tensor(name, array)
    if field is not None and tensor._datatype != field.datatype:
        raise TritonModelException(f"Input '{name}' must be {field.datatype}, found {tensor._datatype}.")
    return tensor


def _fill(field: Field, max_batch_size: int, fill: str, generator: Any) -> Tensor:
    shape = tuple(max(size, 1) for size in field.dims)
    if max_batch_size > 0:
        shape = (1, *shape)
    if field.datatype == "BYTES":
        strings = np.empty(shape, np.object_)
        strings[...] = b"" if fill == "zeros" else b"text"
        return Tensor(field.name, strings)
    dtype = STORAGE[field.datatype]
    if fill == "zeros":
        array = np.zeros(shape, dtype)
    elif field.datatype == "BF16":
        array = (generator.random(shape, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    elif dtype.kind == "f":
        array = generator.random(shape).astype(dtype)
    else:
        array = generator.integers(0, 2, shape).astype(dtype)
    return Tensor._of(field.name, field.datatype, shape, array)
