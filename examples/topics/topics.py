"""A model of numpy: the mean of the weights of a text's words, as probabilities of the topics."""

import os

import numpy as np

weights = np.load(os.path.join(os.path.dirname(__file__), "weights.npy"))


def classify(ids, count):
    """Probabilities of each row; `ids` has `count` words, and 0 behind them."""
    known = np.where((ids >= 0) & (ids < len(weights)), ids, 0)
    used = np.arange(ids.shape[1]) < count
    sums = (weights[known] * used[:, :, np.newaxis]).sum(axis=1)
    scores = np.exp(sums / np.maximum(count, 1))
    return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
