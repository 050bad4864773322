"""Sentences about whether heads of a decoder copy."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.attention.settings import Head, head_names
from attention_sieve.core.copying.finding import CopyFinding
from attention_sieve.core.copying.published import Detector
from attention_sieve.core.copying.writes import Way
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts

TITLE: Final = "Looks, writes, matters"
SEE: Final = (
    "Where a head looks is not what it writes, and neither says whether the model needs it. Each head of a decoder by "
    "three tests: does it **look** at the tokens that come after earlier copies, does it **write** the token that it "
    "looks at, and does it **matter** for the loss on second copies?"
)
DETECTORS: Final[dict[str, Detector]] = {
    "share above chance": "share",
    "mass of attention (Crosbie and Shutova)": "mass",
    "mean over entries (Olsson)": "entries",
    "“mul” (TransformerLens)": "mul",
    "“abs” (TransformerLens)": "abs",
    "stripe (ARENA)": "stripe",
}
WAYS: Final[dict[str, Way]] = {"each token alone": "value", "what it wrote (Olsson)": "output"}
WAY_HELP: Final = (
    "Each token alone: what the head would write if all of its attention went to one token, for each of 25 tokens. "
    "What it wrote: its output as it is, for the token of most attention; where it looks is then part of the score."
)
ABLATE_HELP: Final = (
    "The third test: the loss on tokens that complete a pair of tokens for the second time, with and without each "
    "head. This takes a pass for every head, but only once: the results are kept."
)
FURTHER: Final = {"times": "Writes, from (times)", "rise": "Matters, from (nats)", "resamples": "Resamples"}
"""Labels of further settings."""
NONE: Final = "none"
OVERLAPS: Final = "Heads that look, write and matter"
NO_SECOND_COPY: Final = (
    "No text completes a pair of tokens for the second time, so no head can matter for that. Choose probe texts."
)
NOTE: Final = (
    "The sign of the OV circuit (*ov_sign*) needs no text: the sum of the eigenvalues of W_E OV W_U over the sum of "
    "their moduli, 1 for a head that copies whatever it looks at, −1 for one that suppresses it."
)


def scatter(name: str) -> ScatterTexts:
    return ScatterTexts(
        title="What heads look at and write",
        x="looks (mean score)",
        y="writes (copying score)",
        reading=("A dot is a head. Right: it looks at what is to be copied. Up: it raises what it looks at.",),
        description=f"Scores of looking against scores of writing, for each head of {name}.",
    )


def summary(finding: CopyFinding) -> str:
    settings, n_heads = finding.settings, int(finding.present.sum())
    n = {name: int(holds.sum()) for name, holds in finding.columns.items()}
    parts = [f"**{n['looks']:,}** look (at least {settings.least:g})"]
    if "writes" in n:
        parts.append(
            f"**{n['writes']:,}** write (raise the token looked at {settings.times:g} times as much as others)"
        )
    if "matters" in n:
        parts.append(f"**{n['matters']:,}** matter (the loss rises by {settings.rise:g} nats or more)")
    in_all = finding.combinations.get(frozenset(n), 0)
    both = "all three" if len(n) == 3 else "both"
    chance = f"{both}: **{in_all:,}**, by chance {finding.expected_in_all:.1f}." if len(n) > 1 else ""
    effects = finding.effects
    loss = (
        "" if effects is None else f" With all heads on, the loss on second copies is {effects.full:.2f} nats a token."
    )
    return f"Of {counted(n_heads, 'head')}, {'; '.join(parts)}; {chance}{loss}"


def region(names: Sequence[str], heads: Sequence[Head]) -> str:
    return f"{counted(len(heads), 'head')} ({' and '.join(names) or NONE}): {head_names(heads) or 'none'}"


def missing(name: str, reason: str) -> str:
    return f"Without the column {name}: {reason}"
