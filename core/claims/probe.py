"""What a claim is judged by: how all heads score for its role, with the controls."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import numpy as np

from attention_sieve.core.answering import Ask, Question
from attention_sieve.core.claims.claim import Claim
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.probe_texts.make import ProbeKind, ProbeTextSettings, fitting_block, probe_texts
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.matched_pairs import TextMatches
from attention_sieve.core.roles.measures import SYNTACTIC, RoleScores, ScoreSettings, TextMeasures, role_scores
from attention_sieve.core.roles.question import matched_questions, scores_question
from attention_sieve.core.roles.record import in_causal_models
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES, role_named, role_title
from attention_sieve.core.texts.text import Text

PROBES: Final[dict[str, ProbeKind]] = {
    "previous": "repeats",
    "induction": "repeats",
    "duplicate": "repeats",
    "retrieval": "needles",
}
"""Kind of the probe texts of a role. Claims about other roles are tested on texts that the reader gives."""
OF_COPIES: Final = ("induction", "duplicate")
"""Roles that a head which always looks at one distance seems to have where copies have a fixed period."""


@dataclass(frozen=True)
class ClaimText:
    """A text on which a claim is tested."""

    text: Text
    is_fixed: bool = False
    """Whether it is one of the control, in which copies stand at a fixed period."""


@dataclass(frozen=True)
class ClaimSettings:
    """On which texts a claim is tested, and when a head has its role."""

    number: Annotated[int, "number of probe texts that are made where no texts are given"] = 30
    seed: Annotated[int, "random seed of probe texts, permuted keys and random sets of heads"] = 0
    claim: Claim = field(default_factory=lambda: Claim((), "previous"))
    of_role: RoleSettings = field(
        default_factory=lambda: RoleSettings(ScoreSettings(scale="share"), Criterion.usual("share"))
    )
    """Shares, because scores grow with the length of texts: on probe texts, untrained heads with a liking for the first
    token reach a score of 3. The roles that it names are not used."""

    @property
    def scores(self) -> ScoreSettings:
        """What is scored: the role, with those that are computed and kept together with it."""
        together = next((roles for roles in (ROLES, DECODER_ROLES) if self.claim.role in roles), (self.claim.role,))
        return replace(self.of_role.scores, roles=together)

    @property
    def with_permuted_keys(self) -> ScoreSettings:
        """What is scored for the control: the role alone."""
        own = self.of_role.scores.permuted
        return replace(self.of_role.scores, roles=(self.claim.role,), permuted=self.seed if own is None else own + 1)


def claim_texts(
    settings: ClaimSettings, given: Sequence[Text] | None, tokenizer: Any, longest: int | None = None
) -> tuple[ClaimText, ...]:
    """Texts that are given, or else probe texts of the role, no longer than `longest` tokens, with their control.

    Raises: AnalysisError for a role without probe texts of its own.
    """
    if given is not None:
        return tuple(map(ClaimText, given))
    role = settings.claim.role
    if role not in PROBES:
        raise AnalysisError(
            f"There are no probe texts for the role {role_title(role)}; there are for {', '.join(PROBES)}. Give texts "
            "with the option texts."
        )
    control: tuple[ProbeKind, ...] = ("fixed-repeats",) if role in OF_COPIES else ()
    return tuple(
        ClaimText(text, kind == "fixed-repeats")
        for kind in (PROBES[role], *control)
        for text in probe_texts(tokenizer, _probe_settings(kind, settings, tokenizer, longest))
    )


def _probe_settings(kind: ProbeKind, settings: ClaimSettings, tokenizer: Any, longest: int | None) -> ProbeTextSettings:
    block = ProbeTextSettings.block if kind == "needles" else fitting_block(tokenizer, longest)
    return ProbeTextSettings(kind, settings.number, block, settings.seed)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeAnswers:
    """What the passes found of each text, in the order of the texts."""

    scored: Sequence[TextMeasures]
    permuted: Sequence[TextMeasures]
    matched: tuple[TextMatches, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbedRole:
    """The scores of all heads for one role, with the controls; whatever heads a claim names."""

    settings: ClaimSettings
    scored: RoleScores
    permuted: RoleScores
    """With the keys of every row of attention in random order."""
    fixed: RoleScores | None
    """On texts whose copies have a fixed period."""
    matched: tuple[TextMatches, ...]
    """Pairs that the role joins, and others at the same distance; empty where it is neither syntactic nor a written one
    that joins tokens."""


def question(settings: ClaimSettings) -> Question[Text, TextMeasures]:
    """How heads score; of several questions the one about all texts."""
    return scores_question(settings.scores.roles, settings.scores.permuted, settings.scores.parses)


def collected(ask: Ask, texts: tuple[ClaimText, ...], settings: ClaimSettings) -> tuple[ProbeAnswers]:
    """The scores of all texts, and the controls of those whose copies do not stand at a fixed period."""
    control, own = settings.with_permuted_keys, [each.text for each in texts if not each.is_fixed]
    scored = ask(question(settings), [each.text for each in texts])
    of_role = role_scores(scored, settings.scores).scores[:, settings.scores.roles.index(settings.claim.role)]
    applies = bool(np.isfinite(of_role).any())
    permuted = scores_question(control.roles, control.permuted, control.parses)
    role = settings.claim.role
    compared = {name: each for roles, each in matched_questions((*SYNTACTIC, role)).items() for name in roles}
    return (
        ProbeAnswers(
            scored=scored,
            permuted=ask(permuted, own, "permuted keys") if applies else (),
            matched=ask(compared[role], own, "words at the same distance") if applies and role in compared else (),
        ),
    )


def probed(texts: Sequence[ClaimText], answers: ProbeAnswers, settings: ClaimSettings) -> ProbedRole:
    """The scores for the role, with those of the controls.

    Raises: AnalysisError for a role that does not apply.
    """
    every = role_scores(answers.scored, settings.scores)
    row, is_fixed = [every.roles.index(settings.claim.role)], np.array([each.is_fixed for each in texts])
    of_role = replace(
        every,
        roles=(settings.claim.role,),
        scores=every.scores[:, row],
        uniform=every.uniform[:, row],
        greatest=every.greatest[:, row],
    )
    own = of_role.of_texts(np.flatnonzero(~is_fixed))
    if np.isnan(own.scores).all():
        role, name = role_named(settings.claim.role), role_title(settings.claim.role)
        back = "; and only models whose tokens look back alone can have it" if role.applies is in_causal_models else ""
        raise AnalysisError(f"The claim cannot be tested: the role {name} does not apply, as {role.lacks}{back}.")
    return ProbedRole(
        settings=settings,
        scored=own,
        permuted=role_scores(answers.permuted, settings.with_permuted_keys),
        fixed=of_role.of_texts(np.flatnonzero(is_fixed)) if is_fixed.any() else None,
        matched=answers.matched,
    )
