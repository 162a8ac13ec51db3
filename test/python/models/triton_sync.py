"""Runs the text of its input as the body of a function of `pb` and `np`, and answers its result as text."""

import json
import os
import textwrap
import time

import numpy as np
import triton_python_backend_utils as pb


def compiled(code):
    names = {"pb": pb, "np": np, "json": json, "os": os, "time": time}
    exec("def body(self, request):\n" + textwrap.indent(code, "    "), names)
    return names["body"]


class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        self.kept = {}

    @staticmethod
    def forked(number):
        """Calls add_sub, in a process of a pool."""
        a, b = (pb.Tensor(name, np.ones([1, 4], dtype=np.float32) * value) for name, value in (("A", 2.5), ("B", 0)))
        request = pb.InferenceRequest(model_name="add_sub", inputs=[a, b], requested_output_names=["SUM"])
        return float(request.exec().output_tensors()[0].as_numpy().sum())

    def execute(self, requests):
        responses = []
        for request in requests:
            code = pb.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0].decode()
            result = compiled(code)(self, request)
            if not isinstance(result, pb.InferenceResponse):
                result = pb.InferenceResponse([pb.Tensor("OUT", np.array([str(result)], dtype=np.object_))])
            responses.append(result)
        return responses
