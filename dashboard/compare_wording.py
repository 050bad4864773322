"""Every sentence of the page Compare, once."""

import math
from typing import Final

from dashboard.figures.figure import counted

SEE: Final = (
    "What changes from one checkpoint to another, head by head, on the same texts. The reference (a) is the checkpoint "
    "of the sidebar; every difference is **b − a**, the compared checkpoint minus the reference."
)
WITH: Final = "Compare with (b)"
WITH_HELP: Final = (
    "One or more checkpoints: names of those that were fine-tuned here, with their saved steps, folders, or hub ids. "
    "Those of one training run can be chosen in the order of their steps."
)
WITH_NONE: Final = "choose or type a checkpoint"
FOCUS: Final = "Compared checkpoint"
FOCUS_HELP: Final = "All that follows compares this one with the reference. Drag along to follow a training run."
ALL_STEPS_HELP: Final = "Choose every saved step of this run, in order."
NOTHING: Final = (
    "Choose a second checkpoint above. There is none of your own yet: make the sample pair (the bundled checkpoint, "
    "and the same fine-tuned on 2,000 movie reviews, about 3 minutes) or fine-tune on texts of your own."
)
NOTHING_CHOSEN: Final = "Choose a second checkpoint above, such as one that was fine-tuned here:"
MAKE_SAMPLE: Final = "Make the sample pair"
MAKE_SAMPLE_HELP: Final = (
    "Fetches 10,605 movie review snippets with human ratings through pip (2.5 MB, package vaderSentiment 2.5, MIT), "
    "and fine-tunes the bundled checkpoint on 2,000 of them. `make sample-checkpoint` does the same."
)
FINETUNE: Final = "Fine-tune on my own texts"
ALL_ON: Final = "Heads that are switched off on the other pages are on here."
SAME: Final = "This is the reference itself, so nothing differs."
BOTH_SIDES: Final = "Roles under each"
CHANGES: Final = "Roles gained, kept and lost"
DIFFERENCES: Final = "Score differences"
SIGN: Final = "b − a: above 0 the compared checkpoint scores higher."
OUTLINE: Final = "outlined: the difference is significant"
MORE: Final = "higher under b"
LESS: Final = "lower under b"
ROLE_SHIFT: Final = "Role whose score is followed"
DIVERGENCE: Final = "How far apart each head looks"
DIVERGENCE_TITLE: Final = "Jensen-Shannon divergence, in nats"
DIVERGENCE_NOTE: Final = (
    "Mean over the texts and their queries; 0 for equal attention, at most ln 2 = 0.693 where two rows share no key."
)
TEXT: Final = "The same head in both"
TEXT_SEE: Final = (
    "Point at a token: the other views follow. The third view is the difference: red where b looks more, blue where it "
    "looks less."
)
ARCS_HINT: Final = "Click a head in any grid above to see its arcs under both checkpoints."
MORE_ATTENTION: Final = "more attention under b"
LESS_ATTENTION: Final = "less attention under b"
ON_WORDS: Final = (
    "This text has not the same tokens under both, so attention is shown between words: to a word the sum over "
    "its pieces, from a word their mean. All special tokens together are the word [special]."
)
WINDOWS_DIFFER: Final = (
    "This text is drawn in a window, and has not the same tokens under both. Type a shorter one to see both."
)
OTHER_KIND: Final = "The two checkpoints attend to different texts here, so their arcs cannot be laid side by side."
PREDICTIONS: Final = "What each says of this text"
NO_CLASSES: Final = "no classifier"
TRANSITIONS: Final = (
    "Each head goes from the set of roles it holds under the reference to the set it holds under b. Those that change "
    "stand first."
)
MCNEMAR: Final = (
    "For each role, how many heads hold it before and after. p is McNemar's exact test: are heads as likely to gain as "
    "to lose the role? Heads of one model are not independent, so take it as a yardstick."
)
OVER_STEPS: Final = "Over the training run"
OVER_CHECKPOINTS: Final = "Over the checkpoints"
NO_SCORES: Final = "None of these roles applies to these texts under both checkpoints."
DEPTH: Final = "Shares by relative depth: 0 is the layer next to the input, 1 the last."

METHOD: Final = r"""
All checkpoints read the same texts; a text that is too long for one is left out of all. For each role and head,
$d_s$ is the text's score under b minus its score under a.

- **Paired t-test** of $\bar d = 0$, two-sided, over the texts that have a score under both; p-values are corrected
  over all heads and roles as chosen in the sidebar (Benjamini-Hochberg by default). A head is outlined where the
  corrected p is below alpha. **Wilcoxon's signed-rank test** stands beside it, uncorrected: it asks for no normal
  distribution.
- **Effect**: Cohen's $d = \bar d / s_d$. The interval of $\bar d$ covers $1 - \alpha$.
- Scores that differ by less than the rounding of a pass (1e-5 of 1 + their size in float32) count as equal. Constant
  differences have no test: 0 does not differ, anything else does.
- **Roles** are decided for each checkpoint alone, by the test of the page Roles at the same tau.
- **Jensen-Shannon divergence** of a head: for each query, with $m = (p + q) / 2$ over the keys,
  $\tfrac12 \sum p \ln \tfrac{p}{m} + \tfrac12 \sum q \ln \tfrac{q}{m}$ in nats, 0 to $\ln 2$; mean over queries, then
  texts. It is added up while both passes go through the layers in step; no map is stored.
- Under a change of nothing, about alpha of the heads would still be significant if nothing were corrected.
"""
PAPER: Final = (
    "Pande et al. (2021) compare pre-trained and fine-tuned BERT in words: as part of fine-tuning the later layers "
    "change most, and attention to [SEP] is reduced and distributed to the other tokens. No numbers are published with "
    "it, and their checkpoints are not these."
)


def reference(name: str) -> str:
    """Which checkpoint is the reference."""
    return f"Reference (a): **{name}**, chosen in the sidebar."


def all_steps(name: str, n_steps: int) -> str:
    """The button that adds a whole training run."""
    return f"{counted(n_steps, 'saved step')} of {name}"


def summary(n_changed: int, n_heads: int, tau: float, busiest: tuple[int, int, int] | None) -> str:
    """How many heads changed a role, and where."""
    where = f"; {layers(*busiest)}" if busiest is not None and n_changed else ""
    return f"**{n_changed:,} of {counted(n_heads, 'head')}** changed a role at tau {tau:g}{where}."


def n_differ(n_differ: int, n_tested: int, alpha: float, correction: str, effect: float | None) -> str:
    """How many scores differ by more than noise, and by how much."""
    size = "" if effect is None else f", with a median effect of {effect:.1f} standard deviations"
    return (
        f"**{n_differ:,}** of {n_tested:,} scores (one for each head and role) differ by more than noise at alpha "
        f"{alpha:g} (correction: {correction}){size}."
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
    return f"Attention is {mean:.3f} nats apart on average (Jensen-Shannon, at most 0.693), most in layer {layer}."


def other_shape(a: tuple[int, int], b: tuple[int, int]) -> str:
    """Why there are no head-by-head views."""
    return (
        f"The reference has {a[0]} layers x {a[1]} heads and the compared checkpoint {b[0]} x {b[1]}, so heads cannot "
        "be laid on heads. What can be compared is below: shares of heads by relative depth, and overall."
    )


def other_tokens(n_texts: int, n_all: int) -> str:
    """Texts whose tokens differ."""
    return (
        f"The tokenizers cut {n_texts:,} of {counted(n_all, 'text')} at different places. Scores compare as they are, "
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
