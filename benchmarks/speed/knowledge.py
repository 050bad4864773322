"""Probes of all heads, many in one problem, beside scikit-learn head by head, and vectors beside the bare pass.

Goals: at least 10 times faster than scikit-learn at its own tolerance, at most 1.1 of the bare pass. Vectors are
those of the bundled checkpoint on sentences of the English Web Treebank, which lie beside the repository; where they do
not, nothing is measured. Two labels of 8,000 sentences are fitted, then the eleven tasks that lie there. Other numbers
of sentences and heads may be given, as in `python -m benchmarks.speed.knowledge 2000 6`.
"""

import gzip
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.knowledge.files.folders import read_tasks
from attention_sieve.core.knowledge.labels import STRENGTHS, labels_of
from attention_sieve.core.knowledge.report import texts_of
from attention_sieve.core.knowledge.vectors import Vectors
from attention_sieve.core.passes.texts import PassText, prepare_all
from attention_sieve.core.texts.text import Text

FOLDER: Final = Path(__file__).parents[3] / "shared" / "data" / "probing_ud"
N_THREADS: Final = 2
N_SENTENCES: Final = 8_000
SECONDS: Final = 20
GOAL_PASS: Final = 1.1
GOAL_PROBES: Final = 10
N_CLASSES: Final = 6
"""Of the number of words."""
REPEATS: Final = 5
"""Of the batched problem, which takes a second; scikit-learn takes long enough to be timed once."""

Result = TypeVar("Result")


def main() -> None:
    from benchmarks.shared import material  # here: core settles how threads wait before torch is imported

    if not FOLDER.is_dir():
        print("There are no sentences beside the repository; nothing is measured.")
        return
    n_sentences, n_heads = map(int, sys.argv[1:]) if len(sys.argv) > 1 else (N_SENTENCES, None)
    material.print_machine(N_THREADS, "cpu")
    checkpoint, sentences = material.bundled("cpu"), read(n_sentences)
    prepared, _ = prepare_all(checkpoint, [Text((one,)) for one in sentences], material.SETTINGS, "truncate")
    report_pass(checkpoint, list(prepared.values())[: min(n_sentences, 400)])
    vectors = passed(checkpoint, list(prepared.values()))
    features = vectors.heads.reshape(n_sentences, -1, vectors.heads.shape[-1])[:, :n_heads]
    n_words = np.array([len(one.split()) for one in sentences])
    has_comma = np.array(["," in one for one in sentences]).astype(int)
    edges = np.quantile(n_words, np.arange(1, N_CLASSES) / N_CLASSES)
    print(
        f"{features.shape[1]} heads, {n_sentences:,} sentences, 5 strengths; goal at least {GOAL_PROBES} times faster"
    )
    report_probes("a comma or none", features, has_comma)
    report_probes(f"length in {N_CLASSES} classes", features, np.searchsorted(edges, n_words, "right"))
    report_tasks(checkpoint, features.shape[1])


def read(n_sentences: int) -> list[str]:
    """Different sentences of all tasks."""
    contents = [gzip.decompress(path.read_bytes()).decode() for path in sorted(FOLDER.glob("*.gz"))]
    found = list(dict.fromkeys(line.split("\t")[2] for content in contents for line in content.splitlines()))
    return [found[place] for place in np.random.default_rng(0).permutation(len(found))[:n_sentences]]


def passed(checkpoint: Checkpoint, texts: list[PassText]) -> Vectors:
    from attention_sieve.core.knowledge.observer import text_vectors
    from benchmarks.shared import material

    batches = text_vectors(checkpoint, texts, material.SETTINGS, "cls")
    found = dict(pair for batch in batches for pair in batch)
    in_order = [found[place] for place in sorted(found)]
    heads, layers = np.stack([each.heads for each in in_order]), np.stack([each.layers for each in in_order])
    return Vectors(heads=heads, layers=layers)


def report_pass(checkpoint: Checkpoint, texts: list[PassText]) -> None:
    from benchmarks.shared import material

    batches, sdpa = material.planned(texts, "cpu"), material.with_attention(checkpoint, "sdpa")
    contestants = [lambda: material.bare(checkpoint, sdpa, batches), lambda: passed(checkpoint, texts)]
    _, ratios = material.median_ratios(contestants, SECONDS)
    print(
        f"vectors of {len(texts)} sentences: {ratios[1] / ratios[0]:.2f} of the bare pass; goal {GOAL_PASS}", flush=True
    )


def report_tasks(checkpoint: Checkpoint, n_heads: int) -> None:
    """The training part of each task, and all of them together."""
    from benchmarks.shared import material

    times = list[tuple[float, float]]()
    for task in read_tasks(FOLDER, is_regression=False):
        prepared, _ = prepare_all(checkpoint, texts_of(task), material.SETTINGS, "truncate")
        labels = labels_of(task)
        vectors = passed(checkpoint, list(prepared.values())).heads[labels.train]
        features = vectors.reshape(len(vectors), -1, vectors.shape[-1])[:, :n_heads]
        times.append(report_probes(task.name, features, labels.gold[labels.train].astype(int)))
    own, theirs = np.sum(times, axis=0)
    print(f"{len(times)} tasks together: {own:.1f} s, scikit-learn {theirs:.1f} s: {theirs / own:.1f} times")


def report_probes(
    name: str, features: Float[np.ndarray, "sentence head channel"], labels: Int[np.ndarray, " sentence"]
) -> tuple[float, float]:
    """Fit both ways.

    Returns: seconds that the batched problem and scikit-learn took.
    """
    from attention_sieve.core.knowledge.labels import TaskLabels
    from attention_sieve.core.knowledge.probes.probe import turns_of

    targets = np.eye(labels.max() + 1, dtype=np.float32)[labels]
    none, every = np.arange(0), np.arange(len(labels))
    turns = list(
        turns_of(features, TaskLabels(train=every, validation=none, test=none, targets=targets), len(STRENGTHS))
    )
    own, losses = timed(partial(batched_losses, features, targets, turns), REPEATS)
    theirs_took, theirs = timed(partial(scikit_losses, features, labels), 1)
    worst = (losses - theirs).max()
    print(
        f"{name:<23} {len(labels):5,} sentences, {targets.shape[1]:2} classes: batched {own:6.1f} s, scikit-learn "
        f"{theirs_took:6.1f} s: {theirs_took / own:5.1f} times faster; its loss minus scikit-learn's is at most "
        f"{worst:.0e}",
        flush=True,
    )
    return own, theirs_took


def timed(compute: Callable[[], Result], n_times: int) -> tuple[float, Result]:
    """Median seconds, and the result."""
    seconds = []
    for _ in range(n_times):
        start = time.perf_counter()
        result = compute()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def batched_losses(
    features: Float[np.ndarray, "sentence head channel"],
    targets: Float[np.ndarray, "sentence class"],
    turns: list[slice],
) -> Float[np.ndarray, "head strength"]:
    from attention_sieve.core.knowledge.probes.probe import fit

    grid = np.array([STRENGTHS])
    parts = [features[:, chosen] for chosen in turns]
    return np.concatenate([fit(part, targets, grid.repeat(part.shape[1], 0)).loss.numpy() for part in parts])


def scikit_losses(
    features: Float[np.ndarray, "sentence head channel"], labels: Int[np.ndarray, " sentence"]
) -> Float[np.ndarray, "head strength"]:
    from sklearn.linear_model import LogisticRegression

    losses = np.empty((features.shape[1], len(STRENGTHS)))
    for head in range(features.shape[1]):
        columns = features[:, head].astype(float)
        columns = (columns - columns.mean(0)) / columns.std(0)
        for place, strength in enumerate(STRENGTHS):
            fitted = LogisticRegression(C=1 / strength, max_iter=1_000).fit(columns, labels)
            logs = np.log(fitted.predict_proba(columns)[np.arange(len(labels)), labels])
            losses[head, place] = (strength / 2 * (fitted.coef_**2).sum() - logs.sum()) / len(labels)
    return losses


if __name__ == "__main__":
    main()
