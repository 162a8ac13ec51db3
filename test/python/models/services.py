"""A model that uses the services of its server: the text of a request names one."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def text_of(request):
    return pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)[0].decode()


def answer(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array([[text.encode()]], dtype=np.object_))])


class TritonPythonModel:
    def initialize(self, args):
        self.is_ready_now = True
        self.family = pb_utils.MetricFamily("seen", "Requests seen", pb_utils.MetricFamily.COUNTER)
        self.metric = self.family.Metric(labels={"model": args["model_name"]})

    def execute(self, requests):
        return [answer(self.serve(*text_of(request).split(" ", 1))) for request in requests]

    def serve(self, command, rest=""):
        self.metric.increment(1)
        if command == "metric":
            return str(self.metric.value())
        if command == "unready":
            self.is_ready_now = False
            return "unready"
        if command == "load":
            pb_utils.load_model(rest, '{"backend": "x"}', {"file:1/model.onnx": b"weights"})
            return "loaded"
        if command == "unload":
            pb_utils.unload_model(rest, True)
            return "unloaded"
        if command == "ready":
            try:
                return str(pb_utils.is_model_ready(rest, "3"))
            except pb_utils.TritonModelException as error:
                return str(error)
        request = pb_utils.InferenceRequest(
            model_name="other",
            model_version=2,
            request_id="id",
            correlation_id=2**63,
            flags=3,
            timeout=7,
            parameters={"a": 1, "b": "text", "c": True},
            requested_output_names=["OUT"],
            inputs=[pb_utils.Tensor("IN", np.arange(100_000, dtype=np.int32))],
        )
        if command == "stream":
            responses = [
                [float(tensor.as_numpy()[0]) for tensor in response.output_tensors()]
                for response in request.exec(decoupled=True)
            ]
            return json.dumps(responses)
        response = request.exec()
        if response.has_error():
            return f"{response.error().code()}: {response.error().message()}"
        [tensor] = response.output_tensors()
        return f"{tensor.name()} {tensor.as_numpy().sum()} {response.parameters()}"

    def is_ready(self):
        return self.is_ready_now
