"""Where heads look while another one is off, as how far that is from where the other one looks."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import MapObserver, Pass
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.importance.passes.sweep import SWEEP_TOKENS
from attention_sieve.core.passes.batches import gates, model_inputs
from attention_sieve.core.passes.texts import PassText

QUERIES: Final = 64
"""Most queries of a text that are compared: the last ones, which have most to look at."""
MOST_ENTRIES: Final = 1 << 25
"""Attention entries of all copies in one pass, but for a single copy."""

Maps = Float[Tensor, "layer head query key"]


def backup_distances(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, Float[np.ndarray, "layer head other_layer other_head"]]]]:
    """How far from where each head looks with all heads on each other head looks while it is off.

    Args:
        checkpoint: loaded.
        texts: prepared.
        settings: which attention, and which heads are off throughout.

    Yields: index of the text and Jensen-Shannon divergences in nats, mean over queries, 0 to ln 2; NaN for removed
        heads.
    """
    for row, text in enumerate(texts):
        yield [(row, _distances(checkpoint, text, settings).cpu().numpy())]


def _distances(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings
) -> Float[Tensor, "layer head other_layer other_head"]:
    attention, base = checkpoint.attentions[settings.kind], gates(checkpoint, settings)
    n_layers, n_heads = attention.n_layers, attention.n_heads
    n_all, n_rows = n_layers * n_heads, min(QUERIES, len(text.queries.ids))
    on = torch.ones((n_layers, n_heads), device=checkpoint.device) if base is None else base
    (all_on,) = _maps(checkpoint, text, on[None])
    each_off = on * (1 - torch.eye(n_all, device=on.device).view(n_all, n_layers, n_heads))
    n_copies = min(SWEEP_TOKENS[checkpoint.device] // text.n_tokens, MOST_ENTRIES // (n_all * n_rows * text.n_tokens))
    distances = []
    for heads in torch.arange(n_all).split(max(1, n_copies)):
        looks = all_on.flatten(0, 1)[heads]
        for look, maps in zip(looks, _maps(checkpoint, text, each_off[heads]), strict=True):
            distances.append(divergence(look, maps).mean(-1))
    return torch.stack(distances).view(n_layers, n_heads, n_layers, n_heads)


def divergence(
    one: Float[Tensor, "*#map query key"], other: Float[Tensor, "*map query key"]
) -> Float[Tensor, "*map query"]:
    """Jensen-Shannon divergence of rows of attention in nats, 0 to ln 2."""
    entropies = [torch.special.entr(rows).sum(-1) for rows in ((one + other) / 2, one, other)]
    return (entropies[0] - (entropies[1] + entropies[2]) / 2).clamp_min(0)


def _maps(checkpoint: Checkpoint, text: PassText, copy_gates: Float[Tensor, "copy layer head"]) -> list[Maps]:
    """Attention of the last queries of a text under each of several gatings."""
    n_queries, n_keys, n_copies = len(text.queries.ids), len(text.keys.ids), len(copy_gates)
    window = Window((max(0, n_queries - QUERIES), n_queries), (0, n_keys))
    observers = [MapObserver(row, n_queries, n_keys, window) for row in range(n_copies)]
    observed_pass = Pass(
        observers=observers, calls=checkpoint.attentions[text.kind].calls, gates=copy_gates, stops=True
    )
    observe(checkpoint.model, model_inputs(checkpoint, [text] * n_copies), observed_pass)
    return [observer.attention() for observer in observers]
