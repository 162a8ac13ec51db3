"""examples/digits by ONNX Runtime: one run for each batch, on one thread, as Nereid's instance has it."""

import os

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        file = os.path.join(args["model_repository"], "../../../../examples/digits/digits.onnx")
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.input = self.session.get_inputs()[0].name

    def execute(self, requests):
        images = [pb_utils.get_input_tensor_by_name(request, "image").as_numpy() for request in requests]
        batch = images[0] if len(images) == 1 else np.concatenate(images)
        (logits,) = self.session.run(["logits"], {self.input: batch})
        responses, row = [], 0
        for image in images:
            end = row + len(image)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("logits", logits[row:end])]))
            row = end
        return responses
