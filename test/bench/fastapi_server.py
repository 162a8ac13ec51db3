"""Serves the examples with FastAPI and ONNX Runtime: JSON only, one run for each request. Prints its port."""

import json
import math
import os
import socket

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI, Request
from tokenizers import Tokenizer

examples = os.path.join(os.path.dirname(__file__), "../../examples")


def session(file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(os.path.join(examples, file), options, providers=["CPUExecutionProvider"])


digits_session = session("digits/digits.onnx")
bert_session = session("sentiment/bert.onnx")
tokenizer = Tokenizer.from_file(os.path.join(examples, "sentiment/tokenizer.json"))
app = FastAPI()


def reply(model, outputs):
    return {"model_name": model, "model_version": "1", "outputs": outputs}


@app.post("/v2/models/digits/infer")
async def digits(request: Request):
    image = (await request.json())["inputs"][0]
    data = np.array(image["data"], np.float32).reshape(image["shape"])
    (logits,) = digits_session.run(["logits"], {digits_session.get_inputs()[0].name: data})
    output = {"name": "logits", "datatype": "FP32", "shape": list(logits.shape), "data": logits.ravel().tolist()}
    return reply("digits", [output])


@app.post("/v2/models/sentiment/infer")
async def sentiment(request: Request):
    text = (await request.json())["inputs"][0]["data"][0]
    ids = np.array([tokenizer.encode(text).ids], np.int64)
    (logits,) = bert_session.run(["logits"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    negative, positive = logits[0].tolist()
    probability = 1 / (1 + math.exp(-abs(positive - negative)))
    label = "positive" if positive > negative else "negative"
    return reply(
        "sentiment",
        [
            {"name": "CLASS", "datatype": "BYTES", "shape": [1, 1], "data": [label]},
            {"name": "PROB", "datatype": "FP32", "shape": [1, 1], "data": [probability]},
        ],
    )


# asyncio turns Nagle's algorithm off only for sockets of this protocol.
listening = socket.socket(proto=socket.IPPROTO_TCP)
listening.bind(("127.0.0.1", 0))
print(json.dumps(listening.getsockname()[1]), flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run([listening])
