"""SST-2 as it lies in its files, and batches of its texts. What a network makes of them is not in here."""

from pathlib import Path

import numpy as np

# Texts of one batch are as long as its longest, rounded up to one of these, so that few shapes are compiled.
LENGTHS = [8, 12, 16, 24, 32, 48, 64, 96, 128]
TOKENS_PER_BATCH = 2048


def read(file: Path) -> tuple[np.ndarray, list[str]]:
    """Labels (0 negative, 1 positive) and texts of a tab-separated file with a header."""
    rows = [line.rstrip("\n").split("\t") for line in file.open(encoding="utf8")][1:]
    return np.array([int(label) for label, _ in rows]), [text for _, text in rows]


def batches(texts: list[list[int]], random: np.random.Generator | None = None):
    """
    Pairs of indices and token ids, padded with 0, texts of like length together; in random order where there is chance.
    The last batch of a length is filled up with empty rows of index -1.
    """
    order = range(len(texts)) if random is None else random.permutation(len(texts))
    waiting: dict[int, list[int]] = {length: [] for length in LENGTHS}
    full: list[tuple[int, list[int]]] = []
    for index in order:
        length = next(length for length in LENGTHS if len(texts[index]) <= length)
        waiting[length].append(int(index))
        if len(waiting[length]) == TOKENS_PER_BATCH // length:
            full.append((length, waiting[length]))
            waiting[length] = []
    full += [(length, rest) for length, rest in waiting.items() if rest]
    if random is not None:
        random.shuffle(full)
    for length, indices in full:
        rows = TOKENS_PER_BATCH // length
        ids = np.zeros((rows, length), np.int32)
        for row, index in enumerate(indices):
            ids[row, : len(texts[index])] = texts[index]
        yield np.array(indices + [-1] * (rows - len(indices))), ids
