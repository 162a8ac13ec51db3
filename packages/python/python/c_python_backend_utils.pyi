from nereid_model.calls import ResponseIterator as ResponseIterator
from nereid_model.datatypes import DataType as DataType
from nereid_model.errors import ErrorCode as TritonErrorCode
from nereid_model.errors import TritonError as TritonError
from nereid_model.errors import TritonModelException as TritonModelException
from nereid_model.logger import Logger as Logger
from nereid_model.logger import LogLevel as LogLevel
from nereid_model.memory import TRITONSERVER_MEMORY_CPU as TRITONSERVER_MEMORY_CPU
from nereid_model.memory import TRITONSERVER_MEMORY_GPU as TRITONSERVER_MEMORY_GPU
from nereid_model.memory import MemoryType as MemoryType
from nereid_model.memory import PreferredMemory as PreferredMemory
from nereid_model.metrics import Metric as Metric
from nereid_model.metrics import MetricFamily as MetricFamily
from nereid_model.metrics import MetricKind as MetricKind
from nereid_model.model_control import get_model_dir as get_model_dir
from nereid_model.model_control import is_model_ready as is_model_ready
from nereid_model.model_control import load_model as load_model
from nereid_model.model_control import unload_model as unload_model
from nereid_model.request import InferenceRequest as InferenceRequest
from nereid_model.response import InferenceResponse as InferenceResponse
from nereid_model.sender import InferenceResponseSender as InferenceResponseSender
from nereid_model.shared_memory import shared_memory as shared_memory
from nereid_model.tensor import Tensor as Tensor
from nereid_model.trace import InferenceTrace as InferenceTrace

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
