"""Densities of scores from histograms, for corpora of any size.

The bins have equal widths on the scale on which scores are drawn, so counts are proportional to densities.
"""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.statistics.histogram import Bins, quantile
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.axes import LAYER_AXIS, note_rows, score_ends
from attention_sieve.dashboard.figures.figure import Figure, counted
from attention_sieve.dashboard.figures.roles.densities import HALF_WIDTH
from attention_sieve.dashboard.figures.roles.distributions import (
    SCORE_FIELDS,
    line,
    line_labels,
    places_spec,
    score_axis,
)
from attention_sieve.dashboard.figures.scales import WORDS


def densities_per_layer(
    counts: Int[np.ndarray, "layer head bin"], bins: Bins, role: str, tau: float, uniform: float, scale: Scale
) -> Figure:
    """One shape per layer: the scores of all its heads on all texts with a score.

    Args:
        counts: scores of one role in each bin.
        bins: of the counts.
        role: drawn in its colour.
        tau: drawn as a line.
        uniform: mean score of uniform attention; drawn as a line.
        scale: of the scores.
    """
    title = f"{WORDS[scale].nouns.capitalize()} by layer: {LOOKS[role].label}"
    return _figure(counts.sum(axis=1), bins, role, tau, uniform, scale, title, LAYER_AXIS, "all heads")


def densities_per_head(
    counts: Int[np.ndarray, "head bin"], bins: Bins, role: str, layer: int, tau: float, uniform: float, scale: Scale
) -> Figure:
    """One shape per head of a layer; arguments as for `densities_per_layer`."""
    title = f"{WORDS[scale].nouns.capitalize()} by head of layer {layer}: {LOOKS[role].label}"
    return _figure(counts, bins, role, tau, uniform, scale, title, "head", f"layer {layer}")


def _figure(
    counts: Int[np.ndarray, "place bin"],
    bins: Bins,
    role: str,
    tau: float,
    uniform: float,
    scale: Scale,
    title: str,
    axis: str,
    subject: str,
) -> Figure:
    shapes = [_shape(place_counts, bins, place) for place, place_counts in enumerate(counts)]
    middles = [_middle(place_counts, bins, place) for place, place_counts in enumerate(counts) if place_counts.any()]
    message = note_rows(not middles, f"No text has a score for the role {LOOKS[role].label}.")
    lines = [line("tau", tau), line("uniform", uniform), line_labels(tau, uniform)]
    data = pd.concat([*shapes, pd.DataFrame(middles), message, *lines])
    ends = score_ends(data, SCORE_FIELDS, scale)
    spec = places_spec(title, axis, role, len(counts), scale, score_axis(uniform, scale), ends)
    return Figure(spec, data, _description(middles, int(counts.sum()), axis, f"{subject}, {role}", scale))


def _shape(counts: Int[np.ndarray, " bin"], bins: Bins, place: int) -> pd.DataFrame:
    """The outline of a histogram, at the middle of each bin from the first to the last non-empty bin."""
    filled = np.flatnonzero(counts)
    if not len(filled):
        return pd.DataFrame({"kind": [], "place": [], "score": [], "left": [], "right": []})
    bins_shown = slice(max(0, filled[0] - 1), filled[-1] + 2)
    half = HALF_WIDTH * counts[bins_shown] / counts.max()
    sides = {"left": place - half, "right": place + half}
    return pd.DataFrame({"kind": "shape", "place": place, "score": _middles(bins)[bins_shown], **sides})


def _middles(bins: Bins) -> Float[np.ndarray, " bin"]:
    edges = bins.edges
    return (edges[:-1] + edges[1:]) / 2


def _middle(counts: Int[np.ndarray, " bin"], bins: Bins, place: int) -> dict[str, object]:
    low, median, high = (quantile(counts, share, bins) for share in (0.25, 0.5, 0.75))
    return {"kind": "middle", "place": place, "low": low, "median": median, "high": high, "scores": int(counts.sum())}


def _description(middles: list[dict[str, object]], n_scores: int, axis: str, subject: str, scale: Scale) -> str:
    words = WORDS[scale]
    if not middles:
        return f"No {words.noun} to draw ({subject}): the role applies to no text."
    medians = "; ".join(f"{middle['place']}: {middle['median']:.3g}" for middle in middles)
    return f"Shapes by {axis} ({subject}) of {counted(n_scores, words.short)}, from histograms. Medians: {medians}."
