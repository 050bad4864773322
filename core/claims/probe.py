"""What a claim is judged by: how all heads score for its role, with the controls."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import numpy as np
from jaxtyping import Int

from attention_sieve.core.answering import Ask, Question
from attention_sieve.core.claims.claim import Claim
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.probe_texts.make import ProbeKind, ProbeTextSettings, fitting_block, probe_texts
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.matched_pairs import TextMatches
from attention_sieve.core.roles.measures import SYNTACTIC, RoleScores, ScoreSettings, TextMeasures, role_scores
from attention_sieve.core.roles.question import MATCHED_PAIRS, matched_question, scores_question
from attention_sieve.core.roles.record import Pairs, in_causal_models
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES, role_named, role_title
from attention_sieve.core.statistics.means import document_numbers
from attention_sieve.core.texts.equal import different_rows, text_numbers
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
    block: int | None = None
    """Number of a probe text among those of its kind; None for a text that is given."""
    is_fixed: bool = False
    """Whether it is the control of the probe text of this number: the same tokens, whose copies stand at a fixed
    period."""


@dataclass(frozen=True)
class ClaimSettings:
    """On which texts a claim is tested, and when a head has its role."""

    number: Annotated[int, "number of probe texts that are made where no texts are given"] = 30
    seed: Annotated[int, "random seed of probe texts, permuted keys and random sets of heads"] = 0
    claim: Claim = field(default_factory=lambda: Claim((), "previous"))
    role_settings: RoleSettings = field(
        default_factory=lambda: RoleSettings(ScoreSettings(scale="share"), Criterion.usual("share"))
    )
    """Shares, because scores grow with the length of texts: on probe texts, untrained heads with a liking for the first
    token reach a score of 3. The roles that it names are not used."""

    @property
    def scores(self) -> ScoreSettings:
        """What is scored: the role, with those that are computed and kept together with it."""
        together = next((roles for roles in (ROLES, DECODER_ROLES) if self.claim.role in roles), (self.claim.role,))
        return replace(self.role_settings.scores, roles=together)

    @property
    def with_permuted_keys(self) -> ScoreSettings:
        """What is scored for the control: the role alone."""
        scores = self.role_settings.scores
        seed = self.seed if scores.permuted is None else scores.permuted + 1
        return replace(scores, roles=(self.claim.role,), permuted=seed)


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
        ClaimText(text, block, kind == "fixed-repeats")
        for kind in (PROBES[role], *control)
        for block, text in enumerate(probe_texts(tokenizer, _probe_settings(kind, settings, tokenizer, longest)))
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
    """Of the texts that differ: equal ones count once."""
    n_equal: int
    """Number of texts that were left out because they are equal to others."""
    are_made: bool
    """Whether they are probe texts."""
    document: Int[np.ndarray, " text"] | None
    """Number of the document of each text, which are then the units of tests; None if no document is known."""
    permuted: RoleScores
    """With the keys of every row of attention in random order."""
    fixed: RoleScores | None
    """On the same tokens, text by text, where their copies have a fixed period; only of probe texts."""
    matched: tuple[TextMatches, ...]
    """Pairs that the role joins, and others at the same distance; empty for a role that joins no tokens, and for probe
    texts."""

    @property
    def joins_tokens(self) -> bool:
        """Whether the role joins tokens in pairs, so that a look at fixed distances could seem to be it."""
        return isinstance(role_named(self.settings.claim.role).sieve, Pairs)


def question(settings: ClaimSettings) -> Question[Text, TextMeasures]:
    """How heads score; of several questions the one about all texts."""
    return scores_question(settings.scores.roles, settings.scores.permuted, settings.scores.parses)


def collected(ask: Ask, texts: tuple[ClaimText, ...], settings: ClaimSettings) -> tuple[ProbeAnswers]:
    """The scores of all texts, and the controls of those whose copies do not stand at a fixed period."""
    control, own = settings.with_permuted_keys, [text.text for text in texts if not text.is_fixed]
    scored = ask(question(settings), [text.text for text in texts])
    own_scores = role_scores(scored, settings.scores).scores[:, settings.scores.roles.index(settings.claim.role)]
    applies = bool(np.isfinite(own_scores).any())
    permuted = scores_question(control.roles, control.permuted, control.parses)
    compared = _at_distance(settings.claim.role) if texts[0].block is None else None
    return (
        ProbeAnswers(
            scored=scored,
            permuted=ask(permuted, own, "permuted keys") if applies else (),
            matched=ask(compared, own, "words at the same distance") if applies and compared is not None else (),
        ),
    )


def _at_distance(role: str) -> Question[Text, TextMatches] | None:
    """The question that compares a role with others at the same distance; None for a role that joins no tokens.

    Probe texts do without: the distances between copies are drawn.
    """
    if not isinstance(role_named(role).sieve, Pairs):
        return None
    return MATCHED_PAIRS if role in SYNTACTIC else matched_question(role)


def probed(texts: Sequence[ClaimText], answers: ProbeAnswers, settings: ClaimSettings) -> ProbedRole:
    """The scores for the role, with those of the controls.

    Raises: AnalysisError for a role that does not apply.
    """
    every = role_scores(answers.scored, settings.scores)
    role_index = [every.roles.index(settings.claim.role)]
    own_role = replace(
        every,
        roles=(settings.claim.role,),
        scores=every.scores[:, role_index],
        uniform=every.uniform[:, role_index],
        greatest=every.greatest[:, role_index],
    )
    rows = np.flatnonzero([not text.is_fixed for text in texts])
    different = different_rows(text_numbers([texts[row].text for row in rows.tolist()]))
    own = rows[different]
    if np.isnan(own_role.scores[own]).all():
        role, name = role_named(settings.claim.role), role_title(settings.claim.role)
        back = "; and only models whose tokens look back alone can have it" if role.applies is in_causal_models else ""
        raise AnalysisError(f"The claim cannot be tested: the role {name} does not apply, as {role.lacks}{back}.")
    control = {text.block: row for row, text in enumerate(texts) if text.is_fixed}
    return ProbedRole(
        settings=settings,
        scored=own_role.subset(own),
        n_equal=len(rows) - len(own),
        are_made=texts[0].block is not None,
        document=document_numbers([texts[row].text.document for row in own]),
        permuted=role_scores([answers.permuted[index] for index in different], settings.with_permuted_keys),
        fixed=own_role.subset(np.array([control[texts[row].block] for row in own])) if control else None,
        matched=tuple(answers.matched[index] for index in different) if answers.matched else (),
    )
