"""Parameters of requests and responses: a flat dict for models, JSON text on the wire."""

from __future__ import annotations

import json
from typing import Any, Optional

from .errors import TritonModelException, describe_int, text_fault

# What the protocol has integers for: signed and unsigned ones of 64 bits.
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


def encode_parameters(parameters: Any) -> Optional[str]:
    """JSON text of a dict of str to bool, int or str; None for no parameters.

    Raises TritonModelException for anything else, and for what the protocol cannot carry.
    """
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        raise TritonModelException(
            f"Parameters must be a dict with keys of type str and values of type bool/int/str, got {type(parameters)}"
        )
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(key)}")
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(f"Expect parameters values to have type bool/int/str, found type {type(value)}")
        _check_range(key, value)
    return json.dumps(parameters)


def _check_range(key: str, value: Any) -> None:
    fault = text_fault(key)
    if fault is not None:
        raise TritonModelException(f"Parameters keys must be text that UTF-8 can express; in {ascii(key)}, {fault}")
    if isinstance(value, str):
        fault = text_fault(value)
        if fault is not None:
            raise TritonModelException(f"Parameter '{key}' must be text that UTF-8 can express; {fault}")
    elif not _LEAST <= value <= _MOST:
        raise TritonModelException(
            f"Parameter '{key}' must be an integer from {_LEAST} to {_MOST}, found {describe_int(value)}"
        )
