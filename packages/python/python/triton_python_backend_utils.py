"""The Python model API, as models import it: `import triton_python_backend_utils as pb_utils`."""

from __future__ import annotations

from typing import Any, Optional

from nereid_model.byte_strings import deserialize_bytes_tensor, serialize_byte_tensor
from nereid_model.config import ModelConfig
from nereid_model.datatypes import (
    TRITON_STRING_TO_NUMPY,
    numpy_to_triton_type,
    triton_string_to_numpy,
    triton_to_numpy_type,
)
from nereid_model.errors import TritonError, TritonModelException
from nereid_model.flags import REQUEST_RELEASE_ALL as TRITONSERVER_REQUEST_RELEASE_ALL
from nereid_model.flags import REQUEST_RELEASE_RESCHEDULE as TRITONSERVER_REQUEST_RELEASE_RESCHEDULE
from nereid_model.flags import REQUEST_SEQUENCE_END as TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
from nereid_model.flags import REQUEST_SEQUENCE_START as TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
from nereid_model.flags import RESPONSE_COMPLETE_FINAL as TRITONSERVER_RESPONSE_COMPLETE_FINAL
from nereid_model.logger import Logger
from nereid_model.memory import TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_GPU, PreferredMemory
from nereid_model.metrics import MetricFamily
from nereid_model.model_control import get_model_dir, is_model_ready, load_model, unload_model
from nereid_model.request import InferenceRequest
from nereid_model.response import InferenceResponse
from nereid_model.tensor import Tensor
from nereid_model.trace import InferenceTrace

__all__ = [
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START",
    "TRITONSERVER_REQUEST_RELEASE_ALL",
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE",
    "TRITONSERVER_RESPONSE_COMPLETE_FINAL",
    "TRITON_STRING_TO_NUMPY",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceTrace",
    "Logger",
    "MetricFamily",
    "ModelConfig",
    "PreferredMemory",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "deserialize_bytes_tensor",
    "get_input_config_by_name",
    "get_input_tensor_by_name",
    "get_model_dir",
    "get_output_config_by_name",
    "get_output_tensor_by_name",
    "is_model_ready",
    "load_model",
    "numpy_to_triton_type",
    "serialize_byte_tensor",
    "triton_string_to_numpy",
    "triton_to_numpy_type",
    "unload_model",
    "using_decoupled_model_transaction_policy",
]


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Optional[Tensor]:
    """Input of a request; None without one of that name."""
    for tensor in inference_request.inputs():
        if tensor.name() == name:
            return tensor
    return None


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Optional[Tensor]:
    """Output of a response; None without one of that name."""
    for tensor in inference_response.output_tensors():
        if tensor.name() == name:
            return tensor
    return None


def get_input_config_by_name(model_config: dict[str, Any], name: str) -> Optional[dict[str, Any]]:
    """Configuration of an input; None without one of that name."""
    return _by_name(model_config.get("input", ()), name)


def get_output_config_by_name(model_config: dict[str, Any], name: str) -> Optional[dict[str, Any]]:
    """Configuration of an output; None without one of that name."""
    return _by_name(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool:
    """Whether a model's configuration asks for the decoupled mode."""
    return bool((model_config.get("model_transaction_policy") or {}).get("decoupled", False))


def _by_name(entries: Any, name: str) -> Optional[dict[str, Any]]:
    for entry in entries:
        if entry.get("name") == name:
            return entry
    return None
