"""Densities of scores from histograms, whose bins have equal widths on the scale on which scores are drawn."""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from attention_sieve.core.statistics.series import Bins, quantile
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.figure import Figure, counted
from attention_sieve.dashboard.figures.roles.densities import HALF_WIDTH
from attention_sieve.dashboard.figures.roles.distributions import Violins, violins_figure


def density_violins(
    counts: Int[np.ndarray, "layer head bin"],
    bins: Bins,
    violins: Violins,
    tau: float,
    uniform: Float[np.ndarray, " layer"],
) -> Figure:
    """As `score_violins`, from the number of scores in each bin."""
    layer = violins.layer
    by_place = counts.sum(axis=1) if layer is None else counts[layer]
    level = float(uniform.mean() if layer is None else uniform[layer])
    shapes = [_shape(place_counts, bins, place) for place, place_counts in enumerate(by_place)]
    middles = [_middle(place_counts, bins, place) for place, place_counts in enumerate(by_place) if place_counts.any()]
    description = _description(middles, int(by_place.sum()), violins)
    return violins_figure(violins, shapes, middles, tau, level, description)


def _shape(counts: Int[np.ndarray, " bin"], bins: Bins, place: int) -> pd.DataFrame:
    """The outline of a histogram, at the middle of each bin from the first to the last non-empty bin."""
    filled = np.flatnonzero(counts)
    if not len(filled):
        return pd.DataFrame({"kind": [], "place": [], "score": [], "left": [], "right": []})
    bins_shown = slice(max(0, filled[0] - 1), filled[-1] + 2)
    half = HALF_WIDTH * counts[bins_shown] / counts.max()
    sides = {"left": place - half, "right": place + half}
    middles = (bins.edges[:-1] + bins.edges[1:]) / 2
    return pd.DataFrame({"kind": "shape", "place": place, "score": middles[bins_shown], **sides})


def _middle(counts: Int[np.ndarray, " bin"], bins: Bins, place: int) -> dict[str, object]:
    low, median, high = (quantile(counts, share, bins) for share in (0.25, 0.5, 0.75))
    return {"kind": "middle", "place": place, "low": low, "median": median, "high": high, "scores": int(counts.sum())}


def _description(middles: list[dict[str, object]], n_scores: int, violins: Violins) -> str:
    words = WORDS[violins.scale]
    if not middles:
        return f"No {words.noun} to draw ({violins.subject}): the role applies to no text."
    medians = "; ".join(f"{middle['place']}: {middle['median']:.3g}" for middle in middles)
    return (
        f"Shapes by {violins.axis} ({violins.subject}) of {counted(n_scores, words.short)}, from histograms. "
        f"Medians: {medians}."
    )
