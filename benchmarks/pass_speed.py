"""Time of scoring every head, over the time of the model's output alone (SDPA) on the same batches."""

from collections.abc import Sequence

import numpy as np

from benchmarks import _material as material
from core.checkpoints import Checkpoint

CASES = ((40, 1), (40, 25), (128, 16), (512, 2))
"""Tokens of a text, and texts."""
UNEQUAL = tuple(range(98, 130, 2))
"""Tokens of 16 texts that need padding."""
SECONDS = 15


def main() -> None:
    material.print_machine()
    print(f"{'checkpoint':<12}{'texts x tokens':>18}{'bare':>8}{'door':>8}{'stored maps':>13}{'difference':>12}")
    for name, checkpoint in (("MiniLM 6x12", material.bundled()), ("BERT 12x12", material.bert_base())):
        for n_tokens, n_texts in CASES:
            report(name, checkpoint, [n_tokens] * n_texts, f"{n_texts} x {n_tokens}")
        report(name, checkpoint, UNEQUAL, f"{len(UNEQUAL)} x {UNEQUAL[0]}-{UNEQUAL[-1]}")


def report(name: str, checkpoint: Checkpoint, lengths: Sequence[int], case: str) -> None:
    texts, pairs = material.made_up_texts(checkpoint, lengths)
    batches = material.planned(texts, checkpoint.device)
    in_batches = [[texts[i] for i in batch] for batch in batches]
    sdpa, eager = (material.with_attention(checkpoint, kind) for kind in ("sdpa", "eager"))

    def stored() -> list[np.ndarray]:
        return [
            material.from_stored_maps(checkpoint, eager, batch, [pairs[i] for i in positions])
            for batch, positions in zip(in_batches, batches)
        ]

    _, (bare, door, maps) = material.median_ratios(
        [
            lambda: material.bare(checkpoint, sdpa, in_batches),
            lambda: material.scored(checkpoint, texts, pairs),
            stored,
        ],
        SECONDS,
    )
    order = [position for batch in batches for position in batch]
    difference = np.abs(np.concatenate(stored()) - material.scored(checkpoint, texts, pairs)[order])
    print(f"{name:<12}{case:>18}{bare:>8.2f}{door:>8.2f}{maps:>13.2f}{np.nanmax(difference):>12.0e}", flush=True)


if __name__ == "__main__":
    main()
