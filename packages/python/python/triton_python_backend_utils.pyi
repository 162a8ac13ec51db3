from typing import Any, Optional

from nereid_model.byte_strings import deserialize_bytes_tensor as deserialize_bytes_tensor
from nereid_model.byte_strings import serialize_byte_tensor as serialize_byte_tensor
from nereid_model.config import ModelConfig as ModelConfig
from nereid_model.datatypes import TRITON_STRING_TO_NUMPY as TRITON_STRING_TO_NUMPY
from nereid_model.datatypes import numpy_to_triton_type as numpy_to_triton_type
from nereid_model.datatypes import triton_string_to_numpy as triton_string_to_numpy
from nereid_model.datatypes import triton_to_numpy_type as triton_to_numpy_type
from nereid_model.errors import TritonError as TritonError
from nereid_model.errors import TritonModelException as TritonModelException
from nereid_model.flags import REQUEST_RELEASE_ALL as TRITONSERVER_REQUEST_RELEASE_ALL
from nereid_model.flags import REQUEST_RELEASE_RESCHEDULE as TRITONSERVER_REQUEST_RELEASE_RESCHEDULE
from nereid_model.flags import REQUEST_SEQUENCE_END as TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
from nereid_model.flags import REQUEST_SEQUENCE_START as TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
from nereid_model.flags import RESPONSE_COMPLETE_FINAL as TRITONSERVER_RESPONSE_COMPLETE_FINAL
from nereid_model.logger import Logger as Logger
from nereid_model.memory import TRITONSERVER_MEMORY_CPU as TRITONSERVER_MEMORY_CPU
from nereid_model.memory import TRITONSERVER_MEMORY_GPU as TRITONSERVER_MEMORY_GPU
from nereid_model.memory import PreferredMemory as PreferredMemory
from nereid_model.metrics import MetricFamily as MetricFamily
from nereid_model.model_control import get_model_dir as get_model_dir
from nereid_model.model_control import is_model_ready as is_model_ready
from nereid_model.model_control import load_model as load_model
from nereid_model.model_control import unload_model as unload_model
from nereid_model.request import InferenceRequest as InferenceRequest
from nereid_model.response import InferenceResponse as InferenceResponse
from nereid_model.tensor import Tensor as Tensor
from nereid_model.trace import InferenceTrace as InferenceTrace

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

def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Optional[Tensor]: ...
def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Optional[Tensor]: ...
def get_input_config_by_name(model_config: dict[str, Any], name: str) -> Optional[dict[str, Any]]: ...
def get_output_config_by_name(model_config: dict[str, Any], name: str) -> Optional[dict[str, Any]]: ...
def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool: ...
