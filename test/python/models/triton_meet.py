"""Answers once as many executions of one request id have run at the same time as IN says: the most that have."""

import asyncio
import collections

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.running = collections.Counter()
        self.most = collections.Counter()

    async def execute(self, requests):
        size = int(pb.get_input_tensor_by_name(requests[0], "IN").as_numpy().reshape(-1)[0])
        name = requests[0].request_id()
        self.running[name] += 1
        self.most[name] = max(self.most[name], self.running[name])
        while self.most[name] < size:
            await asyncio.sleep(0.001)
        # Whatever else may run begins now.
        await asyncio.sleep(0.001)
        self.running[name] -= 1
        out = pb.Tensor("OUT", np.array([self.most[name]], dtype=np.int32))
        return [pb.InferenceResponse([out]) for _ in requests]
