"""Time of every surface statistic, over the time of the model's output alone (SDPA) on the same batches."""

from functools import partial

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import collect
from attention_sieve.core.surface.observer import SurfaceObserver
from benchmarks.shared import material

CASES = (("1 x 40", [40]), ("16 x 128", [128] * 16), ("2 x 512", [512] * 2))
"""Name of each case, and the lengths of its texts in tokens."""
GOALS = {"16 x 128": 1.15}
SECONDS = 8


def main() -> None:
    material.print_machine()
    checkpoints = {"MiniLM 6x12": material.bundled(), "BERT 12x12": material.bert_base()}
    print(f"{'checkpoint':<12}{'texts':>13}{'bare':>8}{'scores':>8}{'surface':>9}{'goal':>8}")
    for name, checkpoint in checkpoints.items():
        for case, lengths in CASES:
            report(name, checkpoint, lengths, case)


def report(name: str, checkpoint: Checkpoint, lengths: list[int], case: str) -> None:
    texts = material.made_up_texts(checkpoint, lengths)
    batches = material.planned(texts, checkpoint.device)
    sdpa = material.with_attention(checkpoint, "sdpa")
    _, (bare, scores, surface) = material.median_ratios(
        [
            lambda: material.bare(checkpoint, sdpa, batches),
            lambda: material.scored(checkpoint, batches),
            lambda: list(collect(checkpoint, texts, material.SETTINGS, partial(SurfaceObserver, checkpoint))),
        ],
        SECONDS,
    )
    goal = f"{GOALS[case]:.2f}" if case in GOALS else ""
    print(f"{name:<12}{case:>13}{bare:>8.2f}{scores:>8.2f}{surface:>9.2f}{goal:>8}", flush=True)


if __name__ == "__main__":
    main()
