"""Whether heads copy: the settings, and the finding in three columns; imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.copying.published import LEAST, Detector, least
from attention_sieve.core.copying.writes import SAMPLE, WAYS, TextWrites, Way, copying_score
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.effects import Effects, effects
from attention_sieve.core.importance.metrics import TextOutcomes, mean_score
from attention_sieve.core.importance.settings import HeadCorrection, TestResamples, check_resamples
from attention_sieve.core.importance.verdicts import RESAMPLES
from attention_sieve.core.importance.wording import without_verdict
from attention_sieve.core.roles.measures import USUAL_TAU
from attention_sieve.core.statistics.means import check_alpha, moments
from attention_sieve.core.texts.text import Text

CopyRole = Literal["induction", "duplicate", "previous", "retrieval"]


@dataclass(frozen=True, kw_only=True)
class CopySettings:
    """What counts as looking, writing and mattering.

    Raises: AnalysisError for a number out of its range.
    """

    role: Annotated[CopyRole, "role whose tokens a head looks at in the first column"] = "induction"
    detector: Annotated[
        Detector,
        "how looking is scored: share above chance; mass of attention (Crosbie and Shutova); mean over entries "
        "(Olsson); mul or abs (TransformerLens); stripe at the commonest distance (ARENA)",
    ] = "share"
    tau: Annotated[
        float | None,
        f"a head looks if its mean score is at least this; default: {USUAL_TAU['share']:g} for the share, and "
        f"{LEAST:g} for published scores",
    ] = None
    way: Annotated[
        Way,
        "how writing is scored: by what the head would write if it looked at one token alone (value), or by what it "
        "wrote, for the token of most attention (output, as Olsson do)",
    ] = "value"
    times: Annotated[
        float,
        "a head writes if it raises the token looked at so many times as much as a token of the sample in the mean; a "
        f"score above 0 is {SAMPLE / 3:.1f} times, with {SAMPLE} tokens",
    ] = 3.0
    no_ablation: Annotated[bool, "leave out the third column, which takes longest"] = False
    rise: Annotated[
        float, "a head matters if the loss on second copies rises by at least so many nats a token without it"
    ] = 0.5
    alpha: Annotated[float, "and if its corrected p-value is below this, where there are texts enough for one"] = 0.05
    resamples: TestResamples = RESAMPLES
    correction: HeadCorrection = "bh"

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_resamples(self.resamples)
        if self.tau is not None and not -1 <= self.tau <= 1:
            raise AnalysisError(f"tau is {self.tau:g}, and scores of looking are at most 1. Choose one from -1 to 1.")
        if not 0 < self.times <= SAMPLE:
            raise AnalysisError(f"times is {self.times:g}. Choose a number above 0, to {SAMPLE}.")
        if not self.rise > 0:
            raise AnalysisError(f"rise is {self.rise:g}. Choose a number above 0, in nats a token.")

    @property
    def least(self) -> float:
        """Score from which a head looks."""
        return least(self.detector) if self.tau is None else self.tau


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyAnswers:
    """What the three columns are computed from; None where a checkpoint does not support it, or it is not asked for."""

    looks: Float[np.ndarray, "text layer head"]
    writes: tuple[TextWrites, ...] | None
    signs: Float[np.ndarray, "layer head"] | None
    outcomes: tuple[TextOutcomes, ...] | None
    left_out: tuple[tuple[str, str], ...]
    """Name of each missing column, and why it is missing."""


@dataclass(frozen=True, eq=False)
class CopyFinding:
    """Where each head looks, what it writes, and whether that matters.

    Raises: AnalysisError where no text has a token that the role looks at.
    """

    items: tuple[Text, ...]
    answers: CopyAnswers
    settings: CopySettings

    def __post_init__(self) -> None:
        if not self.present.any():
            raise AnalysisError(
                f"No text has tokens that the role {self.settings.role} looks at, or the model also looks ahead. "
                "Choose a model that writes the next token, and texts with repeats, such as the probe texts."
            )

    @cached_property
    def looks(self) -> Float[np.ndarray, "layer head"]:
        """Mean score of looking over the texts in which the role applies; NaN for heads that are not there."""
        return moments(self.answers.looks)[1]

    @cached_property
    def writes(self) -> Float[np.ndarray, "layer head"] | None:
        """Mean copying score, -1 to 1; NaN for heads that raise no token."""
        return None if self._shares is None else moments(copying_score(self._shares))[1]

    @property
    def _shares(self) -> Float[np.ndarray, "text layer head"] | None:
        writes, way = self.answers.writes, WAYS.index(self.settings.way)
        return None if writes is None else np.stack([text.shares[way] for text in writes])

    @cached_property
    def times(self) -> Float[np.ndarray, "layer head"] | None:
        """How many times as much a head raises the token looked at as the mean token; 1 by chance."""
        if self._shares is None or self.answers.writes is None:
            return None
        n_tokens = np.array([text.n_tokens for text in self.answers.writes])
        return moments(self._shares * n_tokens[:, None, None])[1]

    @cached_property
    def _with_copies(self) -> list[int]:
        """Texts that have a second copy."""
        outcomes = self.answers.outcomes or ()
        return [row for row, outcome in enumerate(outcomes) if np.isfinite(outcome.full).all()]

    @cached_property
    def effects(self) -> Effects | None:
        """Change of the loss on second copies, in nats a token, without each head."""
        if self.answers.outcomes is None or not self._with_copies:
            return None
        outcomes = [self.answers.outcomes[row] for row in self._with_copies]
        documents = [self.items[row].document for row in self._with_copies]
        return effects(outcomes, mean_score("loss"), documents, self.settings.correction, self.settings.resamples)

    @cached_property
    def columns(self) -> Mapping[str, Bool[np.ndarray, "layer head"]]:
        """Heads that look, write and matter, as far as each is known: "looks", "writes", "matters"."""
        holds = {"looks": self.looks >= self.settings.least}
        if self.times is not None:
            holds["writes"] = self.times >= self.settings.times
        if self.effects is not None:
            is_refuted = self.effects.p_adjusted >= self.settings.alpha  # not where there is no test
            holds["matters"] = (self.effects.delta >= self.settings.rise) & ~is_refuted
        return holds

    @property
    def present(self) -> Bool[np.ndarray, "layer head"]:
        """Heads that are there."""
        return np.isfinite(self.looks)

    @property
    def expected_in_all(self) -> float:
        """Number of heads that would be in every column if each were drawn by itself."""
        n_heads = int(self.present.sum())
        return float(n_heads * np.prod([holds.sum() / n_heads for holds in self.columns.values()]))

    @property
    def combinations(self) -> dict[frozenset[str], int]:
        """Number of heads by the exact columns that they are in."""
        counts: dict[frozenset[str], int] = {}
        for head in zip(*np.nonzero(self.present), strict=True):
            held = frozenset(name for name, holds in self.columns.items() if holds[head])
            counts[held] = counts.get(held, 0) + 1
        return counts

    @property
    def without_verdict(self) -> str:
        """How many changes of the loss have no interval and no p-value, and why; empty if all have them."""
        if self.effects is None:
            return ""
        documents = [self.items[row].document for row in self._with_copies]
        return without_verdict(self.effects.delta, self.effects.p, documents)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        settings = self.settings
        return {
            "looks at tokens of": settings.role,
            "looking": settings.detector,
            "tau": f"{settings.least:g}",
            "writing": settings.way,
            "at least times": f"{settings.times:g}",
            "rise": f"{settings.rise:g}",
            "alpha": f"{settings.alpha:g}",
            "correction": settings.correction,
            "texts with second copies": str(len(self._with_copies)),
            **{f"without {name}": reason for name, reason in self.answers.left_out},
        }
