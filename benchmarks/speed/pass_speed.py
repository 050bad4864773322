"""Time of scoring every head, over the time of the model's output alone (SDPA) on the same batches; and time until one
text can be drawn, beside bertviz where that is installed.

The observed pass ends after the last layer's attention, since scores need no more; so it can be faster than the output.
"""

import importlib.util
from collections.abc import Sequence

import numpy as np

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.texts import window_at
from attention_sieve.core.roles.scores import score_batch
from benchmarks.shared import material

CASES = (("40", [40]), ("16 x 128", [128] * 16), ("16 x 98-128", list(range(98, 130, 2))), ("2 x 512", [512] * 2))
"""Name of each case, and the lengths of its texts in tokens. The third case needs padding."""
GOALS = {"16 x 128": 1.0, "2 x 512": 1.25}
DRAWN = (40, 128)
SECONDS = 8


def main() -> None:
    material.print_machine()
    checkpoints = {"MiniLM 6x12": material.bundled(), "BERT 12x12": material.bert_base()}
    print(f"{'checkpoint':<12}{'texts':>13}{'bare':>8}{'observed':>10}{'goal':>8}{'stored maps':>13}{'difference':>12}")
    for name, checkpoint in checkpoints.items():
        for case, lengths in CASES:
            report(name, checkpoint, lengths, case)
    print(
        f"\nTime until one text can be drawn\n{'checkpoint':<12}{'text':>13}{'bare':>8}{'observed':>10}{'bertviz':>14}"
    )
    for name, checkpoint in checkpoints.items():
        for n_tokens in DRAWN:
            report_view(name, checkpoint, n_tokens)


def report(name: str, checkpoint: Checkpoint, lengths: Sequence[int], case: str) -> None:
    batches = material.planned(material.made_up_texts(checkpoint, lengths), checkpoint.device)
    sdpa, eager = (material.with_attention(checkpoint, kind) for kind in ("sdpa", "eager"))
    _, (bare, observed, maps) = material.median_ratios(
        [
            lambda: material.bare(checkpoint, sdpa, batches),
            lambda: material.scored(checkpoint, batches),
            lambda: material.from_stored_maps(checkpoint, eager, batches),
        ],
        SECONDS,
    )
    by_maps = material.from_stored_maps(checkpoint, eager, batches)
    difference = np.nanmax(np.abs(material.scored(checkpoint, batches) - by_maps))
    goal = f"{GOALS[case]:.2f}" if case in GOALS else ""
    print(f"{name:<12}{case:>13}{bare:>8.2f}{observed:>10.2f}{goal:>8}{maps:>13.2f}{difference:>12.0e}", flush=True)


def report_view(name: str, checkpoint: Checkpoint, n_tokens: int) -> None:
    """The observed pass gives the attention and every score; bertviz the page of its head view, attention only."""
    (text,) = material.made_up_texts(checkpoint, [n_tokens])
    sdpa, eager = (material.with_attention(checkpoint, kind) for kind in ("sdpa", "eager"))
    contestants = [
        lambda: material.bare(checkpoint, sdpa, [[text]]),
        lambda: score_batch(checkpoint, [text], material.SETTINGS, {0: window_at(checkpoint, text)}),
    ]
    installed = importlib.util.find_spec("bertviz") is not None
    if installed:
        import torch
        from bertviz import head_view

        def view() -> object:
            with torch.inference_mode():
                maps = eager(**model_inputs(checkpoint, [text]), output_attentions=True).attentions
            return head_view(maps, list(text.source.tokens), html_action="return")

        contestants.append(view)
    _, ratios = material.median_ratios(contestants, SECONDS / 2)
    beside = f"{ratios[2]:.2f}" if installed else "not installed"
    print(f"{name:<12}{n_tokens:>13}{ratios[0]:>8.2f}{ratios[1]:>10.2f}{beside:>14}", flush=True)


if __name__ == "__main__":
    main()
