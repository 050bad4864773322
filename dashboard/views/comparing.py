"""Two checkpoints on the chosen texts, as the page Compare needs them: scored in step, tested, and said what is not."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from cache.inference import ComparedCorpus, Engine, Inference
from core.comparison import ROUNDING, LayerShift, PairedTests, layer_shift, paired_tests
from core.hypotheses import Criterion, HeadTests, role_tests
from core.measures import ScoreSettings, role_scores
from core.passes import PassSettings
from core.roles import ROLES
from core.texts import Text
from dashboard.progress import with_progress
from dashboard.state import Choice
from dashboard.views.corpus import policy


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """A checkpoint against the reference."""

    engines: tuple[Engine, Engine]
    """The reference, and the compared checkpoint."""
    corpus: ComparedCorpus
    scores: tuple[Float[np.ndarray, "text role layer_a head_a"], Float[np.ndarray, "text role layer_b head_b"]]
    tests: tuple[HeadTests, HeadTests]

    @property
    def name(self) -> str:
        """Of the compared checkpoint."""
        return self.engines[1].files.name

    @property
    def same_shape(self) -> bool:
        """Whether heads can be laid on heads."""
        return self.tests[0].mean.shape == self.tests[1].mean.shape


def all_heads_on(chosen: Choice, engine: Engine) -> PassSettings:
    """What a pass of one checkpoint is asked on this page."""
    return PassSettings(chosen.pass_settings(engine).kind)


def compared(
    inference: Inference, engines: tuple[Engine, Engine], chosen: Choice, texts: tuple[Text, ...]
) -> Compared | None:
    """Score what is missing under a progress bar, then test; None where the reader has stopped it.

    Raises: AnalysisError of any stage; EveryTextTooLong when no text is left.
    """
    too_long = policy()
    settings = (all_heads_on(chosen, engines[0]), all_heads_on(chosen, engines[1]))
    corpus = inference.kept_comparison(engines, texts, settings, too_long=too_long) or with_progress(
        (engines, texts, settings, too_long),
        lambda report: inference.comparison(engines, texts, settings, too_long=too_long, report=report),
    )
    if corpus is None:
        return None
    (scores_a, tests_a), (scores_b, tests_b) = _tested(corpus, chosen.criterion, chosen.score_settings)
    return Compared(engines=engines, corpus=corpus, scores=(scores_a, scores_b), tests=(tests_a, tests_b))


def paired(pair: Compared, chosen: Choice) -> PairedTests:
    """The tests of the differences; they take a moment for many texts, so the latest are remembered."""
    criterion = chosen.criterion
    return _paired(pair.corpus, chosen.score_settings, criterion.alpha, criterion.correction, ROUNDING[chosen.dtype])


def shift(pair: Compared, chosen: Choice, role: str) -> LayerShift:
    """How one role's score moves."""
    return layer_shift(*pair.scores, ROLES, role, alpha=chosen.criterion.alpha, rounding=ROUNDING[chosen.dtype])


@lru_cache(maxsize=16)
def _tested(
    corpus: ComparedCorpus, criterion: Criterion, settings: ScoreSettings
) -> list[tuple[Float[np.ndarray, "text role layer head"], HeadTests]]:
    scores = [role_scores(measures, settings) for measures in (corpus.a, corpus.b)]
    return [(of_one, role_tests(of_one, ROLES, criterion)) for of_one in scores]


@lru_cache(maxsize=8)
def _paired(
    corpus: ComparedCorpus, settings: ScoreSettings, alpha: float, correction: str, rounding: float
) -> PairedTests:
    a, b = (role_scores(measures, settings) for measures in (corpus.a, corpus.b))
    return paired_tests(a, b, ROLES, alpha=alpha, correction=correction, rounding=rounding)  # type: ignore[arg-type]


def divergence_of_heads(corpus: ComparedCorpus) -> Float[np.ndarray, "layer head"] | None:
    """Mean over the texts that have one; None where no text has."""
    if corpus.divergence is None:
        return None
    known = ~np.isnan(corpus.divergence).any(axis=(1, 2))
    return corpus.divergence[known].mean(axis=0) if known.any() else None


def n_other_tokens(corpus: ComparedCorpus) -> int:
    """Texts whose tokens are not the same under both."""
    return 0 if corpus.divergence is None else int(np.isnan(corpus.divergence).any(axis=(1, 2)).sum())
