"""Checkpoints against a reference on the chosen texts, as the page Compare needs them: scored in step, then tested."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float

from cache.engine import Engine
from cache.inference import Inference
from cache.store.recent import Recent, new_number
from core.attention.settings import Head, PassSettings
from core.comparison.differences import ROUNDING, LayerShift, PairedTests, layer_shift, paired_tests
from core.comparison.moved import head_moved_most, role_moved_most
from core.roles.hypotheses import HeadTests, role_tests
from core.roles.measures import RoleScores, role_scores
from core.roles.roles import ROLES
from core.texts.text import Text
from dashboard.files.provenance import comparison_facts
from dashboard.progress import in_its_place, with_progress
from dashboard.state import Choice, chosen_heads
from dashboard.views.asking import policy
from dashboard.views.descriptions.sentences import Sentences

SCORED_BYTES: Final = 256 * 2**20
TESTED_BYTES: Final = 64 * 2**20
"""Of the latest comparisons in memory, for all readers: a click asks for the same ones again."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """A checkpoint and the reference on the same texts."""

    key: Hashable
    """Stands for these numbers where something that follows from them is kept, without keeping the texts in memory."""
    engines: tuple[Engine, Engine]
    """The reference, and the compared checkpoint."""
    positions: tuple[int, ...]
    """Place of each text among those given."""
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that is too long for either."""
    sides: tuple[RoleScores, RoleScores]
    """Scores under the reference, and under the compared checkpoint."""
    n_tokens: tuple[int, ...]
    """Of each text, under the reference."""
    divergence: Float[np.ndarray, "text layer head"] | None
    """In nats; NaN for texts whose tokens differ, None where the checkpoints have not the same heads."""

    @property
    def n_bytes(self) -> int:
        """Memory it takes."""
        return sum(array.nbytes for array in (*self.scores, self.divergence) if array is not None)

    @property
    def scores(self) -> tuple[Float[np.ndarray, "text role _ _"], Float[np.ndarray, "text role _ _"]]:
        """Scores by text, role, layer and head, without their references."""
        return self.sides[0].scores, self.sides[1].scores


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """The same, tested."""

    scored: Scored
    tests: tuple[HeadTests, HeadTests]

    @property
    def engines(self) -> tuple[Engine, Engine]:
        """The reference, and the compared checkpoint."""
        return self.scored.engines

    @property
    def name(self) -> str:
        """Of the compared checkpoint."""
        return self.engines[1].files.name

    @property
    def n_texts(self) -> int:
        """Texts that both were scored on."""
        return len(self.scored.positions)

    @property
    def same_shape(self) -> bool:
        """Whether heads can be laid on heads."""
        return self.tests[0].mean.shape == self.tests[1].mean.shape


_scored: Final[Recent[Hashable, Scored]] = Recent(SCORED_BYTES)
_tested: Final[Recent[Hashable, HeadTests]] = Recent(TESTED_BYTES)
_paired: Final[Recent[Hashable, PairedTests]] = Recent(TESTED_BYTES)


def all_heads_on(chosen: Choice, engine: Engine) -> PassSettings:
    """What a pass of one checkpoint is asked on this page."""
    return PassSettings(chosen.pass_settings(engine).kind)


@in_its_place
def scored(
    inference: Inference, engines: tuple[Engine, Engine], chosen: Choice, texts: tuple[Text, ...]
) -> Scored | None:
    """Score what is missing under a progress bar; None where the reader has stopped it.

    Raises: AnalysisError of any stage; EveryTextTooLong when no text is left.
    """
    too_long = policy()
    settings = (all_heads_on(chosen, engines[0]), all_heads_on(chosen, engines[1]))
    question = (engines, texts, settings, too_long)
    key = (*question, chosen.score_settings)
    if (recent := _scored.get(key)) is not None:
        return recent
    corpus = inference.kept_comparison(engines, texts, settings, too_long=too_long) or with_progress(
        question, lambda report: inference.comparison(engines, texts, settings, too_long=too_long, report=report)
    )
    if corpus is None:
        return None
    scores = Scored(
        key=new_number(),
        engines=engines,
        positions=corpus.positions,
        too_long=corpus.too_long,
        sides=(role_scores(corpus.a, chosen.score_settings), role_scores(corpus.b, chosen.score_settings)),
        n_tokens=corpus.n_tokens,
        divergence=corpus.divergence,
    )
    _scored.put(key, scores, scores.n_bytes)
    return scores


def on_common_texts(several: Sequence[Scored]) -> list[Scored]:
    """The same on the texts that none of them left out, so that checkpoints can be held against each other."""
    common = set.intersection(*(set(one.positions) for one in several))
    return [_on(one, tuple(place for place in one.positions if place in common)) for one in several]


def _on(one: Scored, positions: tuple[int, ...]) -> Scored:
    if positions == one.positions:
        return one
    rows = np.searchsorted(one.positions, positions)
    return replace(
        one,
        key=(one.key, positions),
        positions=positions,
        sides=(one.sides[0].of_texts(rows), one.sides[1].of_texts(rows)),
        n_tokens=tuple(np.array(one.n_tokens)[rows].tolist()),
        divergence=None if one.divergence is None else one.divergence[rows],
    )


def tested(one: Scored, chosen: Choice) -> Compared:
    """The roles of both checkpoints, each by its own test."""
    a, b = (_tests(one, side, chosen) for side in (0, 1))
    return Compared(scored=one, tests=(a, b))


def _tests(one: Scored, side: int, chosen: Choice) -> HeadTests:
    key = (one.key, side, chosen.criterion)
    tests = _tested.get(key)
    if tests is None:
        scored = one.sides[side]
        tests = role_tests(scored.scores, ROLES, chosen.criterion, scored.uniform)
        _tested.put(key, tests, 10 * tests.mean.nbytes)
    return tests


def paired(pair: Compared, chosen: Choice) -> PairedTests:
    """The tests of the differences."""
    criterion = chosen.criterion
    key = (pair.scored.key, criterion.alpha, criterion.correction, criterion.family)
    tests = _paired.get(key)
    if tests is None:
        tests = paired_tests(
            *pair.scored.scores,
            ROLES,
            alpha=criterion.alpha,
            correction=criterion.correction,
            family=criterion.family,
            rounding=ROUNDING[chosen.dtype],
        )
        _paired.put(key, tests, 12 * tests.t.nbytes)
    return tests


def shift(pair: Compared, chosen: Choice, role: str) -> LayerShift:
    """How one role's score moves."""
    alpha, rounding = chosen.criterion.alpha, ROUNDING[chosen.dtype]
    return layer_shift(*pair.scored.scores, ROLES, role, alpha=alpha, rounding=rounding)


def divergence_of_heads(pair: Compared) -> Float[np.ndarray, "layer head"] | None:
    """Mean over the texts that have one; None where no text has."""
    divergence = pair.scored.divergence
    if divergence is None:
        return None
    known = ~np.isnan(divergence).all(axis=(1, 2))
    return divergence[known].mean(axis=0) if known.any() else None


def n_other_tokens(pair: Compared) -> int:
    """Texts whose tokens are not the same under both."""
    divergence = pair.scored.divergence
    return 0 if divergence is None else int(np.isnan(divergence).all(axis=(1, 2)).sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class Focus:
    """What the page is about: one compared checkpoint, among all that were chosen."""

    chosen: Choice
    pair: Compared
    pairs: Sequence[Compared]
    """All whose heads can be laid on the reference's; maps share a scale over them."""
    coarse: tuple[str, ...]
    """Coarse roles that apply under either checkpoint."""
    fine: tuple[str, ...]
    sentences: tuple[Sentences | None, Sentences | None] = (None, None)
    """What each head mostly does under the reference, and under the compared checkpoint; None where that needs a
    pass."""
    training: str = ""
    """What made the compared checkpoint out of the reference, as a sentence begins with it; empty where that is not
    known."""

    @cached_property
    def role(self) -> str:
        """The role that moved most: the one to look at first."""
        holds_a, holds_b = (tests.holds for tests in self.pair.tests)
        return role_moved_most(holds_a, holds_b, paired(self.pair, self.chosen).difference, ROLES, self.coarse)

    @property
    def names(self) -> tuple[str, str]:
        """Of the reference and the compared checkpoint."""
        reference, compared = self.pair.engines
        return reference.files.name, compared.files.name

    @property
    def facts(self) -> dict[str, str]:
        """What a file says about where it comes from."""
        return comparison_facts(self.chosen, self.pair.engines, self.pair.n_texts, self.pair.scored.n_tokens)

    @property
    def heads(self) -> list[Head]:
        """The heads that are chosen in every view."""
        n_layers, n_heads = self.pair.tests[0].mean.shape[1:]
        return chosen_heads(n_layers, n_heads, self.moved_most, anew=True)

    @cached_property
    def moved_most(self) -> Head:
        """The head whose score for that role moved most: the one to look at before another is chosen."""
        return head_moved_most(paired(self.pair, self.chosen).difference[ROLES.index(self.role)])

    @property
    def reset(self) -> Hashable:
        """Changes where the views have to take the choice over: a head chosen in one is pushed to all others."""
        return (*(engine.files.fingerprint for engine in self.pair.engines), tuple(self.heads))
