"""Time of comparing all heads with each other inside the pass, over the model's output alone (SDPA) on the same texts.

Goal: 144 heads on 200 texts of 64 tokens at no more than 2.5 times the bare pass on a CPU. For comparison, the authors'
way: every map stored, and the divergence of each pair of heads in numpy, on a sample of the texts.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from scipy.spatial.distance import squareform

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.similarity.distances import HeadDistances, head_distances
from attention_sieve.core.similarity.observer import text_distances
from benchmarks.shared import material

N_TOKENS: Final = 64
N_TEXTS: Final = 200
N_SAMPLED: Final = 2
"""Texts that are compared in numpy."""
GOAL: Final = 2.5


def main() -> None:
    material.print_machine()
    print(f"{'checkpoint':<13}{'texts':>10}{'bare, s':>9}{'distances':>11}{'goal':>7}", end="")
    print(f"{'numpy, stored maps':>20}{'difference':>12}")
    for name, checkpoint in {"MiniLM 6x12": material.bundled(), "BERT 12x12": material.bert_base()}.items():
        report(name, checkpoint)


def report(name: str, checkpoint: Checkpoint) -> None:
    texts = material.made_up_texts(checkpoint, [N_TOKENS] * N_TEXTS)
    batches, sdpa = material.planned(texts, checkpoint.device), material.with_attention(checkpoint, "sdpa")
    seconds, (_, distances) = material.median_ratios(
        [lambda: material.bare(checkpoint, sdpa, batches), lambda: compared(checkpoint, texts)], 0
    )
    few, eager = texts[:N_SAMPLED], material.with_attention(checkpoint, "eager")
    _, (_, stored) = material.median_ratios(
        [lambda: material.bare(checkpoint, sdpa, [few]), lambda: from_stored_maps(checkpoint, eager, few)], 0
    )
    difference = np.abs(compared(checkpoint, few).mean - from_stored_maps(checkpoint, eager, few)).max()
    case = f"{N_TEXTS} x {N_TOKENS}"
    print(f"{name:<13}{case:>10}{seconds:>9.1f}{distances:>11.2f}{GOAL:>7.2f}", end="")
    print(f"{stored:>20.1f}{difference:>12.0e}", flush=True)


def compared(checkpoint: Checkpoint, texts: Sequence[PassText]) -> HeadDistances:
    """Every two heads inside the pass."""
    batches = text_distances(checkpoint, texts, material.SETTINGS)
    return head_distances([found for batch in batches for _, found in batch])


def from_stored_maps(
    checkpoint: Checkpoint, model: Any, texts: Sequence[PassText]
) -> Float[np.ndarray, "layer_a head_a layer_b head_b"]:
    """Every two heads from stored maps, as the authors go about it: for one head after the other, in numpy."""
    with torch.inference_mode():
        seen = model(**model_inputs(checkpoint, texts), output_attentions=True).attentions
    maps = torch.stack(seen).cpu().numpy()
    n_layers, _, n_heads = maps.shape[:3]
    found = np.zeros((n_layers * n_heads, n_layers * n_heads))
    for of_text in maps.transpose(1, 0, 2, 3, 4):
        heads = of_text.reshape(n_layers * n_heads, *of_text.shape[2:])
        for place, head in enumerate(heads):
            found[place] += _divergences(head, heads).mean(-1) / len(texts)
    return squareform(squareform(found, checks=False)).reshape(n_layers, n_heads, n_layers, n_heads)


def _divergences(
    head: Float[np.ndarray, "query key"], heads: Float[np.ndarray, "head query key"]
) -> Float[np.ndarray, "head query"]:
    middle = (head + heads) / 2
    one, other = (rows * np.log(rows / middle) for rows in (head, heads))
    return (one.sum(-1) + other.sum(-1)) / 2


if __name__ == "__main__":
    main()
