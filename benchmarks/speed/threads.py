"""Texts per second with one thread and with two: the model's output alone (SDPA), and every head's scores."""

import os
from collections.abc import Callable

import torch

from benchmarks.shared import material

CASES = ((40, 50), (128, 16), (512, 4))
"""Tokens of a text, and texts."""
THREADS = (1, 2)
SECONDS = 12


def main() -> None:
    material.print_machine()
    print(f"{os.cpu_count()} processors; MiniLM 6x12; texts a second")
    print(f"{'texts':<10}" + "".join(f"{f'{way}, {n}':>10}" for way in ("bare", "observed") for n in THREADS), end="")
    print("".join(f"{f'{way}, {THREADS[1]} over {THREADS[0]}':>18}" for way in ("bare", "observed")))
    for n_tokens, n_texts in CASES:
        report(n_tokens, n_texts)


def report(n_tokens: int, n_texts: int) -> None:
    checkpoint = material.bundled()
    sdpa = material.with_attention(checkpoint, "sdpa")
    batches = material.planned(material.made_up_texts(checkpoint, [n_tokens] * n_texts), checkpoint.device)

    def bare() -> object:
        return material.bare(checkpoint, sdpa, batches)

    def observed() -> object:
        return material.scored(checkpoint, batches)

    contestants = [with_threads(n_threads, way) for way in (bare, observed) for n_threads in THREADS]
    seconds, ratios = material.median_ratios(contestants, SECONDS)
    rates = "".join(f"{n_texts / (seconds * ratio):>10.0f}" for ratio in ratios)
    gains = "".join(f"{ratios[i] / ratios[i + 1]:>18.2f}" for i in (0, 2))
    print(f"{f'{n_texts} x {n_tokens}':<10}{rates}{gains}", flush=True)


def with_threads(n_threads: int, contestant: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        torch.set_num_threads(n_threads)
        contestant()

    return run


if __name__ == "__main__":
    main()
