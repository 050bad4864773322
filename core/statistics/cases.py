"""Evaluates heads on cases that each head gets right or wrong.

Accuracies have confidence intervals and tests against baselines, corrected for the number of heads; the best head is
selected on one half of the texts and evaluated on the other. Units are the documents that cases come from, or the texts
where documents are unknown: words of one sentence depend on each other.

A control for heads that join two words is the attention that other words of the text give to the same word. A head that
looks at a name from everywhere also looks at it from the pronouns that stand for it, and its accuracy does not reveal
the difference. A head that follows a relation gives the right word more attention from the word that the relation joins
to it than from other words. The other words are compared over the same cases, so that both sides have the same keys.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.statistics.means import (
    above_zero,
    design_effect,
    document_means,
    document_sums,
    ratio,
    share_interval,
)

LEAST_TIMES: Final = 2
"""How many times as much attention as in its control, from other words or at the same distance, a head has to give to
beat it; at least half of what it gives is then beyond what the control explains. With many texts, even a head that
looks from everywhere, or always at one distance, can give significantly, if only slightly, more. A difference in
attention would fail heads that give little, as all do in long texts (`benchmarks.findings.claim_tests`)."""
N_HALVES: Final = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Joined:
    """Attention of every head to the right word of each case; NaN in both arrays where a case cannot be compared."""

    to_right: Float[np.ndarray, "*head case"]
    """From the word that should look at it, 0 to 1."""
    from_others: Float[np.ndarray, "*head case"]
    """Mean over the other words of the text that can look at it."""
    unit: Int[np.ndarray, " case"]
    """Number of the case's document, or of its text if no document is known."""

    def of(self, cases: Bool[np.ndarray, " case"] | Int[np.ndarray, " some"]) -> "Joined":
        """The same for some of the cases."""
        return Joined(
            to_right=self.to_right[..., cases], from_others=self.from_others[..., cases], unit=self.unit[cases]
        )


@dataclass(frozen=True, eq=False)
class HeadCases:
    """Cases that each head gets right or wrong, and baselines on the same cases."""

    right: Bool[np.ndarray, "*head case"]
    baselines: Bool[np.ndarray, "baseline case"]
    text: Int[np.ndarray, " case"]
    """Number of the text of each case, or of its document if documents are known: the unit of intervals and tests. Even
    numbers are one half, odd numbers the other."""
    by_document: bool = False
    """Whether `text` numbers documents."""
    absent: Bool[np.ndarray, "*head"] | None = None
    """Heads that are not there, which have no accuracy (NaN) and do not count in the correction; None for none. They
    are right in no case."""
    joined: Joined | None = None
    """Attention to the right word of each case; None if it is not known, and there is no such control."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyMatched:
    """Whether heads give the right word more attention from the word that should look at it than from others."""

    n_cases: Int[np.ndarray, "*head"]
    """Cases that can be compared; fewer than all where the word cannot look at the right one, or no other word can."""
    to_right: Float[np.ndarray, "*head"]
    from_others: Float[np.ndarray, "*head"]
    """Means over these cases; NaN without any."""
    p_values: Float[np.ndarray, "*head"]
    """One-sided, of "the first is not above the second", paired by case with documents (or texts) as units, times the
    number of heads (Bonferroni); NaN with fewer than two units."""
    beats: Bool[np.ndarray, "*head"]
    """Whether the p-value is below the level, and the first at least LEAST_TIMES times the second."""

    @property
    def times(self) -> Float[np.ndarray, "*head"]:
        """How many times as much attention the right word gets from the word that should look at it as from others."""
        return ratio(self.to_right, self.from_others)

    @property
    def from_everywhere(self) -> Bool[np.ndarray, "*head"]:
        """Heads that look there from everywhere: the right word gets less than LEAST_TIMES times as much.

        For the other heads that do not beat the control, there are too few cases for a verdict.
        """
        return np.asarray(self.to_right < LEAST_TIMES * self.from_others)

    def at(self, head: tuple[int, ...]) -> "KeyMatched":
        """The same of one head, by its index."""
        return KeyMatched(**{field.name: np.asarray(getattr(self, field.name)[head]) for field in fields(self)})

    def columns(self) -> dict[str, np.ndarray]:
        """Columns of files, one row per head: compared (cases), attention_to_right (word), attention_of_others (to
        the same word), times_others (their ratio), p_others, beats_others and from_everywhere."""
        values = {
            "compared": self.n_cases,
            "attention_to_right": self.to_right,
            "attention_of_others": self.from_others,
            "times_others": self.times,
            "p_others": self.p_values,
            "beats_others": self.beats,
            "from_everywhere": self.from_everywhere,
        }
        return {name: column.ravel() for name, column in values.items()}


def key_matched(joined: Joined, alpha: float, n_heads: int = 1) -> KeyMatched:
    """Compare the attention to the right word with what other words give to the same word. p-values are multiplied by
    the number of heads that were searched."""
    shape, n_all = joined.to_right.shape[:-1], joined.to_right.shape[-1]
    to_right, from_others = (part.reshape(math.prod(shape), n_all) for part in (joined.to_right, joined.from_others))
    comparable = np.isfinite(to_right) & np.isfinite(from_others)
    means = np.full((3, len(to_right)), np.nan)
    # Heads of one layer, or of all layers without windows, can be compared on the same cases.
    _, first, row = np.unique(np.packbits(comparable, axis=-1), axis=0, return_index=True, return_inverse=True)
    for number, one in enumerate(first):
        heads = np.flatnonzero(row.ravel() == number) if len(first) > 1 else slice(None)
        cases = np.flatnonzero(comparable[one])
        if len(cases):
            right, others, unit = to_right[heads][:, cases], from_others[heads][:, cases], joined.unit[cases]
            n_cases = np.unique(unit, return_counts=True)[1]
            differences = document_means(document_sums(right - others, unit), n_cases)
            p_values = np.minimum(1, n_heads * above_zero(differences))
            means[:, heads] = right.mean(axis=-1, dtype=float), others.mean(axis=-1, dtype=float), p_values
    right_means, other_means, p = (np.asarray(values) for values in means.reshape(3, *shape))
    return KeyMatched(
        n_cases=comparable.sum(axis=-1).reshape(shape),
        to_right=right_means,
        from_others=other_means,
        p_values=p,
        beats=np.asarray((p < alpha) & (right_means >= LEAST_TIMES * other_means)),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOut:
    """The best head of each half of the texts, evaluated on the other half; both results pooled.

    An unbiased accuracy of "the best head". The accuracy of the best head on all cases is biased, because the best of
    many heads can look good by chance.
    """

    heads: tuple[tuple[int, ...], tuple[int, ...]]
    """Index of the best head on the texts with even numbers, and of the best head on those with odd numbers."""
    accuracy: Float[np.ndarray, " group"]
    """Accuracy of the first head on the odd texts and of the second on the even ones, pooled; NaN without cases."""
    low: Float[np.ndarray, " group"]
    high: Float[np.ndarray, " group"]
    """Interval as in Judgement."""
    p_values: Float[np.ndarray, "baseline group"]
    """As in Judgement, but uncorrected, because no head is tested on the cases that it was selected on."""
    design_effect: Float[np.ndarray, " group"]
    """As in Judgement."""
    key_matched: tuple[KeyMatched, ...]
    """As in Judgement, but uncorrected."""

    def right(self, cases: HeadCases) -> Bool[np.ndarray, " case"]:
        """Whether the head that was not selected on each case is right in it."""
        return _on_other_half(cases.right, cases.text % N_HALVES, self.heads)


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """Accuracy of every head on groups of cases."""

    n_cases: Int[np.ndarray, " group"]
    accuracy: Float[np.ndarray, "group *head"]
    """Share of the cases that a head gets right, 0 to 1; NaN for a group without cases."""
    low: Float[np.ndarray, "group *head"]
    high: Float[np.ndarray, "group *head"]
    """`attention_sieve.core.statistics.means.share_interval`; NaN with fewer than two units."""
    baselines: Float[np.ndarray, "baseline group"]
    """Share of the cases that each baseline gets right."""
    p_values: Float[np.ndarray, "baseline group *head"]
    """p-values of `attention_sieve.core.statistics.means.above_zero` for the difference to the baseline, times the
    number of heads (Bonferroni): valid for any dependence between heads, and for any head selected afterwards, such as
    the best; NaN with fewer than two units."""
    n_documents: Int[np.ndarray, " group"] | None
    """Documents with cases; None where documents are unknown."""
    design_effect: Float[np.ndarray, "group *head"]
    """Variance of the accuracy over that with independent cases; NaN with fewer than two units."""
    key_matched: tuple[KeyMatched, ...]
    """Of each group, the attention of every head to the right word compared with that from other words, corrected for
    the number of heads; empty if it is not known."""
    best: tuple[int, ...]
    """Index of the head with the highest accuracy on all cases, among those that beat the key-matched control on them;
    among all if none does. A baseline is the same for all heads, so no other head can beat one that this head does
    not."""
    held_out: HeldOut | None
    """None if one half of the texts has no cases."""

    @property
    def best_key_matched(self) -> KeyMatched:
        """The control of the heads that are best on each half, on the other half and over the first group; of `best`
        if one half has no cases. It must be known."""
        return self.key_matched[0].at(self.best) if self.held_out is None else self.held_out.key_matched[0]


def judge(cases: HeadCases, alpha: float, groups: Bool[np.ndarray, "group case"] | None = None) -> Judgement:
    """Evaluate all heads on the same cases, by group. Intervals cover 1 - alpha. Without groups all cases are one; the
    best heads are selected on all cases."""
    right, text, joined = cases.right, cases.text, cases.joined
    if groups is None:
        groups = np.ones((1, len(text)), bool)
    absent = np.zeros(right.shape[:-1], bool) if cases.absent is None else cases.absent
    n_cases, n_heads = groups.sum(axis=1), int((~absent).sum())

    def candidates(some: Bool[np.ndarray, " case"]) -> Bool[np.ndarray, "*head"]:
        beats = absent if joined is None else key_matched(joined.of(some), alpha, n_heads).beats
        return np.asarray(beats if beats.any() else ~absent)

    on_halves = best_on_halves(cases, candidates)
    judged = (np.where(absent, np.nan, part) for part in _accuracies(cases, alpha, groups))
    accuracy, low, high, effect, p_values = judged
    return Judgement(
        n_cases=n_cases,
        accuracy=accuracy,
        low=low,
        high=high,
        baselines=ratio(cases.baselines @ groups.T.astype(float), np.tile(n_cases, (len(cases.baselines), 1))),
        p_values=np.minimum(1, n_heads * p_values),
        n_documents=np.array([len(np.unique(text[group])) for group in groups]) if cases.by_document else None,
        design_effect=effect,
        key_matched=_key_matched(joined, groups, alpha, n_heads),
        best=best_head(right, candidates(np.ones(len(text), bool))),
        held_out=None if on_halves is None else _held_out(*on_halves, alpha, groups),
    )


def _held_out(
    heads: tuple[tuple[int, ...], tuple[int, ...]],
    cases: HeadCases,
    alpha: float,
    groups: Bool[np.ndarray, "group case"],
) -> HeldOut:
    accuracy, low, high, effect, p_values = _accuracies(cases, alpha, groups)
    return HeldOut(
        heads=heads,
        accuracy=accuracy,
        low=low,
        high=high,
        p_values=p_values,
        design_effect=effect,
        key_matched=_key_matched(cases.joined, groups, alpha),
    )


def _key_matched(
    joined: Joined | None, groups: Bool[np.ndarray, "group case"], alpha: float, n_heads: int = 1
) -> tuple[KeyMatched, ...]:
    return () if joined is None else tuple(key_matched(joined.of(group), alpha, n_heads) for group in groups)


def _accuracies(cases: HeadCases, alpha: float, groups: Bool[np.ndarray, "group case"]) -> tuple[np.ndarray, ...]:
    """Accuracies [group *head], the ends of their intervals and their design effects, and p-values [baseline group
    *head], uncorrected."""
    parts = ((cases.right[..., group], cases.baselines[:, group], cases.text[group]) for group in groups)
    *shares, p_values = zip(*(_accuracy(*part, alpha) for part in parts), strict=True)
    return *map(np.stack, shares), np.stack(p_values, axis=1)


def _accuracy(
    right: Bool[np.ndarray, "*head case"],
    baselines: Bool[np.ndarray, "baseline case"],
    unit: Int[np.ndarray, " case"],
    alpha: float,
) -> tuple[np.ndarray, ...]:
    """Those of one group."""
    n_right, n_cases = document_sums(right, unit), np.unique(unit, return_counts=True)[1]
    shares = document_means(n_right, n_cases)
    p_values = [above_zero(document_means(n_right - document_sums(baseline, unit), n_cases)) for baseline in baselines]
    return shares.mean, *share_interval(shares, alpha), design_effect(shares), np.stack(p_values)


def beats_by_chance(
    right: Bool[np.ndarray, "*head case"], baseline: Bool[np.ndarray, " case"]
) -> Float[np.ndarray, "*head"]:
    """McNemar's exact test, one-sided, of "the head is not better than the baseline"; p-values, NaN without cases.

    Under the null hypothesis, each case that only one of the two gets right is equally likely to be the head's. Not
    corrected for multiple heads; cases are treated as independent."""
    from scipy.stats import binom  # takes half a second

    if not len(baseline):
        return np.full(right.shape[:-1], np.nan)
    only_head, only_baseline = (right & ~baseline).sum(axis=-1), (~right & baseline).sum(axis=-1)
    return np.asarray(binom.sf(only_head - 1, only_head + only_baseline, 0.5))


def best_head(
    right: Bool[np.ndarray, "*head case"], candidates: Bool[np.ndarray, "*head"] | None = None
) -> tuple[int, ...]:
    """Index of the head that is right most often; the first in case of a tie. Of the candidates, or of all heads."""
    n_right = right.sum(axis=-1)
    if candidates is not None:
        n_right = np.where(candidates, n_right, -1)
    return tuple(int(index) for index in np.unravel_index(n_right.argmax(), n_right.shape))


def best_on_halves(
    cases: HeadCases, candidates: Callable[[Bool[np.ndarray, " case"]], Bool[np.ndarray, "*head"]] | None = None
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], HeadCases] | None:
    """The best head of each half of the texts on the other half. Candidates are judged by some cases alone; None for
    all heads.

    Returns: the index of the best head on the first half, and on the second; and the cases, in each of which the best
        head of the other half stands for all heads. None if one half has no cases.
    """
    half = cases.text % N_HALVES
    if len(np.unique(half)) < N_HALVES:
        return None
    first, second = (
        best_head(cases.right[..., some], None if candidates is None else candidates(some))
        for some in (half == number for number in range(N_HALVES))
    )

    heads, joined = (first, second), cases.joined
    if joined is not None:
        to_right, from_others = (_on_other_half(part, half, heads) for part in (joined.to_right, joined.from_others))
        joined = replace(joined, to_right=to_right, from_others=from_others)
    return heads, replace(cases, right=_on_other_half(cases.right, half, heads), absent=None, joined=joined)


def _on_other_half(
    values: np.ndarray, half: Int[np.ndarray, " case"], heads: tuple[tuple[int, ...], tuple[int, ...]]
) -> np.ndarray:
    """In each case the value of the head that was selected on the other half."""
    return np.where(half == 0, values[heads[1]], values[heads[0]])
