"""
Trains the decoder on stories of corpus.py and writes decoder.onnx:

    python examples/generation/training/train.py

The seed is fixed. Held-out stories are only measured. Takes minutes on one core.
"""

import os
import time
from pathlib import Path

# Before JAX is imported: one core, and the same sums in the same order.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime

import corpus
import network
import onnx_file

SEED = 1
STEPS = 1500
ROWS = 16
LENGTH = 2 * network.CONTEXT
RATE = 3e-3
WARM_UP = 100
DECAY = 0.01
HELD_OUT = 64

FILE = Path(__file__).parent.parent / "decoder.onnx"


def loss(parameters: dict, tokens: jax.Array) -> jax.Array:
    """Mean nats for each character after the first."""
    predicted = jax.nn.log_softmax(network.logits(parameters, tokens[:, :-1]))
    return -jnp.take_along_axis(predicted, tokens[:, 1:, None], axis=-1).mean()


@jax.jit
def step(parameters: dict, moments: tuple, tokens: jax.Array, count: jax.Array):
    """One step of AdamW: the rate rises, and falls again as a cosine."""
    value, gradients = jax.value_and_grad(loss)(parameters, tokens)
    rate = RATE * jnp.minimum(count / WARM_UP, 0.5 + 0.5 * jnp.cos(jnp.pi * count / STEPS))
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    second = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, moments[1], gradients)

    def updated(p, m, v):
        m, v = m / (1 - 0.9**count), v / (1 - 0.99**count)
        return p - rate * (m / (jnp.sqrt(v) + 1e-8) + DECAY * p)

    return jax.tree.map(updated, parameters, first, second), (first, second), value


def batch(random: np.random.Generator, rows: int) -> jax.Array:
    return jnp.asarray(np.stack([corpus.tokens(random, LENGTH + 1) for _ in range(rows)]))


def stepwise_loss(file: Path, tokens: np.ndarray) -> float:
    """The same loss by the file, token by token: also for texts that are longer than its caches."""
    session = onnxruntime.InferenceSession(file)
    rows = len(tokens)
    feeds = {
        state.name: np.zeros((rows, *state.shape[1:]), np.int64 if state.name == "POSITION" else np.float32)
        for state in session.get_inputs()[1:]
    }
    total = 0.0
    for index in range(tokens.shape[1] - 1):
        logits, *states = session.run(None, {"TOKEN": tokens[:, index, None].astype(np.int64), **feeds})
        feeds = dict(zip(feeds, states, strict=True))
        total -= jax.nn.log_softmax(logits)[np.arange(rows), tokens[:, index + 1]].sum()
    return float(total) / (rows * (tokens.shape[1] - 1))


def main() -> None:
    random = np.random.default_rng(SEED)
    held_out = batch(np.random.default_rng(SEED + 1), HELD_OUT)
    parameters = network.initial(random)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    moments = (zeros, zeros)
    started = time.perf_counter()
    for count in range(1, STEPS + 1):
        parameters, moments, value = step(parameters, moments, batch(random, ROWS), jnp.float32(count))
        if count % 250 == 0:
            measured = float(jax.jit(loss)(parameters, held_out))
            seconds = time.perf_counter() - started
            print(f"step {count}/{STEPS}: loss {value:.4f}, held out {measured:.4f}, {seconds:.0f} s", flush=True)
    onnx_file.write(jax.tree.map(np.asarray, parameters), FILE)
    print(f"{FILE.name}: {FILE.stat().st_size} bytes, held out {stepwise_loss(FILE, np.asarray(held_out)):.4f}")


if __name__ == "__main__":
    main()
