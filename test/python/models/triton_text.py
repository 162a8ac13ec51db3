"""Runs the text of its input as the body of a function of `pb` and `np`, and answers its result as text."""

import asyncio
import json
import textwrap

import numpy as np
import triton_python_backend_utils as pb


def compiled(code):
    names = {"pb": pb, "np": np, "json": json, "asyncio": asyncio}
    exec("async def body(self, request):\n" + textwrap.indent(code, "    "), names)
    return names["body"]


class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        self.kept = {}

    async def run(self, request):
        code = pb.get_input_tensor_by_name(request, "IN").as_numpy().reshape(-1)[0].decode()
        result = await compiled(code)(self, request)
        if isinstance(result, pb.InferenceResponse):
            return result
        return pb.InferenceResponse([pb.Tensor("OUT", np.array([str(result)], dtype=np.object_))])

    async def execute(self, requests):
        return [await self.run(request) for request in requests]
