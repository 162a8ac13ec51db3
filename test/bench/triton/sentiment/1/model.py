"""examples/sentiment in one model: the tokenizer, one run of the network for each batch of texts, and the softmax."""

import os

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer


class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.join(args["model_repository"], "../../../../examples/sentiment")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            os.path.join(folder, "bert.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.tokenizer.enable_padding()

    def execute(self, requests):
        texts = [pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().ravel() for request in requests]
        encoded = self.tokenizer.encode_batch([text.decode() for of_request in texts for text in of_request])
        ids = np.array([encoding.ids for encoding in encoded], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encoded], np.int64)
        (logits,) = self.session.run(["logits"], {"input_ids": ids, "attention_mask": mask})
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = exponents / exponents.sum(axis=1, keepdims=True)
        labels = np.where(logits[:, 1:] > logits[:, :1], "positive", "negative").astype(object)
        best = probabilities.max(axis=1, keepdims=True).astype(np.float32)
        responses, row = [], 0
        for of_request in texts:
            end = row + len(of_request)
            outputs = [pb_utils.Tensor("CLASS", labels[row:end]), pb_utils.Tensor("PROB", best[row:end])]
            responses.append(pb_utils.InferenceResponse(outputs))
            row = end
        return responses
