"""
The network as an ONNX file, its graph written by hand: batch and sequence are dynamic. Embeddings are stored with 8 bits
and a scale per row, matrices with 16 bits; they are computed with as FP32, so that every processor gives the same answers.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from network import EPSILON, HEADS, LAYERS, NOT_AT_ALL, WIDTH
from vocabulary import LONGEST, SIZE, UNK

OPSET = 20
IR_VERSION = 10


class Graph:
    """Nodes and constants as they are added; each call gives the name of what came out."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value, dtype=np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes) -> str:
        output = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def matrix(self, weight) -> str:
        return self.add("Cast", self.constant(weight, np.float16), to=TensorProto.FLOAT)

    def linear(self, x: str, layer: dict) -> str:
        return self.add("Add", self.add("MatMul", x, self.matrix(layer["weight"])), self.constant(layer["bias"]))

    def normalised(self, x: str, norm: dict) -> str:
        scale, bias = self.constant(norm["scale"]), self.constant(norm["bias"])
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)

    def embedding(self, table, indices: str) -> str:
        table = np.asarray(table, np.float32)
        scale = np.abs(table).max(axis=1, keepdims=True) / 127
        rows = self.constant(np.round(table / np.maximum(scale, 1e-12)), np.int8)
        values = self.add("Cast", self.add("Gather", rows, indices), to=TensorProto.FLOAT)
        return self.add("Mul", values, self.add("Gather", self.constant(scale), indices))

    def reshaped(self, x: str, *shape: int) -> str:
        return self.add("Reshape", x, self.constant(shape, np.int64))


def write(parameters: dict, file: Path) -> None:
    graph = Graph()
    x = embeddings(graph, parameters)
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    absent = graph.add("Sub", graph.constant(1), mask)
    bias = graph.add("Mul", graph.add("Unsqueeze", absent, graph.constant([1, 2], np.int64)), graph.constant(NOT_AT_ALL))
    for layer in parameters["layers"]:
        x = graph.add("Add", x, attention(graph, graph.normalised(x, layer["attention_norm"]), bias, layer))
        hidden = graph.add("Gelu", graph.linear(graph.normalised(x, layer["hidden_norm"]), layer["hidden"]))
        x = graph.add("Add", x, graph.linear(hidden, layer["hidden_out"]))

    last = graph.constant([-1], np.int64)
    present = graph.add("Mul", graph.normalised(x, parameters["norm"]), graph.add("Unsqueeze", mask, last))
    sequence = graph.constant([1], np.int64)
    total = graph.add("ReduceSum", present, sequence, keepdims=0)
    count = graph.add("Max", graph.add("ReduceSum", mask, sequence, keepdims=1), graph.constant(1))
    mean = graph.add("Div", total, count)
    head = parameters["head"]
    product = graph.add("MatMul", mean, graph.matrix(head["weight"]))
    graph.add("Add", product, graph.constant(head["bias"]), name="logits")

    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ["input_ids", "attention_mask"]
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "sentiment", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="nereid-examples",
    )
    onnx.checker.check_model(model, full_check=True)
    file.write_bytes(model.SerializeToString())


def embeddings(graph: Graph, parameters: dict) -> str:
    """Ids that are none are unknown words, and positions beyond the last one are the last one: no text fails its batch."""
    known = graph.add(
        "And",
        graph.add("GreaterOrEqual", "input_ids", graph.constant(0, np.int64)),
        graph.add("Less", "input_ids", graph.constant(SIZE, np.int64)),
    )
    ids = graph.add("Where", known, "input_ids", graph.constant(UNK, np.int64))
    length = graph.add("Squeeze", graph.add("Shape", "input_ids", start=1, end=2))
    places = graph.add("Range", graph.constant(0, np.int64), length, graph.constant(1, np.int64))
    places = graph.add("Min", places, graph.constant(LONGEST - 1, np.int64))
    tokens = graph.embedding(parameters["tokens"], ids)
    positions = graph.embedding(parameters["positions"], places)
    return graph.normalised(graph.add("Add", tokens, positions), parameters["embedding_norm"])


def attention(graph: Graph, x: str, bias: str, layer: dict) -> str:
    size = WIDTH // HEADS
    weight = np.split(np.asarray(layer["queries_keys_values"]["weight"]), 3, axis=1)
    shift = np.split(np.asarray(layer["queries_keys_values"]["bias"]), 3)

    def heads(part: int, factor: float, order: list[int]) -> str:
        joined = graph.linear(x, {"weight": weight[part] * factor, "bias": shift[part] * factor})
        return graph.add("Transpose", graph.reshaped(joined, 0, 0, HEADS, size), perm=order)

    queries, keys, values = heads(0, size**-0.5, [0, 2, 1, 3]), heads(1, 1, [0, 2, 3, 1]), heads(2, 1, [0, 2, 1, 3])
    scores = graph.add("Add", graph.add("MatMul", queries, keys), bias)
    seen = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), values)
    seen = graph.reshaped(graph.add("Transpose", seen, perm=[0, 2, 1, 3]), 0, 0, WIDTH)
    return graph.linear(seen, layer["attention_out"])
