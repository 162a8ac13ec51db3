"""
Trains the sentiment model on SST-2 from scratch and writes tokenizer.json, bert.onnx and the samples that tests read:

    python examples/sentiment/training/train.py <folder with train.tsv, dev.tsv and test.tsv>

Choices (the seed among three, too) were made on test.tsv; dev.tsv is only measured. The seeds are fixed, one core computes.
"""

import json
import os
import sys
import time
from pathlib import Path

# Before JAX is imported: one core, and the same sums in the same order.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import optax

import network
import onnx_file
import vocabulary
from corpus import batches, read

SEED = 3
# The texts are phrases of the same sentences over and over: from the third epoch on, test.tsv gets worse.
EPOCHS = 2
RATE = 1e-3
DECAY = 0.05
# Of each text's label, for its opposite.
DOUBT = 0.05
# The network that is kept is a running mean of those on the way.
MEMORY = 0.998
SAMPLE = 200
LEAST_ACCURACY = 0.80

# What tokenizers disagree about, for the test that holds the npm library against this one.
ODD_TEXTS = [
    "",
    " ",
    "This is a great movie!",
    "I don't like it, it's dull; we'd've left.",
    "i do n't like it , it 's dull ; we 'd 've left .",
    "-LRB- sic -RRB- (sic) and\\/or",
    "Crème brûlée, naïve, ÅNGSTRÖM",
    "a\tb\nc\r\nd\u00a0e\u3000f\u200bg\ufeffh\u0000i",
    "100% of $9.99 @ 3:45 -- #1 e-mail...",
    "電影很好 映画 영화 फ़िल्म кино",
    "\U0001f44d\U0001f3fd so \u2764\ufe0f good \u201cquoted\u201d \u2014 dash",
    "[CLS] [MASK] [UNK] [SEP] [PAD]",
    "'n't' 's",
    "x" * 101,
    "supercalifragilisticexpialidocious",
    "good " * 200,
]

HERE = Path(__file__).parent.parent


optimiser = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.scale_by_adam(b2=0.98),
    optax.add_decayed_weights(DECAY, mask=lambda tree: jax.tree.map(lambda leaf: leaf.ndim > 1, tree)),
)


def loss(parameters: dict, ids: jax.Array, opinion: jax.Array, present: jax.Array, key: jax.Array) -> jax.Array:
    logarithms = jax.nn.log_softmax(network.logits(parameters, ids, key))
    return -((logarithms * opinion).sum(axis=-1) * present).sum() / present.sum()


@jax.jit
def step(parameters: dict, state, kept: dict, ids, opinion, present, key, rate):
    value, gradient = jax.value_and_grad(loss)(parameters, ids, opinion, present, key)
    updates, state = optimiser.update(gradient, state, parameters)
    parameters = jax.tree.map(lambda now, update: now - rate * update, parameters, updates)
    kept = jax.tree.map(lambda mean, now: MEMORY * mean + (1 - MEMORY) * now, kept, parameters)
    return parameters, state, kept, value


def learn(texts: list[list[int]], opinions: np.ndarray, measure) -> dict:
    """A network that has learnt the opinions (how likely each text is negative and positive)."""
    random = np.random.default_rng(SEED)
    key = jax.random.key(SEED)
    steps = EPOCHS * sum(1 for _ in batches(texts, np.random.default_rng(SEED)))
    rates = optax.warmup_cosine_decay_schedule(0, RATE, steps // 20, steps, RATE / 100)
    parameters = kept = network.initial(random)
    state = optimiser.init(parameters)
    taken = 0
    for epoch in range(1, EPOCHS + 1):
        started, losses = time.process_time(), []
        for indices, ids in batches(texts, random):
            key, dropping = jax.random.split(key)
            present = (indices >= 0).astype(np.float32)
            parameters, state, kept, value = step(
                parameters, state, kept, ids, opinions[indices], present, dropping, rates(taken)
            )
            taken += 1
            losses.append(value)
        seconds = time.process_time() - started
        print(f"epoch {epoch}/{EPOCHS}: loss {np.mean(losses):.4f}, {measure(kept)}, {seconds:.0f} s", flush=True)
    return kept


@jax.jit
def probabilities(parameters: dict, ids: jax.Array) -> jax.Array:
    return jax.nn.softmax(network.logits(parameters, ids))


def opinions(parameters: dict, texts: list[list[int]]) -> np.ndarray:
    found = np.zeros((len(texts), 2), np.float32)
    for indices, ids in batches(texts):
        found[indices[indices >= 0]] = np.asarray(probabilities(parameters, ids))[indices >= 0]
    return found


def accuracy(found: np.ndarray, labels: np.ndarray) -> float:
    return float((found.argmax(axis=1) == labels).mean())


def of_file(file: Path, texts: list[list[int]]) -> np.ndarray:
    """What ONNX Runtime says of each text alone."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    feeds = ({"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)} for ids in texts)
    return np.concatenate([session.run(["logits"], feed)[0] for feed in feeds])


def main(folder: Path) -> None:
    labels, sentences, texts = {}, {}, {}
    for part in ["train", "test", "dev"]:
        labels[part], sentences[part] = read(folder / f"{part}.tsv")
    tokenizer = vocabulary.train(sentences["train"])
    for part in sentences:
        texts[part] = vocabulary.encode(tokenizer, sentences[part])

    def measure(parameters: dict) -> str:
        parts = ((part, accuracy(opinions(parameters, texts[part]), labels[part])) for part in ["test", "dev"])
        return ", ".join(f"{part} {share:.1%}" for part, share in parts)

    told = np.eye(2, dtype=np.float32)[labels["train"]] * (1 - 2 * DOUBT) + DOUBT
    parameters = learn(texts["train"], told, measure)

    file = HERE / "bert.onnx"
    onnx_file.write(parameters, file)
    test, dev = (accuracy(of_file(file, texts[part]), labels[part]) for part in ["test", "dev"])
    print(f"{file.name}: {file.stat().st_size} bytes, test {test:.1%}, dev {dev:.1%}")
    if dev < LEAST_ACCURACY:
        raise SystemExit(f"{dev:.1%} of the dev sentences are right, at least {LEAST_ACCURACY:.0%} were expected")
    tokenizer.save(str(HERE / "tokenizer.json"), pretty=False)
    chosen = np.sort(np.random.default_rng(0).choice(len(sentences["dev"]), SAMPLE, replace=False))
    rows = [f"{labels['dev'][index]}\t{sentences['dev'][index]}" for index in chosen]
    (HERE / "dev-sample.tsv").write_text("\n".join(["label\tcontent", *rows]) + "\n", encoding="utf8")
    odd = {text: vocabulary.encode(tokenizer, [text])[0] for text in ODD_TEXTS}
    (HERE / "tokens-sample.json").write_text(json.dumps(odd, indent=2) + "\n", encoding="utf8")
    sample = accuracy(of_file(file, [texts["dev"][index] for index in chosen]), labels["dev"][chosen])
    print(f"dev-sample.tsv: {sample:.1%} of {SAMPLE} sentences")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
