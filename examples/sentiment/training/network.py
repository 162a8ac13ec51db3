"""
The network: a small BERT (embeddings of tokens and positions, pre-norm transformer layers, mean of the tokens, two logits)
as plain functions of a tree of parameters. How it is trained is train.py's business.
"""

import jax
import jax.numpy as jnp
import numpy as np

from vocabulary import LONGEST, PAD, SEP, SIZE, UNK

WIDTH = 128
LAYERS = 2
HEADS = 4
HIDDEN = 256
EPSILON = 1e-5
# What is added to the attention to padding, before softmax.
NOT_AT_ALL = -1e4

# Shares that are dropped while it learns.
DROP_WORD = 0.2
DROP_EMBEDDING = 0.5
DROP_ATTENTION = 0.15
DROP = 0.3


def initial(random: np.random.Generator) -> dict:
    def normal(*shape: int, scale: float):
        return jnp.asarray(random.normal(size=shape) * scale, jnp.float32)

    def linear(inputs: int, outputs: int, scale: float = 1.0):
        return {"weight": normal(inputs, outputs, scale=scale * inputs**-0.5), "bias": jnp.zeros(outputs)}

    def norm():
        return {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}

    return {
        "tokens": normal(SIZE, WIDTH, scale=0.05),
        "positions": normal(LONGEST, WIDTH, scale=0.02),
        "embedding_norm": norm(),
        "layers": [
            {
                "attention_norm": norm(),
                "queries_keys_values": linear(WIDTH, 3 * WIDTH),
                "attention_out": linear(WIDTH, WIDTH, 0.5),
                "hidden_norm": norm(),
                "hidden": linear(WIDTH, HIDDEN),
                "hidden_out": linear(HIDDEN, WIDTH, 0.5),
            }
            for _ in range(LAYERS)
        ],
        "norm": norm(),
        "head": linear(WIDTH, 2, 0.2),
    }


def logits(parameters: dict, ids: jax.Array, key: jax.Array | None = None) -> jax.Array:
    """[rows, length] of token ids to [rows, 2]; with a key it drops by chance, as it must while it learns."""
    keys = iter([None] * 99 if key is None else jax.random.split(key, 4 + 3 * LAYERS))
    rows, length = ids.shape
    mask = ids != PAD
    ids, offset = drop_words(ids, next(keys)), offsets(rows, length, next(keys))

    x = parameters["tokens"][ids] + parameters["positions"][jnp.arange(length)[None] + offset]
    x = drop(normalised(x, parameters["embedding_norm"]), DROP_EMBEDDING, next(keys))
    bias = jnp.where(mask, 0, NOT_AT_ALL)[:, None, None, :]
    for layer in parameters["layers"]:
        joined = linear(normalised(x, layer["attention_norm"]), layer["queries_keys_values"])
        heads = joined.reshape(rows, length, 3 * HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)
        queries, keys_, values = jnp.split(heads, 3, axis=1)
        attention = jax.nn.softmax(queries @ keys_.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5 + bias)
        seen = drop(attention, DROP_ATTENTION, next(keys)) @ values
        seen = seen.transpose(0, 2, 1, 3).reshape(rows, length, WIDTH)
        x = x + drop(linear(seen, layer["attention_out"]), DROP, next(keys))
        hidden = jax.nn.gelu(linear(normalised(x, layer["hidden_norm"]), layer["hidden"]), approximate=False)
        x = x + drop(linear(hidden, layer["hidden_out"]), DROP, next(keys))

    x = normalised(x, parameters["norm"]) * mask[..., None]
    mean = x.sum(axis=1) / jnp.maximum(mask.sum(axis=1), 1)[:, None]
    return linear(drop(mean, DROP, next(keys)), parameters["head"])


def linear(x: jax.Array, layer: dict) -> jax.Array:
    return x @ layer["weight"] + layer["bias"]


def normalised(x: jax.Array, norm: dict) -> jax.Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + EPSILON) * norm["scale"] + norm["bias"]


def drop(x: jax.Array, share: float, key: jax.Array | None) -> jax.Array:
    return x if key is None else x * jax.random.bernoulli(key, 1 - share, x.shape) / (1 - share)


def drop_words(ids: jax.Array, key: jax.Array | None) -> jax.Array:
    if key is None:
        return ids
    return jnp.where(jax.random.bernoulli(key, DROP_WORD, ids.shape) & (ids > SEP), UNK, ids)


def offsets(rows: int, length: int, key: jax.Array | None) -> jax.Array | int:
    """Texts begin anywhere while it learns, so that the late positions, which few texts reach, are learnt as well."""
    return 0 if key is None else jax.random.randint(key, (rows, 1), 0, LONGEST - length + 1)
