"""
The network: a decoder of pre-norm transformer layers over characters, as plain functions of a tree of parameters.

Each character sees the last CONTEXT ones. Positions are relative: a learnt bias for each head and distance. A cache can
thus be a ring, in which a new character replaces the oldest one, and a text may be longer than the cache. All heads of a
layer share keys and values (multi-query attention), because caches are what each step reads, copies and keeps.
"""

import jax
import jax.numpy as jnp
import numpy as np

from corpus import CHARACTERS

WIDTH = 64
LAYERS = 2
HEADS = 4
SIZE = 16  # of a head
HIDDEN = 256
CONTEXT = 128
EPSILON = 1e-5
# Added to the attention to characters that are not seen, before softmax.
UNSEEN = -1e4


def initial(random: np.random.Generator) -> dict:
    def linear(inputs: int, outputs: int, scale: float = 1.0):
        weight = random.normal(size=(inputs, outputs)) * scale * inputs**-0.5
        return {"weight": jnp.asarray(weight, jnp.float32), "bias": jnp.zeros(outputs)}

    def norm():
        return {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}

    return {
        "characters": jnp.asarray(random.normal(size=(len(CHARACTERS), WIDTH)) * 0.1, jnp.float32),
        "distances": jnp.zeros((HEADS, CONTEXT)),
        "layers": [
            {
                "attention_norm": norm(),
                "queries": linear(WIDTH, HEADS * SIZE),
                "keys_values": linear(WIDTH, 2 * SIZE),
                "attention_out": linear(HEADS * SIZE, WIDTH, 0.5),
                "hidden_norm": norm(),
                "hidden": linear(WIDTH, HIDDEN),
                "hidden_out": linear(HIDDEN, WIDTH, 0.5),
            }
            for _ in range(LAYERS)
        ],
        "norm": norm(),
        "head": linear(WIDTH, len(CHARACTERS), 0.5),
    }


def logits(parameters: dict, tokens: jax.Array) -> jax.Array:
    """[rows, length] of tokens to [rows, length, characters]: after each token, the logits of the next one."""
    rows, length = tokens.shape
    distance = jnp.arange(length)[:, None] - jnp.arange(length)[None, :]
    seen = (distance >= 0) & (distance < CONTEXT)
    bias = jnp.where(seen, parameters["distances"][:, jnp.clip(distance, 0, CONTEXT - 1)], UNSEEN)

    x = parameters["characters"][tokens]
    for layer in parameters["layers"]:
        normal = normalised(x, layer["attention_norm"])
        queries = linear(normal, layer["queries"]).reshape(rows, length, HEADS, SIZE).transpose(0, 2, 1, 3)
        keys, values = jnp.split(linear(normal, layer["keys_values"])[:, None], 2, axis=-1)
        attention = jax.nn.softmax(queries @ keys.swapaxes(-1, -2) * SIZE**-0.5 + bias)
        attended = (attention @ values).transpose(0, 2, 1, 3).reshape(rows, length, HEADS * SIZE)
        x = x + linear(attended, layer["attention_out"])
        x = x + linear(jax.nn.relu(linear(normalised(x, layer["hidden_norm"]), layer["hidden"])), layer["hidden_out"])
    return linear(normalised(x, parameters["norm"]), parameters["head"])


def linear(x: jax.Array, layer: dict) -> jax.Array:
    return x @ layer["weight"] + layer["bias"]


def normalised(x: jax.Array, norm: dict) -> jax.Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + EPSILON) * norm["scale"] + norm["bias"]
