"""Sentences of the page Similar heads."""

from collections.abc import Sequence
from math import ceil, exp, isnan
from typing import Final

from attention_sieve.core.similarity.distances import FLOOR, MOST, ROWS, SMOOTHING
from attention_sieve.core.surface.statistics import BROAD, THRESHOLDS
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.figures.similarity.plane import OUTSIDE, WORTH

NUMBERS: Final = {
    "rows": str(ROWS),
    "rest": f"{1 - SMOOTHING:g}",
    "smoothing": f"{SMOOTHING:g}",
    "neighbour": percent(THRESHOLDS["next"]),
    "special": percent(THRESHOLDS["sep"]),
    "broad": f"{BROAD:g}",
    "fewest_keys": str(ceil(exp(BROAD))),
    "floor": f"{FLOOR:g}",
    "outside": percent(OUTSIDE),
    "worth": percent(WORTH),
}
"""Numbers in `method.md`."""
SEE: Final = (
    "Each small picture is an attention head: dark where it looks, a row for each token of one sentence. Heads that "
    "look at the same words lie close together. Click one, or a cell, to see which heads are most like it."
)
CHOSEN: Final = "Most similar heads"
TREE: Final = "Dendrogram"
LAYERS: Final = "Layers"
PAIR: Final = "Two layers"
TABLE: Final = "Table"

N_TEXTS: Final = "Texts compared"
N_TEXTS_HELP: Final = (
    "Evenly spaced texts of the corpus. Every head is compared with every other on every text, so the cost grows "
    "with the number of texts and with the square of the number of heads: for 72 heads it is about that of another "
    "forward pass, for 1,024 heads much more. Comparisons are stored."
)
HOW_FAR: Final = "Distance"
MEAN: Final = "mean over rows"
AUTHORS: Final = "authors' sum"
SMOOTHED: Final = {MEAN: False, AUTHORS: True}
"""Whether rows are smoothed: only for the authors' sum."""
ROWS_COMPARED: Final = "Rows compared per text"
HOW_FAR_HELP: Final = (
    "Mean: the Jensen-Shannon divergence of the rows of two heads, averaged over the rows of a text and then over "
    f"texts, 0 to {MOST:.3f} nats. Authors' sum: added up over all rows of all texts, each row first smoothed as "
    f"{1 - SMOOTHING:g} A + {SMOOTHING:g} / keys, so long texts count more. This distance needs a comparison of its "
    "own."
)
COLOUR: Final = "Colour by"
BEHAVIOUR: Final = "behaviour"
ROLE: Final = "role"
LAYER: Final = "layer"
COLOURS: Final = (LAYER, BEHAVIOUR, ROLE)
COLOUR_HELP: Final = (
    "Behaviour: what gets most of a head's attention, as the paper labels heads. (The page Where heads look calls a "
    "head positional by its most attended token, special tokens left out. So a head that keeps most of its "
    "attention on [CLS] and gives the rest to the previous token is *[CLS]* here and *positional* there.) Role: the "
    "coarse role that the head holds over the corpus, as on the page Roles. Each needs its own forward pass, unless "
    "it has been made already."
)
NO_PAIR: Final = "No two heads can be compared."
NO_SECOND_HEAD: Final = "This checkpoint has only one head, so there is nothing to compare it with."
NO_BEHAVIOUR: Final = "Behaviours are left out until the forward pass for them has finished."
VIEW: Final = "View"
MOST_HEADS: Final = "most heads"
ALL_HEADS: Final = "all heads"
NONE_CHOSEN: Final = "No head is chosen. Click one above."
CLARK_6: Final = "Figure 6 of Clark et al. (2019)."
NO_FIGURE: Final = "The paper has no such figure; it is drawn from the same distances."
MICHEL: Final = "Corresponds to the divergences within a layer in the code of Michel et al. (2019)."
LAYER_A: Final = "Heads of layer"
LAYER_B: Final = "compared with layer"
RELATIVE: Final = "Kullback-Leibler divergence"
RELATIVE_HELP: Final = "Not symmetric and without an upper bound: how poorly the column's attention predicts the row's."
LAYERS_NOTE: Final = (
    "Mean distance between the heads of two layers. The diagonal compares a layer with itself, over pairs of different "
    "heads."
)


COLUMNS: Final = {
    "divergence": ("mean (nats)", "Jensen-Shannon divergence, averaged over rows and then over texts."),
    "sum": ("authors' sum (nats)", "The same, summed over all rows of all texts."),
    "relative_a_b": (
        "KL from the other (nats)",
        "Kullback-Leibler divergence of the head from the other head; computed within a layer only.",
    ),
    "relative_b_a": (
        "KL of the other (nats)",
        "Kullback-Leibler divergence of the other head from the head; it differs, because it is not symmetric.",
    ),
}
"""Columns of the table of pairs: label and explanation."""


def closest(head: str, other: str) -> str:
    return f"**{head} and {other}** look at the same words most closely."


def summary(distance: float | None, unit: str, n_texts: tuple[int, int], n_heads: int) -> str:
    """How close the closest pair is, of how many heads on how many texts."""
    n_compared, n_all = n_texts
    texts = f"{n_compared:,} of {n_all:,} texts" if n_compared < n_all else counted(n_all, "text")
    compared = f"{counted(n_heads, 'head')} compared on {texts}."
    return compared if distance is None else f"{distance:.3g} {unit} apart; 0 is equal. {compared}"


def within_a_layer(within: float, between: float, unit: str) -> str:
    """Whether heads of the same layer are more alike than others; empty without such pairs (NaN)."""
    if within != within or between != between:
        return ""
    closer = "more" if within < between else "no more"
    return (
        f"Heads of one layer are {closer} alike than heads of different layers ({within:.3g} against {between:.3g} "
        f"{unit} on average)."
    )


def groups_of(sizes: Sequence[int], cut: float, unit: str) -> str:
    several = [size for size in sizes if size > 1]
    n_alone = len(sizes) - len(several)
    threshold = f"within {cut:.3g} {unit}, half the mean distance"
    if not several:
        return f"No groups: no two heads are similar ({threshold})."
    alone = f", {counted(n_alone, 'loner')}" if n_alone else ""
    return (
        f"{counted(len(several), 'group')}{alone} (groups: {threshold}; the largest has {counted(several[0], 'head')})."
    )


def distance(unit: str) -> str:
    return f"distance ({unit}, 0 = equal)"


def view_help(outside: Sequence[str]) -> str:
    verb = "lies" if len(outside) == 1 else "lie"
    return (
        f"{', '.join(outside)} {verb} so far from the others that these would be crowded. **Most heads** zooms in on "
        "the others, with an arrow at the edge for each head further out. In each view both axes have the same "
        "scale."
    )


def distances_shown(share: float) -> str:
    """How much of the squared distances the points show; NaN if all heads are alike."""
    return "" if isnan(share) else f"The plane shows {percent(share, 1)} of the squared distances."
