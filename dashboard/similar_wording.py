"""Every sentence of the page Similar heads, once."""

from collections.abc import Sequence
from typing import Final

from core.similar_heads import BROAD, ROWS
from dashboard.figures.figure import counted

SEE: Final = (
    "Which heads attend alike: each point is a head, and two heads lie close together where they look at the same "
    "tokens. Click a point or a cell to choose a head and see what is nearest to it."
)
CHOSEN: Final = "What is nearest"
TREE: Final = "Tree"
LAYERS: Final = "Layers"
PAIR: Final = "Two layers"
TABLE: Final = "Table"

N_TEXTS: Final = "Texts compared"
ALL_TEXTS: Final = "all"
N_TEXTS_HELP: Final = (
    "Of the texts in the sidebar, taken at even steps. Every head is compared with every other on every text, so the "
    "cost grows with the texts and with the square of the heads: for 72 heads about that of a second pass, for 1,024 "
    "heads much more. What has been compared is kept."
)
HOW_FAR: Final = "Distance"
MEAN: Final = "mean over rows"
AUTHORS: Final = "authors' sum"
HOW_FAR_HELP: Final = (
    "Mean: the Jensen-Shannon divergence of two heads' rows, averaged over the rows of a text and then over texts, 0 "
    "to 0.693 nats. The authors' sum adds up all rows of all texts, each smoothed first as 0.999 A + 0.001 / keys; "
    "long texts count more. The smoothed rows are compared anew."
)
COLOUR: Final = "Colour by"
BEHAVIOUR: Final = "behaviour"
ROLE: Final = "role"
COLOUR_HELP: Final = (
    "Behaviour: what takes most of a head's attention, as the paper labels heads. Role: the coarse role that the head "
    "holds over the corpus, as on the page Roles; both need a pass of their own, unless it has been made."
)
NO_SECOND_HEAD: Final = "This checkpoint has one head, which has none to be compared with."
NO_BEHAVIOUR: Final = "Behaviours are left out until the texts have been passed for them."
NONE_CHOSEN: Final = "No head is chosen. Click one above."
CLARK_6: Final = "Corresponds to Figure 6 of Clark et al. (2019)."
NO_FIGURE: Final = "The paper has no such figure; it is drawn from the same distances."
MICHEL: Final = "Corresponds to the divergences within a layer in the code of Michel et al. (2019)."
LAYER_A: Final = "Heads of layer"
LAYER_B: Final = "against layer"
RELATIVE: Final = "Divergence of one from the other"
RELATIVE_HELP: Final = (
    "Kullback-Leibler, not symmetric, without an upper bound: how badly the column's attention foretells the row's."
)
LAYERS_NOTE: Final = (
    "Mean distance between the heads of two layers. On the diagonal a layer with itself, over pairs of different heads."
)
OPEN: Final = "Similar heads"
TO_PAGE: Final = "Which heads attend most like this one"

HOW: Final = rf"""
- Two heads are compared on each row of a text, what one query attends to:
  $JS(p, q) = \tfrac12 \sum p \ln \tfrac{{p}}{{m}} + \tfrac12 \sum q \ln \tfrac{{q}}{{m}}$ with $m = \tfrac12 (p + q)$,
  in nats: 0 for equal rows, ln 2 = 0.693 for rows that share no key. It is the divergence itself, not its root.
- The distance of two heads is the mean over the rows of a text, then over texts. All heads of all layers are compared
  while the text is passed; no map is stored. A text of more than {ROWS} tokens is compared on a sample of {ROWS} of its
  rows, always the same.
- The authors (Clark et al. 2019, section 6 and their code) sum over all rows of all texts, rows smoothed as
  0.999 A + 0.001 / n: to be chosen above.
- The plane: metric multidimensional scaling (scikit-learn's SMACOF) of these distances, begun at the classical solution
  instead of random places, so that it is always the same. Stress says which part of the distances a plane cannot show;
  turning and mirroring mean nothing.
- The tree joins the two closest heads or groups first, by the mean distance between their heads (average linkage).
  Leaves stand in the order, of all that the tree allows, in which neighbours are closest. Groups are what is left where
  the tree is cut at half the mean distance of all heads.
- Behaviour, after the authors' code: more than half of the attention on the next token, or on the previous one;
  entropy above {BROAD:g} nats: broad; more than 0.6 on [CLS], on [SEP], on punctuation. Of several the last counts.
  Short texts cannot be broad: {BROAD:g} nats need at least 45 keys.
- Within a layer the divergence of one head from another (Kullback-Leibler, $\sum p \ln (p / q)$) is given too (Michel
  et al. 2019, code); an attention below 1e-30 counts as that much.
"""

COLUMNS: Final = {
    "divergence": ("mean (nats)", "Jensen-Shannon divergence, mean over rows and then over texts."),
    "sum": ("authors' sum (nats)", "The same, summed over all rows of all texts."),
    "relative_a_b": (
        "from the other (nats)",
        "Kullback-Leibler divergence of the head from the other; heads of different layers are not compared so.",
    ),
    "relative_b_a": (
        "of the other (nats)",
        "Kullback-Leibler divergence of the other head from the head; not the same, as it is not symmetric.",
    ),
}
"""Of the table of pairs: label and explanation."""

PAPER: Final = """
Clark et al. (2019), section 6 and Figure 6, for BERT-base over 1,000 Wikipedia segments of at most 128 tokens:

- All 144 heads in a plane, by multidimensional scaling of these distances, twice: coloured by the behaviours above, and
  by layer.
- Their picture also names heads by hand, for BERT-base alone, layer and head counted from 1: 5-4 coreference, 8-11
  determiners, 8-10 direct objects, 9-6 objects of prepositions, 4-10 passive auxiliaries, 7-6 possessives. These are
  no rule that could be applied to another checkpoint, so nothing here is labelled so.

Distances of the paper are sums over its texts and cannot be held against the means here.
"""


def summary(
    closest: tuple[str, str, float] | None, within: float, between: float, unit: str, n_texts: int, n_heads: int
) -> str:
    """The closest pair, and whether heads of one layer are alike.

    Args:
        closest: names of two heads and their distance.
        within, between: mean distance of heads of one layer, and of different ones; NaN where there are none.
        unit: of the distances.
        n_texts, n_heads: what was compared.
    """
    said = [f"{counted(n_heads, 'head')} compared on {counted(n_texts, 'text')}."]
    if closest is not None:
        said.append(f"**{closest[0]} and {closest[1]}** attend most alike ({closest[2]:.3g} {unit}).")
    if within == within and between == between:
        closer = within < between
        said.append(
            f"Heads of one layer are {'closer to' if closer else 'no closer to'} each other than heads of different "
            f"layers: {within:.3g} against {between:.3g} {unit} on average."
        )
    return " ".join(said)


def groups_of(sizes: Sequence[int], cut: float, unit: str) -> str:
    """What the tree falls into where it is cut."""
    several = [size for size in sizes if size > 1]
    n_alone = len(sizes) - len(several)
    if not several:
        return f"No two heads are within {cut:.3g} {unit} of each other, half the mean distance of all."
    alone = f"; {counted(n_alone, 'head')} {'stands' if n_alone == 1 else 'stand'} alone" if n_alone else ""
    return (
        f"Cut at {cut:.3g} {unit}, half the mean distance of all, the tree falls into {counted(len(several), 'group')} "
        f"of heads (the largest has {several[0]}){alone}; within a group, parts are on average closer than that."
    )


def nearest(head: str, others: Sequence[tuple[str, float]], unit: str) -> str:
    """The heads that attend most like one."""
    named = ", ".join(f"{name} ({distance:.3g})" for name, distance in others)
    return f"Attending most like {head} ({unit}, 0 = alike): {named}."


def mean_over(n_texts: int) -> str:
    """The unit of distances where no setting of the page stands beside them."""
    return f"nats, mean over the rows of {counted(n_texts, 'text')}"


def of_texts(n_compared: int, n_all: int) -> str:
    """That not all texts were compared."""
    return f"{n_compared:,} of {counted(n_all, 'text')} compared, at even steps."


def closest_rows(n_shown: int, n_all: int) -> str:
    """That the table on the page is not the whole."""
    return f"The {n_shown:,} closest of {n_all:,} pairs; the files hold all."
