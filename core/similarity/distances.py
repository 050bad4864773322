"""Divergences between all pairs of heads as means over texts, and nearest heads; imports no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError

ROWS: Final = 128
"""Maximum number of sampled queries per text; the paper's texts are no longer."""
MAP_ENTRIES: Final = 1 << 25
"""Maximum number of attention entries stored at once, over all heads: 128 MB in float32."""
MOST: Final = float(np.log(2))
"""Maximum divergence, that of two rows that share no key, in nats."""
FLOOR: Final = 1e-30
"""Added to every entry to avoid the logarithm of 0; negligible in float32 next to relevant entries."""
SMOOTHING: Final = 0.001
"""Share of a row that the authors' code spreads evenly over all keys."""
Distances = Float[np.ndarray, "layer_a head_a layer_b head_b"]
"""Distances between all pairs of heads: `mean` or `sum` of HeadDistances."""


@dataclass(frozen=True)
class DistanceSettings:
    """How heads are compared on one text.

    Raises: AnalysisError for less than one row.
    """

    smoothed: Annotated[
        bool, "smooth each row of attention A to 0.999 A + 0.001 / number of keys, as in the authors' code"
    ] = False
    """Without it the rows as they are, as in the paper."""
    rows: Annotated[int, "maximum number of rows (queries) compared per text; longer texts are sampled"] = ROWS
    """The sample depends only on the number of tokens."""

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise AnalysisError(f"The number of rows is {self.rows}. Choose 1 or more.")

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {"rows smoothed": "yes" if self.smoothed else "no", "most rows of a text": str(self.rows)}


USUAL_DISTANCES: Final = DistanceSettings()


@dataclass(frozen=True, eq=False, kw_only=True)
class TextDistances:
    """How far apart heads attend on one text, in nats."""

    pairs: Float[np.ndarray, " pair"]
    """Jensen-Shannon divergence of the rows of two heads, mean over the sampled rows, 0 to ln 2; heads in order of
    layers, pairs in the order of `scipy.spatial.distance.squareform`."""
    relative: Float[np.ndarray, "layer head other_head"]
    """Divergence (Kullback-Leibler) of a head from another of its layer, sum of p_head ln(p_head / p_other), mean over
    the rows."""
    n_queries: int
    """Number of all queries of the text, sampled or not."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadDistances:
    """How far apart heads attend over some texts, in nats."""

    mean: Distances
    """Jensen-Shannon divergence, mean over the rows of a text and then over texts: 0 to ln 2, symmetric; NaN, as all
    here, for a head that was removed from the checkpoint."""
    sum: Distances
    """The same, summed over all rows of all texts; for a sampled text, its mean times the number of its queries."""
    relative: Float[np.ndarray, "layer head other_head"]
    """Divergence of a head from another of its layer, mean over texts; not symmetric."""
    n_texts: int

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and heads."""
        return self.relative.shape[0], self.relative.shape[1]


def sampled_queries(n_queries: int, n_keys: int, n_heads: int, rows: int = ROWS) -> Int[np.ndarray, " row"]:
    """The sampled queries of a text, sorted; all of them for short texts.

    Args:
        n_queries, n_keys: tokens of the text.
        n_heads: of all layers together, whose rows have to fit into MAP_ENTRIES.
        rows: maximum number of queries.

    Returns: token positions, which depend on these numbers only, not on the other texts of the batch.
    """
    n_rows = max(1, min(n_queries, rows, MAP_ENTRIES // (n_heads * n_keys)))
    if n_rows == n_queries:
        return np.arange(n_queries)
    return np.sort(np.random.default_rng(n_queries).choice(n_queries, n_rows, replace=False))


def head_distances(texts: Sequence[TextDistances]) -> HeadDistances:
    """Means and sums over one or more texts.

    Source: Clark et al. 2019, section 6, sums over all rows of all texts, in which a long text counts more; the mean is
        this project's, has the bounds of the divergence, and orders pairs similarly if texts are of similar length.
    """
    from scipy.spatial.distance import squareform  # the import takes half a second

    n_layers, n_heads = texts[0].relative.shape[:2]
    n_queries = np.array([text.n_queries for text in texts], dtype=np.float64)
    pairs = np.stack([text.pairs for text in texts])
    relative = np.stack([text.relative for text in texts]).mean(axis=0, dtype=np.float64)
    is_removed = np.isnan(np.einsum("ijj->ij", relative)).ravel()

    def all_pairs(weights: Float[np.ndarray, " text"]) -> Distances:
        if n_layers * n_heads == 1:  # squareform treats no pair as no head
            return np.zeros((1, 1, 1, 1))
        square = squareform(weights @ pairs)
        square[is_removed, is_removed] = np.nan  # like its distances to the others
        return square.reshape(n_layers, n_heads, n_layers, n_heads)

    return HeadDistances(
        mean=all_pairs(np.full(len(texts), 1 / len(texts))),
        sum=all_pairs(n_queries),
        relative=relative,
        n_texts=len(texts),
    )


def present_heads(distances: Distances) -> Bool[np.ndarray, "layer head"]:
    """Heads that were not removed from the checkpoint."""
    return ~np.isnan(np.einsum("ijij->ij", distances))


def nearest_heads(distances: Distances, head: Head) -> list[tuple[Head, float]]:
    """The other heads as layer and head, nearest first, with their distance."""
    away = distances[head]
    order = np.unravel_index(np.argsort(away, axis=None, kind="stable"), away.shape)
    heads = zip(*(indices.tolist() for indices in order))
    return [(other, float(away[other])) for other in heads if other != head and not np.isnan(away[other])]


def _is_same_head(distances: Distances) -> Bool[np.ndarray, "layer_a head_a layer_b head_b"]:
    n_layers, n_heads = distances.shape[:2]
    return np.eye(n_layers * n_heads, dtype=bool).reshape(distances.shape)


def closest_pair(distances: Distances) -> tuple[Head, Head, float] | None:
    """The two heads with the smallest distance, and that distance; None if there is only one head."""
    to_others = np.where(_is_same_head(distances) | np.isnan(distances), np.inf, distances)
    if not np.isfinite(to_others).any():
        return None
    a, head_a, b, head_b = (int(i) for i in np.unravel_index(to_others.argmin(), to_others.shape))
    return (a, head_a), (b, head_b), float(to_others[a, head_a, b, head_b])


def layer_distances(distances: Distances) -> Float[np.ndarray, "layer_a layer_b"]:
    """Mean distance between the heads of two layers; within a layer, over pairs of different heads.

    NaN within a layer with one head, and for one from which all heads were removed.
    """
    sums = np.nansum(distances, axis=(1, 3))
    n_pairs = (~np.isnan(distances) & ~_is_same_head(distances)).sum(axis=(1, 3))
    return np.divide(sums, n_pairs, out=np.full(sums.shape, np.nan), where=n_pairs > 0)


def within_and_between(distances: Distances) -> tuple[float, float]:
    """Mean distance between heads of one layer, and of different layers; NaN where there are none."""
    by_layer = layer_distances(distances)
    same = np.eye(len(by_layer), dtype=bool)
    return _mean_of_known(by_layer[same]), _mean_of_known(by_layer[~same])


def _mean_of_known(values: Float[np.ndarray, " value"]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
