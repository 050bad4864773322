"""What choices say of the heads: how often each is right, among the candidates of the settings and among the others."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, get_args

from attention_sieve.core.coreference.accuracy import Candidates, CoreferenceScores, MentionChoices, coreference_scores
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.statistics.means import check_alpha
from attention_sieve.core.texts.tokens import FromWord


@dataclass(frozen=True, kw_only=True)
class CoreferenceSettings:
    """How choices are read and evaluated.

    Raises: AnalysisError for an alpha that is not between 0 and 1.
    """

    candidates: Annotated[
        Candidates, "words among which an antecedent is chosen: the head words of earlier mentions, or all words"
    ] = "mentions"
    from_word: Annotated[
        FromWord, "attention from a word of several tokens: mean over its tokens, or that of the first"
    ] = "mean"
    alpha: Annotated[float, "significance level of the control; confidence intervals cover 1 - alpha"] = 0.05

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {"candidates": self.candidates, "from word": self.from_word, "alpha": str(self.alpha)}


@dataclass(frozen=True, eq=False)
class CoreferenceFinding:
    """What every head chooses in each text, and how often that is right, computed when it is first read."""

    texts: tuple[MentionText, ...]
    choices: tuple[MentionChoices, ...]
    settings: CoreferenceSettings

    @cached_property
    def scores(self) -> CoreferenceScores:
        """Among the candidates of the settings.

        Raises: AnalysisError where no mention with an antecedent was read.
        """
        return self._among(self.settings.candidates)

    @cached_property
    def among_others(self) -> CoreferenceScores:
        """Among the other candidates. Raises as `scores`."""
        return self._among(next(one for one in get_args(Candidates) if one != self.settings.candidates))

    def _among(self, candidates: Candidates) -> CoreferenceScores:
        return coreference_scores(self.texts, self.choices, candidates, self.settings.alpha)

    @property
    def n_documents(self) -> int:
        """Documents with cases."""
        return int(self.scores.n_documents[0])
