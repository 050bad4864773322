"""Grades what the program says of the roles of heads: claims about each, and the roles that it finds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Bool, Float
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import attention_sieve as sieve
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from benchmarks.planted.grades.asked import (
    LEAST_SHARE,
    LEAST_TIMES,
    PROBE_TEXTS,
    Asked,
    Measured,
    asked_of,
    measured,
    tokens_of,
    truth_of,
)
from benchmarks.planted.grades.records import Refusal, Statement, Verdict
from benchmarks.planted.grades.texts import N_TEXTS, Sample, plain_attention, plain_inputs, sample
from benchmarks.planted.truth import Head, Truth

VERDICTS: Final[dict[str, Verdict]] = {
    "holds": "yes",
    "holds (not tested against a ruler)": "yes",
    "only as a positional ruler": "no",
    "does not hold": "no",
    "no test": "not enough",
}
"""What each verdict of a claim says of the role."""
ROLES_ON: Final = ("repeats", "different words")
"""Kinds of texts over which roles are found."""


class Opened:
    """A planted model as the program and as plain transformers have it, with texts in its words."""

    def __init__(self, truth: Truth, checkpoint: Checkpoint, model: PreTrainedModel) -> None:
        self.truth, self.checkpoint, self.model = truth, checkpoint, model
        self._samples = dict[str, Sample]()
        self._attention = dict[tuple[str, tuple[Head, ...]], Float[np.ndarray, "layer text head query key"]]()

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Of both."""
        return self.checkpoint.tokenizer

    @property
    def is_causal(self) -> bool:
        """Whether tokens see earlier ones alone."""
        return self.truth.host != "bert"

    @cached_property
    def everywhere(self) -> str:
        """All heads, as a claim names them."""
        return ", ".join(f"{head.layer}-{head.head}" for head in self.truth.heads)

    def sample(self, name: str) -> Sample:
        """Texts of a kind."""
        if name not in self._samples:
            self._samples[name] = sample(name, self.tokenizer, self.truth.seed)
        return self._samples[name]

    def attention(self, name: str, off: tuple[Head, ...] = ()) -> Float[np.ndarray, "layer text head query key"]:
        """Of all heads by plain transformers, on texts of a kind."""
        if (name, off) not in self._attention:
            given = plain_inputs(self.tokenizer, self.sample(name).texts)
            self._attention[name, off] = plain_attention(self.model, given, off)
        return self._attention[name, off]

    def measured(self, asked: Asked, name: str, off: tuple[Head, ...] = ()) -> Measured:
        """How much heads look where a role looks, by plain transformers on texts of a kind."""
        tokens = tokens_of(self.sample(name), self.tokenizer, self.is_causal)
        return measured(self.attention(name, off), tokens, asked)


@dataclass(frozen=True)
class _Case:
    """A claim, and the heads that are off meanwhile."""

    asked: Asked
    off: tuple[Head, ...] = ()

    @property
    def texts(self) -> str:
        """On which texts, and without which heads."""
        return self.asked.sample + (", main head off" if self.off else "")


def claims(opened: Opened, refuse: Callable[[Refusal], None]) -> Iterator[Statement]:
    """The verdicts on claims that each head has each role.

    Args:
        opened: The model.
        refuse: Takes what the program does not say.
    """
    cases = [_Case(asked) for asked in asked_of(opened.truth)]
    backups = opened.truth.backups
    if backups:
        mains = tuple(pair.main for pair in backups)
        named = [head for head in opened.truth.heads if head.place in {pair.backup for pair in backups}]
        cases += [_Case(case.asked, mains) for case in cases if any(map(case.asked.is_designed, named))]
    for case in cases:
        try:
            yield from _claimed(opened, case)
        except AnalysisError as error:
            refuse(Refusal(f"claim {case.asked.states}", str(error)))


def _claimed(opened: Opened, case: _Case) -> Iterator[Statement]:
    asked, is_own = case.asked, case.asked.sample == PROBE_TEXTS
    given = None if is_own else list(opened.sample(asked.sample).given)
    table = sieve.claim(
        opened.checkpoint, opened.everywhere, given, role=asked.role, off=list(case.off), number=N_TEXTS, parser=False
    ).table
    found = opened.measured(asked, "repeats" if is_own else asked.sample, case.off)
    yield from _statements(
        opened, case, ("claim", case.texts), found.share >= LEAST_SHARE,
        {(row.layer, row.head): (VERDICTS[row.verdict], row.mean) for row in table.itertuples()},
    )  # fmt: skip


def roles(opened: Opened) -> Iterator[Statement]:
    """Which heads have which roles over texts of the model's own words."""
    for name in ROLES_ON:
        table = sieve.roles(opened.checkpoint, list(opened.sample(name).given), roles="all", parser=False).table
        tested = table[table["texts"] > 0]
        for asked in {asked.role: asked for asked in asked_of(opened.truth)}.values():
            rows = tested[tested["role"] == asked.role]
            if rows.empty:
                continue
            found = opened.measured(asked, name)
            verdicts: dict[Head, tuple[Verdict, float]] = {
                (row.layer, row.head): ("yes" if row.holds else "no", row.mean) for row in rows.itertuples()
            }
            yield from _statements(opened, _Case(asked), ("roles", name), found.times >= LEAST_TIMES, verdicts)


def _statements(
    opened: Opened,
    case: _Case,
    source: tuple[str, str],
    is_there: Bool[np.ndarray, "layer head"],
    verdicts: dict[Head, tuple[Verdict, float]],
) -> Iterator[Statement]:
    """Statements from verdicts by head, with their scores."""
    for head in opened.truth.heads:
        verdict, score = verdicts[head.place]
        truth = truth_of(case.asked, head, opened.truth, bool(is_there[head.place]), case.off)
        yield Statement(*_of(source, case.asked), *head.place, truth, verdict, float(score))


def _of(source: tuple[str, str], asked: Asked) -> tuple[str, str, str]:
    about, texts = source
    return about, asked.states, texts
