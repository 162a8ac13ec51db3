"""Parameters of requests and responses: a flat dict for models, JSON text on the wire."""

from __future__ import annotations

import json
from typing import Any, Optional

from .errors import TritonModelException


def encode_parameters(parameters: Any) -> Optional[str]:
    """JSON text of a dict of str to bool, int or str; None for no parameters."""
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
    return json.dumps(parameters)
