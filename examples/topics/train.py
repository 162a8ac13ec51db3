"""Trains the weights of topics.py on sentences.tsv: `python examples/topics/train.py`. Needs numpy alone."""

import json
import os
import re

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
epochs, rate, decay = 400, 0.5, 1e-3


def read():
    with open(os.path.join(here, "sentences.tsv"), encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file][1:]


def words_of(text):
    """The words as Words.ts has them."""
    return re.findall(r"[a-z0-9]+", text.lower())


def main():
    examples = read()
    topics = sorted({topic for topic, _ in examples})
    # 0 stands for words that are unknown.
    words = sorted({word for _, text in examples for word in words_of(text)})
    vocabulary = {word: index + 1 for index, word in enumerate(words)}

    counts = np.zeros((len(examples), len(words) + 1))
    for row, (_, text) in enumerate(examples):
        ids = [vocabulary[word] for word in words_of(text)]
        np.add.at(counts[row], ids, 1 / len(ids))
    labels = np.array([topics.index(topic) for topic, _ in examples])
    targets = np.eye(len(topics))[labels]

    weights = np.zeros((len(words) + 1, len(topics)))
    for _ in range(epochs):
        scores = np.exp(counts @ weights)
        errors = scores / scores.sum(axis=1, keepdims=True) - targets
        weights -= rate * (counts.T @ errors + decay * weights)
    right = (counts @ weights).argmax(axis=1) == labels
    print(f"{len(words)} words, {right.mean():.1%} of {len(examples)} sentences")

    np.save(os.path.join(here, "weights.npy"), weights.astype(np.float32))
    with open(os.path.join(here, "vocabulary.json"), "w", encoding="utf-8") as file:
        json.dump(vocabulary, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
