"""Sentences of the page Importance."""

from dataclasses import dataclass
from typing import Final

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.importance.backups import HIDDEN, MOST_IN_SET, PAIRS_PER_HEAD, SAME
from attention_sieve.core.importance.effects import CORPORA
from attention_sieve.core.importance.gates.settings import STRETCH, TEMPERATURE
from attention_sieve.core.importance.measures import BATCH_SIZE
from attention_sieve.core.importance.metrics import SMALLER_IS_BETTER, ScoreName
from attention_sieve.core.importance.pruning.curves import RANDOM_ORDERS, STEPS
from attention_sieve.core.importance.removal.exports import TOLERANCE
from attention_sieve.core.importance.unreliable import LEAST_DAMAGE, LOOKED_AT, NOTHING
from attention_sieve.core.importance.verdicts import DRAWN_SHARE, LEAST_OF_ONE_SIZE, LEAST_UNITS, RESAMPLES
from attention_sieve.core.passes.metric import MASKED_SHARE
from attention_sieve.core.statistics.by_role import SHUFFLES
from attention_sieve.dashboard.figures import figure
from attention_sieve.dashboard.figures.figure import counted, percent

NUMBERS: Final = {
    "resamples": f"{RESAMPLES:,}",
    "smallest_p": f"{2 / (RESAMPLES + 1):g}",
    "least": str(LEAST_UNITS),
    "least_of_one_size": str(LEAST_OF_ONE_SIZE),
    "drawn": percent(DRAWN_SHARE, 0),
    "corpora": f"{CORPORA:,}",
    "masked": percent(MASKED_SHARE),
    "step": percent(1 / STEPS),
    "batch": str(BATCH_SIZE),
    "shuffles": f"{SHUFFLES:,}",
    "random_orders": str(RANDOM_ORDERS),
    "tolerance": f"{TOLERANCE:g}",
    "nothing": percent(NOTHING),
    "clear": percent(LEAST_DAMAGE),
    "looked_at": str(LOOKED_AT),
    "same": f"{SAME:g}",
    "pairs": str(PAIRS_PER_HEAD),
    "most_in_set": str(MOST_IN_SET),
    "hidden": percent(HIDDEN),
    "temperature": f"{TEMPERATURE:g}",
    "stretch": f"{STRETCH[0]:g} to {STRETCH[1]:g}",
}
"""Numbers in `method.md`."""
SEE: Final = (
    "Each cell is an attention head. Its colour says how much worse the model gets when this head alone is switched "
    "off or, for the text vector, how much that changes. What a head matters for is up to you. Click a cell to choose "
    "its head."
)
PAPER_TITLE: Final = "What the papers found"

METRIC: Final = "Heads matter for"
OUTPUT: Final = "the text vector"
LM: Final = "predicted words"
LABELS: Final = "labelled texts"
METRIC_HELP: Final = (
    "Importance is always for something. **The text vector**: how far the vector of a text (the mean of its last "
    "hidden states) turns without the head, as 1 - cosine; needs no labels and no training. **Predicted words**: "
    "the loss of the checkpoint's language-model head. **Labelled texts**: how well a fine-tuned classifier does on "
    "a table that you upload."
)

FURTHER: Final = {"resamples": "Resamples"}
"""Labels of the settings that are folded away."""
REPLACE: Final = "A switched-off head outputs"
ZERO: Final = "nothing"
MEAN: Final = "its mean"
REPLACE_HELP: Final = (
    "What replaces the output of a switched-off head: zeros, or its mean output over all tokens of the texts. The "
    "mean removes what the head says about a given text, but keeps what later layers always receive from it."
)
TABLE_OF_LABELS: Final = "Labelled texts"
SCORE: Final = "Score"
SCORES: Final[dict[ScoreName, str]] = {
    "accuracy": "accuracy",
    "loss": "loss",
    "matthews": "Matthews correlation",
    "f1": "F1",
    "pearson": "Pearson correlation",
}
SCORE_NAMES: Final[dict[ScoreName, str]] = {**SCORES, "change": "change of the text vector"}

MEDIAN: Final = "the median head"
EACH: Final = "Each head"
TABLE: Final = "All heads in a table"
HURTS: Final = "worse without"
HELPS: Final = "better without"
DIFFERS: Final = "the score differs (corrected over all heads)"
INTERVAL: Final = "95% interval of the change"
P_ADJUSTED: Final = "p, corrected"
FEW_TEXTS: Final = 30
FEW: Final = "These are few texts; with others like them, another head may come first."

KEEP_ONE: Final = "Keep one head a layer"
KEEP_ONE_HELP: Final = (
    "For each layer in turn, all its heads but one are switched off. The head is chosen on one half of the texts "
    "and judged on the other, and the other way round. The first time, this takes as long as switching off every "
    "head in turn."
)
MICHEL_1: Final = "Corresponds to Figure 1 of Michel et al. (2019)."
MICHEL_T1: Final = "Corresponds to Table 1 of Michel et al. (2019)."
MICHEL_T2: Final = "Corresponds to Tables 2 and 3 of Michel et al. (2019)."


def without_words(checkpoint: str) -> str:
    return (
        f"{METRIC_HELP}\n\n*{LM[0].upper()}{LM[1:]}* is not offered: {checkpoint} was saved without a "
        "language-model head, so it predicts none. Checkpoints for masked language modelling and decoders have one."
    )


def interval(low: float, high: float, number: str, of: str = "") -> str:
    return "" if low != low else f" (95% interval{of} {figure.interval(low, high, number)})"


def damage_title(name: str) -> str:
    return name if name == SCORE_NAMES["change"] else f"loss of {name}" if name != "loss" else "rise of the loss"


def high_end(name: str) -> str:
    """What the high end of the map's scale means; a change of the text vector is never better or worse."""
    return "" if name == SCORE_NAMES["change"] else HURTS


def without_head(name: str) -> str:
    return f"{name if name == SCORE_NAMES['change'] else 'how much worse'} without the head"


def without(name: str) -> str:
    return f"{name} without it"


@dataclass(frozen=True, kw_only=True)
class WorstHead:
    """The head without which a score is worst."""

    layer: int
    head: int
    damage: float
    low: float
    high: float
    """Ends of the interval of the change of the score; NaN without one."""


def finding(name: ScoreName, worst_head: WorstHead, of_layer: float | None) -> str:
    """Without which head the score is worst, and how that compares.

    Args:
        of_layer: damage with all heads of its layer off; None where that is not known.
    """
    if not worst_head.damage > 0:
        return f"Without no head alone is the {SCORE_NAMES[name]} worse."
    changes = "text vector changes" if name == "change" else f"{SCORE_NAMES[name]} {worse(name)}"
    start = f"Without **{head_name(worst_head.layer, worst_head.head)}** the {changes} most"
    if of_layer is None or not of_layer > 0:
        return f"{start}."
    share = worst_head.damage / of_layer
    times = percent(share, 0) if share < 1 else f"{share:.1f} times"
    return f"{start}: {times} as much as without {all_of_layer(worst_head.layer)}."


def all_of_layer(layer: int) -> str:
    return f"all of layer {layer}"


def worse(name: ScoreName) -> str:
    return "rises" if name in SMALLER_IS_BETTER else "falls"


def numbers(name: ScoreName, full: float, worst_head: WorstHead, n_texts: int) -> str:
    """On what the finding rests.

    Args:
        full: the score with all heads on.
    """
    start, of, number = "By ", "", ".2g"
    if name != "change":
        start, of, number = f"With all heads on it is {full:.3g}; without, {worse(name)} by ", " of the change", "+.2g"
    by = f"{abs(worst_head.damage):.2g}{interval(worst_head.low, worst_head.high, number, of)}"
    return f"{start}{by}, over {counted(n_texts, 'text')}."


def most_changed(change: float) -> str:
    return f"Most on this text: {change:.2g}"


def significant(worse: int, better: int, n_tested: int, alpha: float) -> str:
    return (
        f"At level {alpha:g}, corrected over all of them, the score gets worse without {worse} of {n_tested} tested "
        f"heads and better without {better}."
    )


def kept(name: str, full: float, n_same: int, n_tested: int) -> str:
    """The result with only one head on in each layer; n_same of the n_tested layers do not differ significantly."""
    start = f"With all heads on the {name} is {full:.3g}."
    if not n_tested:
        return start
    return (
        f"{start} In {n_same} of {counted(n_tested, 'layer')} one head alone does not differ significantly from all "
        "of them, which does not show that it does as well."
    )
