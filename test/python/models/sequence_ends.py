"""Answers what it has seen of its sequences; the text `wait` waits for its cancellation."""

import time

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.seen = []

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        self.seen.append(f"execute {request.correlation_id()}")
        if pb.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)[0] == b"wait":
            pb.Logger.log_info("it waits")
            while not request.is_cancelled():
                time.sleep(0.001)
        answer = np.array([["; ".join(self.seen)]], dtype=object)
        self.seen.clear()
        return pb.InferenceResponse([pb.Tensor("ANSWER", answer)])

    def sequence_ended(self, correlation_id, reason):
        self.seen.append(f"{reason} {correlation_id!r}")
        if correlation_id == "bad":
            raise ValueError("no such sequence")

    def finalize(self):
        pb.Logger.log_info(f"finalize after {self.seen}")
