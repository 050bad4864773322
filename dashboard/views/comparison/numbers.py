"""Checkpoints against a reference on the same texts: scores, tests and divergence for the page Compare."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float, Int

from attention_sieve.cache.answers import Answers, Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.memory import new_number
from attention_sieve.core.attention.settings import Head, PassSettings
from attention_sieve.core.checkpoints.saved_runs import SavedRun, run_and_step
from attention_sieve.core.command_lines import command_line, given_options
from attention_sieve.core.comparison.differences import ROUNDING, LayerShift, PairedTests, layer_shift
from attention_sieve.core.comparison.finding import RoleComparison, compared
from attention_sieve.core.comparison.question import COMPARISON, ComparedText, divergences
from attention_sieve.core.comparison.sizes import LEAST_DIFFERENCE, is_large
from attention_sieve.core.comparison.transitions import changed_heads, head_moved_most, role_moved_most
from attention_sieve.core.finetuning.chance import AgainstChance, against_chance
from attention_sieve.core.roles.finding import RoleFinding, role_finding
from attention_sieve.core.roles.hypotheses import Criterion, HeadTests
from attention_sieve.core.roles.measures import RoleScores, Scale, TextMeasures, joined, role_scores
from attention_sieve.core.roles.question import each_alone, scores_question
from attention_sieve.core.roles.roles import shown_roles_of_all
from attention_sieve.core.texts.equal import text_numbers
from attention_sieve.core.texts.parsers import parser_option
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.files.provenance import THEN, call, comparison_facts, reads_texts, role_options
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.state import Choice, chosen_heads
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.descriptions.sentences import Sentences
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.role_grid.grid import References

if TYPE_CHECKING:
    import pandas as pd


Visits = tuple[Visit, Visit]
"""What the page works with, for the reference and for the compared checkpoint."""


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


@in_its_place
def scored(
    inference: Inference, engines: tuple[Engine, Engine], choice: Choice, texts: tuple[Text, ...]
) -> Scored | None:
    """Scores of both checkpoints, computed under a progress bar if needed; None if the reader has stopped it.

    Raises: AnalysisError of any stage; EveryTextTooLong when no text is left.
    """
    too_long = policy()
    settings = (choice.pass_settings(engines[0]), choice.pass_settings(engines[1]))
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
        settings, measures = choice.pass_settings(engine), [text.sides[side] for text in answers.results]
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


def chosen_least(scale: Scale) -> float:
    """The least difference as the reader has set it, or their link, which the summary reads before the widget is
    drawn."""
    value = st.session_state.get(least_key(scale), st.query_params.get(least_key(scale)))
    try:
        least = float("nan" if value is None else value)
    except ValueError:
        least = math.nan
    return least if 0 <= least < math.inf else LEAST_DIFFERENCE[scale]


@dataclass(frozen=True)
class TrainingHistory:
    """The training that led from the reference to the compared checkpoint."""

    sentence: str
    """Begins a sentence on what it did; empty if unknown, or if it is not shown to have taught anything."""
    chance: AgainstChance | None = None
    """Its result, if that is not shown to be above chance."""


def training_of(name: str, reference: str, runs: Sequence[SavedRun]) -> TrainingHistory:
    run_name, step = run_and_step(name)
    run = next((run for run in runs if run.name == run_name and run.progress.checkpoint == reference), None)
    if run is None:
        return TrainingHistory("")
    beside = against_chance(run.progress, step)
    return TrainingHistory(wording.training(step)) if beside is None or beside.is_above else TrainingHistory("", beside)


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """Roles under two checkpoints of one shape, the reference (a) and another (b), on the same texts, wherever the
    scores come from."""

    names: tuple[str, str]
    fingerprints: tuple[str, str]
    tests: tuple[HeadTests, HeadTests]
    references: tuple[References, References]
    """Mean scores of uniform and of the best attention under each."""
    paired: PairedTests | None
    """Tests of how the scores differ; None where these are not known text by text."""
    all_tests: Sequence[tuple[HeadTests, HeadTests]]
    """Of every checkpoint that is compared with the reference: maps share a scale over them."""
    scale: Scale
    correction: str
    least: float
    """The least difference of two means that counts as large."""
    facts: dict[str, str]
    """Provenance of files."""
    rows: Callable[[], "pd.DataFrame"]
    """The table: a row per role, layer and head."""
    note: str | None = None
    """A further sentence about the texts."""
    training: str = ""
    """Begins a sentence on the training that led from (a) to (b); empty if unknown."""
    between: str = wording.FROM_A_TO_B
    """Begins a sentence where the training is unknown."""
    n_removed: int = 0
    """Number of heads that do not count."""
    sentences: tuple[Sentences | None, Sentences | None] = (None, None)
    """Descriptions of the heads under each; None where they need a pass."""
    on_inspect: bool = True
    """Whether the page Inspect shows the reference."""

    @property
    def roles(self) -> tuple[str, ...]:
        return self.tests[0].roles

    @cached_property
    def coarse_and_fine(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The roles that apply under either checkpoint."""
        return shown_roles_of_all([tests.mean for tests in self.tests], self.roles)

    @property
    def coarse(self) -> tuple[str, ...]:
        return self.coarse_and_fine[0]

    @property
    def holds(self) -> tuple[Bool[np.ndarray, "role layer head"], Bool[np.ndarray, "role layer head"]]:
        return self.tests[0].holds, self.tests[1].holds

    @cached_property
    def difference(self) -> Float[np.ndarray, "role layer head"]:
        """Mean of b - a."""
        return self.tests[1].mean - self.tests[0].mean if self.paired is None else self.paired.difference

    @property
    def changed(self) -> Bool[np.ndarray, "layer head"]:
        """Which heads gain or lose a coarse role."""
        return changed_heads(*self.holds, self.roles, self.coarse)

    @property
    def large(self) -> Bool[np.ndarray, "role layer head"] | None:
        """Which scores differ significantly, and by so much that it matters."""
        return None if self.paired is None else self.paired.differs & is_large(self.paired, self.least)

    @cached_property
    def role(self) -> str:
        """The role that changed most, shown first."""
        return role_moved_most(*self.holds, self.difference, self.roles, self.coarse)

    @cached_property
    def moved_most(self) -> Head:
        """The head whose score for that role changed most, shown until another is chosen."""
        return head_moved_most(self.difference[self.roles.index(self.role)])

    @property
    def heads(self) -> list[Head]:
        n_layers, n_heads = self.tests[0].mean.shape[1:]
        return chosen_heads(n_layers, n_heads, self.moved_most, anew=True)

    @property
    def reset(self) -> Hashable:
        """Value that changes when the views have to take the chosen heads: a head chosen in one is pushed to all."""
        return (*self.fingerprints, tuple(self.heads))


def of_checkpoints(
    choice: Choice,
    pair: ComparedCheckpoint,
    pairs: Sequence[ComparedCheckpoint],
    texts: tuple[Text, ...],
    training: str,
) -> Compared:
    """Two checkpoints of one shape on texts that were scored under both.

    Args:
        pairs: all of that shape.
        texts: those that were scored.
        training: begins a sentence on the training that led from (a) to (b); empty if unknown.
    """
    criterion, least = choice.criterion, chosen_least(choice.scale)
    tests = memory().get_or_put(  # without the scores, which are kept already, and without tau
        "tests of differences",
        (pair.scored.key, criterion.alpha, criterion.correction, criterion.family),
        lambda: compared(pair.sides, [choice.dtype]).tests,
    )
    comparison = RoleComparison(sides=pair.sides, tests=tests, least_difference=least)
    a, b = (engine.files for engine in pair.engines)
    removed = (set(engine.files.removed_of(choice.pass_settings(engine).kind)) for engine in pair.engines)
    return Compared(
        names=(a.name, b.name),
        fingerprints=(a.fingerprint, b.fingerprint),
        tests=pair.tests,
        references=(pair.sides[0].counted.mean_references(), pair.sides[1].counted.mean_references()),
        paired=tests,
        all_tests=[other.tests for other in pairs],
        scale=choice.scale,
        correction=choice.correction,
        least=least,
        facts=facts_of(choice, pair, texts, comparison.facts),
        rows=lambda: comparison.table,
        note=pair.sides[0].note,
        training=training,
        between=wording.FROM_A_TO_B if b.seed is None else wording.UNTRAINED,
        n_removed=len(set.intersection(*removed)),
    )


def facts_of(
    choice: Choice, pair: ComparedCheckpoint, texts: tuple[Text, ...], own: Mapping[str, str]
) -> dict[str, str]:
    """Provenance of files, with lines that score the texts under both checkpoints, and compare the scores if each head
    of one is a head of the other."""
    judging = given_options(choice.criterion, Criterion.usual(choice.scale))
    name, judged = ("score", []) if pair.same_shape else ("roles", judging)
    read = ["--texts", reads_texts(texts), *parser_option(texts), f"--too-long={policy()}"]
    lines = [
        call(
            name,
            choice,
            engine,
            *read,
            *role_options(choice, engine),
            *([] if engine.files.seed is None else [f"--random-weights={engine.files.seed}"]),
            *judged,
            output=f"{letter}.parquet",
            checkpoint="" if engine.files.seed is None else choice.checkpoint,
        )
        for letter, engine in zip("ab", pair.engines, strict=True)
    ]
    if pair.same_shape:
        least = chosen_least(choice.scale)
        options = [] if least == LEAST_DIFFERENCE[choice.scale] else [f"--least-difference={least:g}"]
        lines.append(
            command_line(["compare", "a.parquet", "b.parquet", *judging, *options, "--output", "compare.parquet"])
        )
    known = comparison_facts(choice, pair.engines, len(texts), pair.scored.n_tokens)
    return {**known, **own, "command": THEN.join(lines)}


def has_scores(tests: HeadTests) -> Bool[np.ndarray, " role"]:
    """Which roles apply to a checkpoint on these texts: of the others no head can be said to hold them, or not to."""
    applies: Bool[np.ndarray, " role"] = np.isfinite(tests.mean).any(axis=(1, 2))
    return applies
