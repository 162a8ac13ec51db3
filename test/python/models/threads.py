"""Instances that are threads of one process. The text of a request says what its instance does."""

import os
import threading

import numpy as np
import triton_python_backend_utils as pb_utils

log = pb_utils.Logger.log_info
everyone = threading.Barrier(3, timeout=15)
pairs = threading.Barrier(2, timeout=15)
lock = threading.Lock()
running = most = 0


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_instance_name"]
        self.thread = threading.get_ident()
        self.model = args["model_name"]

    def execute(self, requests):
        responses = []
        for request in requests:
            text = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().ravel()[0].decode()
            answer = np.array([getattr(self, text)(request)], dtype=np.object_)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", answer)]))
        return responses

    def meet(self, request):
        """Answers once all three instances execute."""
        everyone.wait()
        return f"{self.name} {os.getpid()}"

    def pair(self, request):
        """Answers how many instances have executed at the same time, once two do."""
        global running, most
        with lock:
            running += 1
            most = max(most, running)
        pairs.wait()
        with lock:
            running -= 1
            return str(most)

    def count(self, request):
        """Increments a metric that all three instances share."""
        family = pb_utils.MetricFamily("test_threads", "requests of the threads", pb_utils.MetricFamily.COUNTER)
        self.counted = (family, family.Metric(labels={"model": self.model}))
        everyone.wait()
        self.counted[1].increment(1)
        return ""

    def wait(self, request):
        """Ends with a cancellation."""
        log(f"{self.name} waits")
        while not request.is_cancelled():
            threading.Event().wait(0.001)
        log(f"{self.name} was cancelled")
        return ""

    def die(self, request):
        os._exit(3)

    def meet_then_ask(self, request):
        """Answers what another model says, while all three instances execute."""
        everyone.wait()
        asked = pb_utils.Tensor("INPUT0", np.array([self.name], dtype=np.object_))
        call = pb_utils.InferenceRequest(inputs=[asked], requested_output_names=["OUTPUT0"], model_name="echo")
        output = pb_utils.get_output_tensor_by_name(call.exec(), "OUTPUT0").as_numpy().ravel()[0].decode()
        return f"{self.name} {output}"

    def finalize(self):
        here = self.thread == threading.get_ident()
        log(f"{self.name} ends {'in its thread' if here else 'elsewhere'}")
