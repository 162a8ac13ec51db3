"""The classes of the Python backend that Triton implements natively; here they are pure Python."""

from __future__ import annotations

from nereid_model.calls import ResponseIterator
from nereid_model.datatypes import DataType
from nereid_model.errors import ErrorCode as TritonErrorCode
from nereid_model.errors import TritonError, TritonModelException
from nereid_model.logger import Logger, LogLevel
from nereid_model.memory import TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_GPU, MemoryType, PreferredMemory
from nereid_model.metrics import Metric, MetricFamily, MetricKind
from nereid_model.model_control import get_model_dir, is_model_ready, load_model, unload_model
from nereid_model.request import InferenceRequest
from nereid_model.response import InferenceResponse
from nereid_model.sender import InferenceResponseSender
from nereid_model.shared_memory import shared_memory
from nereid_model.tensor import Tensor
from nereid_model.trace import InferenceTrace

__all__ = [
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "DataType",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "LogLevel",
    "Logger",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "PreferredMemory",
    "ResponseIterator",
    "Tensor",
    "TritonError",
    "TritonErrorCode",
    "TritonModelException",
    "get_model_dir",
    "is_model_ready",
    "load_model",
    "shared_memory",
    "unload_model",
]
