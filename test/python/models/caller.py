"""Calls other models: the text of a request names one."""

import numpy as np
import triton_python_backend_utils as pb_utils


def text_of(request):
    return pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)[0].decode()


def answer(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array([[text.encode()]], dtype=np.object_))])


class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily("called", "Calls of other models", pb_utils.MetricFamily.COUNTER)
        self.metric = self.family.Metric(labels={"model": args["model_name"]})

    def execute(self, requests):
        return [self.respond(*text_of(request).split(" ")) for request in requests]

    def respond(self, command, model, version="-1"):
        if command == "load":
            pb_utils.load_model(model)
        if command == "ready":
            return answer(str(pb_utils.is_model_ready(model)))
        self.metric.increment(1)
        values = [3] if command == "stream" else [[3], [4]]
        request = pb_utils.InferenceRequest(
            model_name=model,
            model_version=int(version),
            requested_output_names=["y"],
            inputs=[pb_utils.Tensor("x", np.array(values, dtype=np.float32))],
        )
        responses = request.exec(decoupled=True) if command == "stream" else [request.exec()]
        found = []
        for response in responses:
            if response.has_error():
                return answer(f"{response.error().code()} {response.error().message()}")
            found += [tensor.as_numpy().reshape(-1).tolist() for tensor in response.output_tensors()]
        return answer(str(found))
