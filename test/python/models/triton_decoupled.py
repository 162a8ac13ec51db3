"""Decoupled: runs the text of its input as the body of a function with the sender of its request."""

import json
import textwrap
import threading
import time

import numpy as np
import triton_python_backend_utils as pb

FINAL = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def response(value, **others):
    return pb.InferenceResponse([pb.Tensor("OUT", np.array([str(value)], dtype=np.object_))], **others)


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            code = pb.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0].decode()
            names = {
                "pb": pb,
                "np": np,
                "json": json,
                "time": time,
                "threading": threading,
                "FINAL": FINAL,
                "response": response,
            }
            exec("def body(self, request, sender):\n" + textwrap.indent(code, "    "), names)
            result = names["body"](self, request, request.get_response_sender())
            if result is not None:
                return result
