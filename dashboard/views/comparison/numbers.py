"""Checkpoints against a reference on the same texts: scores, tests and divergence for the page Compare."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float, Int

from attention_sieve.cache.answers import Answers, Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.memory import new_number
from attention_sieve.core.attention.settings import Head, PassSettings
from attention_sieve.core.command_lines import command_line, given_options
from attention_sieve.core.comparison.differences import ROUNDING, LayerShift, layer_shift
from attention_sieve.core.comparison.finding import RoleComparison, compared
from attention_sieve.core.comparison.question import COMPARISON, ComparedText, divergences
from attention_sieve.core.comparison.sizes import LEAST_DIFFERENCE
from attention_sieve.core.comparison.transitions import head_moved_most, role_moved_most
from attention_sieve.core.finetuning.chance import AgainstChance
from attention_sieve.core.roles.finding import RoleFinding, role_finding
from attention_sieve.core.roles.hypotheses import Criterion, HeadTests
from attention_sieve.core.roles.measures import RoleScores, Scale, TextMeasures, joined, role_scores
from attention_sieve.core.roles.question import each_alone, scores_question
from attention_sieve.core.texts.equal import text_numbers
from attention_sieve.core.texts.parsers import parser_option
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.files.provenance import THEN, call, comparison_facts, reads_texts, role_options
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.state import Choice, chosen_heads
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.descriptions.sentences import Sentences


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    key: Hashable
    """Key for caching derived results without keeping the texts in memory."""
    engines: tuple[Engine, Engine]
    """The reference, and the compared checkpoint."""
    positions: tuple[int, ...]
    """Index of each text in the corpus."""
    numbers: Int[np.ndarray, " text"]
    """Of the texts, as of `text_numbers`: equal ones count once."""
    too_long: tuple[tuple[int, int], ...]
    """Index and number of tokens of each text that is too long for either."""
    sides: tuple[RoleScores, RoleScores]
    """Scores under the reference, and under the compared checkpoint."""
    n_tokens: tuple[int, ...]
    """Number of tokens of each text, under the reference."""
    divergence: Float[np.ndarray, "text layer head"] | None
    """In nats; NaN for texts whose tokens differ, None if the checkpoints have different shapes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparedCheckpoint:
    """A checkpoint and the reference on the same texts, with the tests of their roles."""

    scored: Scored
    sides: tuple[RoleFinding, RoleFinding]
    """What the scores say under the reference, and under the compared checkpoint."""

    @property
    def tests(self) -> tuple[HeadTests, HeadTests]:
        return self.sides[0].tests, self.sides[1].tests

    @property
    def engines(self) -> tuple[Engine, Engine]:
        return self.scored.engines

    @property
    def name(self) -> str:
        return self.engines[1].files.name

    @property
    def roles(self) -> tuple[str, ...]:
        return self.tests[0].roles

    @property
    def n_texts(self) -> int:
        """Number of different texts that both were scored on."""
        return len(self.sides[0].counted.scores)

    @property
    def same_shape(self) -> bool:
        return self.tests[0].mean.shape == self.tests[1].mean.shape


def all_heads_on(choice: Choice, engine: Engine) -> PassSettings:
    """Settings of a pass on this page: no head is switched off."""
    return PassSettings(choice.pass_settings(engine).kind)


@in_its_place
def scored(
    inference: Inference, engines: tuple[Engine, Engine], choice: Choice, texts: tuple[Text, ...]
) -> Scored | None:
    """Scores of both checkpoints, computed under a progress bar if needed; None if the reader has stopped it.

    Raises: AnalysisError of any stage; EveryTextTooLong when no text is left.
    """
    too_long = policy()
    settings = (all_heads_on(choice, engines[0]), all_heads_on(choice, engines[1]))
    question = (engines, texts, settings, too_long)
    key = (*question, choice.score_settings, choice.roles)
    if (cached := memory().get("comparison", key)) is not None:
        return cached
    answers = inference.kept(engines, COMPARISON, texts, settings, too_long=too_long) or with_progress(
        question,
        lambda report: inference.ask(engines, COMPARISON, texts, settings, too_long=too_long, report=report),
    )
    if answers is None:
        return None
    sides = _with_further(inference, engines, choice, texts, answers)
    if sides is None:
        return None
    scores = Scored(
        key=new_number(),
        engines=engines,
        positions=answers.positions,
        numbers=text_numbers([texts[position] for position in answers.positions]),
        too_long=answers.too_long,
        sides=sides,
        n_tokens=tuple(text.lengths[0]["n_tokens"] - text.lengths[0]["n_cut"] for text in answers.results),
        divergence=divergences(answers.results),
    )
    return memory().put("comparison", key, scores)


def _with_further(
    inference: Inference,
    engines: tuple[Engine, Engine],
    choice: Choice,
    texts: tuple[Text, ...],
    answers: Answers[ComparedText],
) -> tuple[RoleScores, RoleScores] | None:
    """Scores of the texts of a comparison under each checkpoint, with the roles that the reader added, each by a pass
    of its own; None if the reader has stopped one."""
    sides: list[RoleScores] = []
    compared = tuple(texts[position] for position in answers.positions)
    for side, engine in enumerate(engines):
        settings, measures = all_heads_on(choice, engine), [text.sides[side] for text in answers.results]
        parts: list[Sequence[TextMeasures]] = [measures]
        for names in each_alone(choice.roles)[1:]:
            further = _further(inference, engine, names, compared, settings)
            if further is None:
                return None
            parts.append(further.results)
        sides.append(role_scores([joined(of_text) for of_text in zip(*parts, strict=True)], choice.score_settings))
    return sides[0], sides[1]


def _further(
    inference: Inference, engine: Engine, names: tuple[str, ...], texts: tuple[Text, ...], settings: PassSettings
) -> Answers[TextMeasures] | None:
    """Measures of further roles, of texts that are cut as in the comparison; None if the reader has stopped it."""
    question = scores_question(names)
    return inference.kept(engine, question, texts, settings, too_long="truncate") or with_progress(
        (engine, names, texts, settings),
        lambda report: inference.ask(engine, question, texts, settings, too_long="truncate", report=report),
    )


def on_common_texts(comparisons: Sequence[Scored]) -> list[Scored]:
    """The comparisons restricted to the texts that none of them left out, so that they are comparable."""
    common = set.intersection(*(set(comparison.positions) for comparison in comparisons))
    return [
        _on(comparison, tuple(position for position in comparison.positions if position in common))
        for comparison in comparisons
    ]


def _on(comparison: Scored, positions: tuple[int, ...]) -> Scored:
    if positions == comparison.positions:
        return comparison
    rows = np.searchsorted(comparison.positions, positions)
    return replace(
        comparison,
        key=(comparison.key, positions),
        positions=positions,
        numbers=comparison.numbers[rows],
        sides=(comparison.sides[0].subset(rows), comparison.sides[1].subset(rows)),
        n_tokens=tuple(np.array(comparison.n_tokens)[rows].tolist()),
        divergence=None if comparison.divergence is None else comparison.divergence[rows],
    )


def tested(comparison: Scored, choice: Choice) -> ComparedCheckpoint:
    tests = memory().get_or_put(
        "tests of a comparison",
        (comparison.key, choice.criterion),
        lambda: tuple(
            role_finding(side, choice.criterion, numbers=comparison.numbers).tests for side in comparison.sides
        ),
    )
    a, b = (
        RoleFinding(scored=scored, numbers=comparison.numbers, tests=of_side)
        for scored, of_side in zip(comparison.sides, tests, strict=True)
    )
    return ComparedCheckpoint(scored=comparison, sides=(a, b))


def shift(pair: ComparedCheckpoint, choice: Choice, role: str) -> LayerShift:
    a, b = (side.counted for side in pair.sides)
    alpha, rounding = choice.criterion.alpha, ROUNDING[choice.dtype]
    return layer_shift(a.scores, b.scores, pair.roles, role, alpha=alpha, rounding=rounding)


def divergence_of_heads(pair: ComparedCheckpoint) -> Float[np.ndarray, "layer head"] | None:
    """Mean divergence over the texts that have one; None if no text has."""
    divergence = pair.scored.divergence
    if divergence is None:
        return None
    has_divergence = ~np.isnan(divergence).all(axis=(1, 2))
    return divergence[has_divergence].mean(axis=0) if has_divergence.any() else None


def n_other_tokens(pair: ComparedCheckpoint) -> int:
    divergence = pair.scored.divergence
    return 0 if divergence is None else int(np.isnan(divergence).all(axis=(1, 2)).sum())


def least_key(scale: Scale) -> str:
    """Key and query parameter of the least difference, of which each scale has its own."""
    return f"least difference of {scale}"


def chosen_least(scale: Scale) -> float | None:
    """The least difference as the reader has set it, or their link, which the summary reads before the widget is drawn;
    None for the usual one."""
    value = st.session_state.get(least_key(scale), st.query_params.get(least_key(scale)))
    try:
        least = float("nan" if value is None else value)
    except ValueError:
        return None
    return least if 0 <= least < math.inf else None


@dataclass(frozen=True)
class TrainingHistory:
    """The training that led from the reference to the compared checkpoint."""

    sentence: str
    """Begins a sentence on what it did; empty if unknown, or if it is not shown to have taught anything."""
    chance: AgainstChance | None = None
    """Its result, if that is not shown to be above chance."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckpointFocus:
    """The selected compared checkpoint, among all that were chosen."""

    choice: Choice
    pair: ComparedCheckpoint
    pairs: Sequence[ComparedCheckpoint]
    """All pairs with the same shape; maps share a scale over them."""
    coarse: tuple[str, ...]
    """Coarse roles that apply under either checkpoint."""
    fine: tuple[str, ...]
    training: TrainingHistory
    texts: tuple[Text, ...]
    """Those that both were scored on."""
    sentences: tuple[Sentences | None, Sentences | None] = (None, None)
    """Descriptions of the heads under the reference and the compared checkpoint; None where they need a pass."""
    least_difference: float | None = None
    """As the reader has set it, or their link; None for the usual one."""

    @cached_property
    def compared(self) -> RoleComparison:
        """Both checkpoints, if they are of one shape."""
        criterion = self.choice.criterion
        tests = memory().get_or_put(  # without the scores, which are kept already, and without tau
            "tests of differences",
            (self.pair.scored.key, criterion.alpha, criterion.correction, criterion.family),
            lambda: compared(self.pair.sides, [self.choice.dtype]).tests,
        )
        return RoleComparison(sides=self.pair.sides, tests=tests, least_difference=self.least)

    @property
    def least(self) -> float:
        """The least difference of two means that counts as large."""
        return LEAST_DIFFERENCE[self.choice.scale] if self.least_difference is None else self.least_difference

    @cached_property
    def role(self) -> str:
        """The role that changed most, shown first."""
        difference = self.compared.tests.difference
        return role_moved_most(*self.compared.holds, difference, self.pair.roles, self.coarse)

    @property
    def names(self) -> tuple[str, str]:
        reference, compared = self.pair.engines
        return reference.files.name, compared.files.name

    @property
    def facts(self) -> dict[str, str]:
        facts = comparison_facts(self.choice, self.pair.engines, len(self.texts), self.pair.scored.n_tokens)
        own = self.compared.facts if self.pair.same_shape else {}
        return facts | own | {"command": self._commands}

    @property
    def _commands(self) -> str:
        """Lines that score the texts under both, and compare the scores if each head of one is a head of the other."""
        choice, criterion = replace(self.choice, off=()), self.choice.criterion
        judging = given_options(criterion, Criterion.usual(choice.scale))
        name, judged = ("score", []) if self.pair.same_shape else ("roles", judging)
        read = ["--texts", reads_texts(self.texts), *parser_option(self.texts), f"--too-long={policy()}"]
        lines = [
            call(name, choice, engine, *read, *role_options(choice, engine), *judged, output=f"{letter}.parquet")
            for letter, engine in zip("ab", self.pair.engines, strict=True)
        ]
        least = [] if self.least == LEAST_DIFFERENCE[choice.scale] else [f"--least-difference={self.least:g}"]
        comparing = command_line(["compare", "a.parquet", "b.parquet", *judging, *least, "--output", "compare.parquet"])
        return THEN.join([*lines, comparing] if self.pair.same_shape else lines)

    @property
    def heads(self) -> list[Head]:
        n_layers, n_heads = self.pair.tests[0].mean.shape[1:]
        return chosen_heads(n_layers, n_heads, self.moved_most, anew=True)

    @cached_property
    def moved_most(self) -> Head:
        """The head whose score for that role changed most, shown until another is chosen."""
        return head_moved_most(self.compared.tests.difference[self.pair.roles.index(self.role)])

    @property
    def reset(self) -> Hashable:
        """Value that changes when the views have to take the chosen heads: a head chosen in one is pushed to all."""
        return (*(engine.files.fingerprint for engine in self.pair.engines), tuple(self.heads))


def has_scores(tests: HeadTests) -> Bool[np.ndarray, " role"]:
    """Which roles apply to a checkpoint on these texts: of the others no head can be said to hold them, or not to."""
    applies: Bool[np.ndarray, " role"] = np.isfinite(tests.mean).any(axis=(1, 2))
    return applies
