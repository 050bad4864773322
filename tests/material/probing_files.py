"""Small files of probing tasks, for tests."""

import numpy as np

NOUNS = ("cat", "dog", "bird", "birds", "mat", "house")
SIZES = {"tr": 60, "va": 20, "te": 30}


def write_task(folder, name, label, sizes=SIZES):
    """Write a task in SentEval's format; `label(words)` gives the label of a sentence's nouns."""
    rng, made = np.random.default_rng(0), []
    for mark, n_rows in sizes.items():
        for row in range(n_rows):
            words = [str(rng.choice(NOUNS)) for _ in range(3 + row % 7)]
            made.append(f"{mark}\t{label(words)}\tthe {' '.join(words)} {mark} {row}\n")
    path = folder / f"{name}.txt"
    path.write_text("".join(made), encoding="utf-8")
    return path
