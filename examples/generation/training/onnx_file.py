"""
One step of the network as an ONNX file, its graph written by hand: a token and the caches of its text go in, the logits
of the next token and the new caches come out. All shapes but the batch are fixed, so texts of any length share a batch.

    TOKEN     INT64 [batch, 1]                    LOGITS         FP32  [batch, characters]
    POSITION  INT64 [batch, 1]                    NEXT_POSITION  INT64 [batch, 1]
    CACHE_n   FP32  [batch, CONTEXT, 2 * SIZE]    NEXT_CACHE_n   FP32  [batch, CONTEXT, 2 * SIZE]
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from corpus import CHARACTERS
from network import CONTEXT, EPSILON, HEADS, LAYERS, SIZE, UNSEEN

OPSET = 20
IR_VERSION = 10


class Graph:
    """Nodes and constants as they are added; each call gives the name of its output."""

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

    def linear(self, x: str, layer: dict, name: str | None = None) -> str:
        return self.add("Gemm", x, self.constant(layer["weight"]), self.constant(layer["bias"]), name=name)

    def normalised(self, x: str, norm: dict) -> str:
        scale, bias = self.constant(norm["scale"]), self.constant(norm["bias"])
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)


def write(parameters: dict, file: Path) -> None:
    graph = Graph()
    place = places(graph)
    bias = biases(graph, parameters["distances"])
    x = graph.add("Squeeze", graph.add("Gather", graph.constant(parameters["characters"]), "TOKEN"), axis(graph, 1))
    for index, layer in enumerate(parameters["layers"]):
        x = graph.add("Add", x, attention(graph, graph.normalised(x, layer["attention_norm"]), layer, index, place, bias))
        hidden = graph.add("Relu", graph.linear(graph.normalised(x, layer["hidden_norm"]), layer["hidden"]))
        x = graph.add("Add", x, graph.linear(hidden, layer["hidden_out"]))
    graph.linear(graph.normalised(x, parameters["norm"]), parameters["head"], name="LOGITS")
    next_position(graph)

    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "decoder",
            [tensor("TOKEN", TensorProto.INT64, 1), *states("")],
            [tensor("LOGITS", TensorProto.FLOAT, len(CHARACTERS)), *states("NEXT_")],
            graph.constants,
        ),
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="nereid/examples/generation",
    )
    onnx.checker.check_model(model, full_check=True)
    file.write_bytes(model.SerializeToString())


def tensor(name: str, datatype: int, *dims: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, datatype, ["batch", *dims])


def states(prefix: str) -> list[onnx.ValueInfoProto]:
    return [
        tensor(f"{prefix}POSITION", TensorProto.INT64, 1),
        *(tensor(f"{prefix}CACHE_{layer}", TensorProto.FLOAT, CONTEXT, 2 * SIZE) for layer in range(LAYERS)),
    ]


def axis(graph: Graph, index: int) -> str:
    return graph.constant([index], np.int64)


def places(graph: Graph) -> str:
    """[batch, 2]: row of the batch and slot of the ring in which each token is kept."""
    zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
    batch = graph.add("Squeeze", graph.add("Shape", "POSITION", start=0, end=1))
    rows = graph.add("Unsqueeze", graph.add("Range", zero, batch, one), axis(graph, 1))
    slot = graph.add("Mod", "POSITION", graph.constant([CONTEXT], np.int64))
    return graph.add("Concat", rows, slot, axis=1)


def biases(graph: Graph, distances) -> str:
    """
    [batch, HEADS, CONTEXT]: bias of the attention to each slot, by its distance from the token. A table of all
    positions, which the runtime computes once, when it loads the file.
    """
    positions = graph.constant(np.arange(2 * CONTEXT)[:, None], np.int64)
    behind = graph.add("Sub", positions, graph.constant(np.arange(CONTEXT), np.int64))
    distance = graph.add("Mod", behind, graph.constant([CONTEXT], np.int64))
    # Before the ring is full, the slots at greater distances than the beginning of the text are empty.
    empty = graph.add("Greater", distance, positions)
    unseen = graph.add("Where", empty, graph.constant(UNSEEN), graph.constant(0))
    learnt = graph.add("Transpose", graph.add("Gather", graph.constant(distances), distance, axis=1), perm=[1, 0, 2])
    table = graph.add("Add", learnt, graph.add("Unsqueeze", unseen, axis(graph, 1)))
    return graph.add("Gather", table, graph.add("Squeeze", "POSITION", axis(graph, 1)))


def next_position(graph: Graph) -> None:
    """Positions count to the second end of the ring, and begin again at the first one: a full ring looks the same."""
    following = graph.constant([*range(1, 2 * CONTEXT), CONTEXT], np.int64)
    graph.add("Gather", following, "POSITION", name="NEXT_POSITION")


def attention(graph: Graph, x: str, layer: dict, index: int, place: str, bias: str) -> str:
    """
    Keys and values are two halves of each row of the cache, which is never cut: queries have zeros for the values, and
    zeros of the next matrix drop what the keys would give.
    """
    key_value = graph.linear(x, layer["keys_values"])
    cache = graph.add("ScatterND", f"CACHE_{index}", place, key_value, name=f"NEXT_CACHE_{index}")

    queries = graph.linear(x, {name: beside_zeros(values, 0) * SIZE**-0.5 for name, values in layer["queries"].items()})
    by_head = graph.add("Reshape", queries, graph.constant([0, HEADS, 2 * SIZE], np.int64))
    scores = graph.add("MatMul", by_head, graph.add("Transpose", cache, perm=[0, 2, 1]))
    shares = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
    attended = graph.add("Flatten", graph.add("MatMul", shares, cache))
    out = layer["attention_out"]
    return graph.linear(attended, {"weight": beside_zeros(out["weight"].T, 1).T, "bias": out["bias"]})


def beside_zeros(values, half: int) -> np.ndarray:
    """[..., HEADS * SIZE] to [..., HEADS * 2 * SIZE]: the values of each head in one half, zeros in the other."""
    values = np.asarray(values)
    wide = np.zeros((*values.shape[:-1], HEADS, 2, SIZE), np.float32)
    wide[..., half, :] = values.reshape(*values.shape[:-1], HEADS, SIZE)
    return wide.reshape(*values.shape[:-1], -1)
