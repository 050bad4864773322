"""Grades what the program says of the roles of heads: claims about each, and the roles that it finds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import attention_sieve as sieve
from attention_sieve.calls.given import parsed
from attention_sieve.core.answering import Question, answer
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.claims.claim import Claim
from attention_sieve.core.claims.places import tested
from attention_sieve.core.claims.probe import ClaimSettings
from attention_sieve.core.claims.tables import claim_table
from attention_sieve.core.commands import reading_of
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
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
from benchmarks.planted.grades.texts import (
    TASK,
    Sample,
    has_planted_words,
    plain_attention,
    sample,
    task_sample,
)
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


class Kept:
    """Answers to questions about texts, each computed once: claims about several roles share what is scored."""

    def __init__(self) -> None:
        self._found = dict[tuple[Question[Any, Any], Any, PassSettings], Any]()

    def __call__(
        self,
        checkpoint: Checkpoint,
        question: Question[Any, Any],
        items: Sequence[Any],
        prepared: Mapping[int, PassText],
        settings: PassSettings,
    ) -> Iterator[list[tuple[int, Any]]]:
        """As `attention_sieve.core.answering.answer`, of one checkpoint."""
        keys = {index: (question, items[index], settings) for index in prepared}
        missing = {index: text for index, text in prepared.items() if keys[index] not in self._found}
        for batch in answer(checkpoint, question, items, missing, settings):
            self._found |= {keys[index]: result for index, result in batch}
        yield [(index, self._found[key]) for index, key in keys.items()]


class Opened:
    """A planted model as the program and as plain transformers have it, with texts in its words."""

    def __init__(self, truth: Truth, checkpoint: Checkpoint, model: PreTrainedModel) -> None:
        self.truth, self.checkpoint, self.model = truth, checkpoint, model
        self.answers = Kept()
        self._samples = dict[str, Sample]()
        self._attention = dict[tuple[str, tuple[Head, ...]], Float[np.ndarray, "layer text head query key"]]()

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Of both."""
        return self.checkpoint.tokenizer

    @property
    def has_words(self) -> bool:
        """Whether it reads the planted words."""
        return has_planted_words(self.tokenizer)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The statements that are asked about its heads."""
        return asked_of(self.truth, self.has_words)

    @property
    def is_causal(self) -> bool:
        """Whether tokens see earlier ones alone."""
        return self.truth.host != "bert"

    def sample(self, name: str) -> Sample:
        """Texts of a kind."""
        if name not in self._samples:
            is_task = name == TASK
            self._samples[name] = (
                task_sample(self.truth.task, self.tokenizer)
                if is_task
                else sample(name, self.tokenizer, self.truth.seed)
            )
        return self._samples[name]

    def attention(self, name: str, off: tuple[Head, ...] = ()) -> Float[np.ndarray, "layer text head query key"]:
        """Of all heads by plain transformers, on texts of a kind."""
        if (name, off) not in self._attention:
            self._attention[name, off] = plain_attention(self.model, self.sample(name).inputs, off)
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
    cases = [_Case(asked) for asked in opened.asked]
    backups = opened.truth.backups
    if backups:
        mains = tuple(pair.main for pair in backups)
        named = [head for head in opened.truth.heads if head.place in mains]
        cases += [_Case(case.asked, mains) for case in cases if any(map(case.asked.is_designed, named))]
    for case in cases:
        try:
            yield from _claimed(opened, case)
        except AnalysisError as error:
            refuse(Refusal(f"claim {case.asked.states}", str(error)))


def _claimed(opened: Opened, case: _Case) -> Iterator[Statement]:
    asked, is_own = case.asked, case.asked.sample == PROBE_TEXTS
    given = None if is_own else parsed(list(opened.sample(asked.sample).given), {"parser": False})
    heads = tuple(head.place for head in opened.truth.heads)
    settings = ClaimSettings(seed=opened.truth.seed, claim=Claim(heads, asked.role))
    how = PassSettings(opened.checkpoint.files.kinds[0], case.off)
    read = partial(reading_of, opened.checkpoint, how, too_long="error", answer=opened.answers)
    table = claim_table(tested(settings, given, opened.checkpoint, read, _unwatched))
    found = opened.measured(asked, "repeats" if is_own else asked.sample, case.off)
    yield from _statements(
        opened, case, ("claim", case.texts), found.share >= LEAST_SHARE,
        {(row.layer, row.head): (VERDICTS[row.verdict], row.mean) for row in table.itertuples()},
    )  # fmt: skip


def _unwatched(work: Iterable[Sequence[Any]], n_texts: int, doing: str | None = None) -> Iterable[Any]:
    return chain.from_iterable(work)


def roles(opened: Opened) -> Iterator[Statement]:
    """Which heads have which roles over texts of the model's own words."""
    for name in ROLES_ON if opened.has_words else (TASK,):
        table = sieve.roles(opened.checkpoint, list(opened.sample(name).given), roles="all", parser=False).table
        tested = table[table["texts"] > 0]
        for asked in {asked.role: asked for asked in opened.asked}.values():
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
