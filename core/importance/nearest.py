"""The sentence most similar to a text, and the heads without which it is another one. Does not import torch."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head


def each_off(n_layers: int, n_heads: int) -> Float[np.ndarray, "gating layer head"]:
    """Gatings: all heads on, and then each head off alone, by layer and head."""
    off = 1 - np.eye(n_layers * n_heads)
    return np.concatenate([np.ones((1, n_layers * n_heads)), off]).reshape(-1, n_layers, n_heads)


def first_off(heads: Sequence[Head], n_layers: int, n_heads: int) -> Float[np.ndarray, "gating layer head"]:
    """Gatings: all heads on, and then the first one of these heads off, the first two, and so on."""
    gatings = np.ones((len(heads) + 1, n_layers, n_heads))
    for number, (layer, head) in enumerate(heads):
        gatings[number + 1 :, layer, head] = 0
    return gatings


def similarities(vectors: Float[np.ndarray, "text gating channel"]) -> Float[np.ndarray, "gating other"]:
    """Cosine of the first text's vector and that of each other text, under each gating."""
    unit = vectors.astype(np.float64)
    unit = unit / np.linalg.norm(unit, axis=-1, keepdims=True)
    return np.einsum("gc,ogc->go", unit[0], unit[1:])


def by_lead(similar: Float[np.ndarray, "gating other"], n_heads: int) -> list[Head]:
    """The heads, first those without which the most similar text is least ahead, by `similarities` under `each_off`."""
    first = int(similar[0].argmax())
    lead = similar[1:, first] - np.delete(similar[1:], first, axis=1).max(axis=1)
    return [divmod(int(place), n_heads) for place in np.argsort(lead, kind="stable")]


def n_until_another(similar: Float[np.ndarray, "gating other"]) -> int | None:
    """Number of the first gating under which another text is most similar than under the first; None without one."""
    places = np.flatnonzero(similar.argmax(axis=1) != similar[0].argmax())
    return int(places[0]) if len(places) else None
