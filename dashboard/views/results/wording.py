"""Sentences of the pages on results folders."""

from collections.abc import Mapping, Sequence
from typing import Final

from attention_sieve.core.comparison.sizes import DifferenceSizes
from attention_sieve.core.roles.hypotheses import FEW, FEWEST
from attention_sieve.core.running import Progress
from attention_sieve.core.statistics.series import TAUS
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.wording import CHOSEN_BEFORE, duration

PART: Final = "Texts"
PART_HELP: Final = "All texts of the corpus, or those of one data set, one language, or one length."
DECIDED_BY: Final = "Decided by"
TEST: Final = "t-test"
EVIDENCE: Final = "evidence"
DECIDED_HELP: Final = (
    f"The t-test is valid {CHOSEN_BEFORE}. Evidence stays valid however often texts are added; it is stored for tau "
    f"{', '.join(f'{tau:g}' for tau in TAUS)}, and between two of these the smaller evidence, that of the higher tau, "
    "counts."
)
FROM_STATISTICS: Final = "Drawn from the statistics of the corpus; no text is read, and no model runs."
SCORED_WITH: Final = (
    "The results were made on another scale than the one in the test settings; the scale of the results is used: "
)
COMPARED: Final = "Compared with"
COMPARED_HELP: Final = "Results of another checkpoint on the same texts."
NO_OTHER: Final = (
    "To compare, choose a second results folder: that of another checkpoint on the same texts, in shards of the "
    "same size."
)
NOT_PAIRED: Final = (
    "The differences have not been computed text by text yet, so they cannot be tested. Compute them once; this "
    "runs no model:"
)
NOT_PAIRED_HERE: Final = "The differences have not been computed text by text, so they cannot be tested."
PAIRED_OVER_ALL: Final = "Differences are tested over all texts only, so nothing is marked here."
HIGHEST: Final = "Highest texts"
READ: Final = "Read the highest texts"
STOPPED: Final = "Stopped. The texts so far are those of the shards that were read."
PARTS: Final = "Side by side"
NO_PARTS: Final = "The corpus has one part only."
N_HIGHEST: Final = 20


def running(name: str, progress: Progress) -> str:
    """How far the run of a corpus is."""
    if progress.message:
        n_all = f" of {progress.n_all:,}" if progress.n_all else ""
        return f"{name}: {progress.message[:1].lower()}{progress.message[1:]}, {progress.n_done:,}{n_all} so far."
    time_left = "" if progress.seconds_left is None else f", {duration(progress.seconds_left)} left"
    return f"{name}: {progress.step:,} of {counted(progress.steps, 'shard')} done{time_left}."


def corpus_line(name: str, checkpoint: str, n_texts: int, tokens: tuple[int, int], left_out: Sequence[str]) -> str:
    """The corpus in a line; the names must already be escaped."""
    out = f" Left out: {', '.join(left_out)}." if left_out else ""
    return (
        f"**{name}**: {counted(n_texts, 'text')} of {tokens[0]:,} to {tokens[1]:,} tokens under **{checkpoint}**.{out}"
    )


def few_in_parts(n_texts: Mapping[str, int]) -> str:
    parts = ", ".join(f"{title} ({n:,})" for title, n in n_texts.items())
    return (
        f"With fewer than {FEW} texts, a map of roles is unreliable, and with fewer than {FEWEST} mostly noise: "
        f"{parts}."
    )


def reading_shard(number: int, n_shards: int) -> str:
    return f"Reading shard {number:,} of {n_shards:,}"


def differing(sizes: DifferenceSizes, alpha: float) -> str:
    return f"{sizes.sentence} (paired t-test over the same texts, corrected, alpha {alpha:g})."
