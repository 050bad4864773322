"""Settings of the analyses of importance; by default as in the papers. Imports no torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import numpy as np

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.effects import CORPORA
from attention_sieve.core.importance.metrics import SCORE_NAMES, Score, ScoreName, label_score, mean_score
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import Replace
from attention_sieve.core.importance.verdicts import RESAMPLES
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.statistics.means import Correction

LabelScore = Literal["accuracy", "loss", "matthews", "f1", "pearson"]
FEWEST_RESAMPLES: Final = 100
MOST_RESAMPLES: Final = 100_000
Replaced = Annotated[
    Replace, "what replaces the output of an ablated head: zero, or its mean over all tokens of the texts"
]


@dataclass(frozen=True, kw_only=True)
class MetricSettings:
    """What heads are important for."""

    metric: Annotated[
        Metric,
        "output: change of the text vector (mean of the last hidden states), as 1 - cosine between those with all "
        "heads on and without the head; lm: loss of the language model, in nats per predicted token; labels: score of "
        "a classifier on labelled texts",
    ] = "output"
    score: Annotated[
        LabelScore | None,
        "score for the metric labels; f1 is that of the second class if there are two, otherwise the mean over "
        "classes; default: accuracy, or pearson for a regression",
    ] = None
    n_classes: int = 0
    """Of the checkpoint, for the metric labels; 0 for a regression."""

    @property
    def score_name(self) -> ScoreName:
        """The score of the metric."""
        if self.metric != "labels":
            return SCORE_NAMES[self.metric][0]
        return self.score or ("accuracy" if self.n_classes else "pearson")

    def score_of(self, items: Sequence[LabelledText]) -> Score:
        """How the outcomes of some texts are scored.

        Raises: AnalysisError for a score that the labels do not have, and for the metric labels without labels.
        """
        if self.metric != "labels":
            return mean_score(self.score_name)
        labels = [item.label for item in items]
        if None in labels:
            raise AnalysisError(
                "The metric labels needs labels, which texts alone do not have. Choose another metric: output or lm."
            )
        return label_score(self.score_name, np.array(labels, float), self.n_classes)


TestResamples = Annotated[
    int, "number N of bootstrap resamples and of sign flips; the smallest possible p is 2 / (N + 1)"
]
HeadCorrection = Annotated[
    Correction, "correction of p-values for all heads: Benjamini-Hochberg (bh), Holm (holm) or none"
]


@dataclass(frozen=True, kw_only=True)
class AblationSettings:
    """How heads are ablated, and how the changes are tested.

    Raises: AnalysisError for a number of resamples out of its range.
    """

    metric_settings: MetricSettings = field(default_factory=MetricSettings)
    replace: Replaced = "zero"
    resamples: TestResamples = RESAMPLES
    correction: HeadCorrection = "bh"

    def __post_init__(self) -> None:
        check_resamples(self.resamples)


@dataclass(frozen=True, kw_only=True)
class ImportanceSettings:
    """Which measures are computed, and how they are compared with ablation.

    Raises: AnalysisError for a number of resamples out of its range.
    """

    metric_settings: MetricSettings = field(default_factory=MetricSettings)
    replace: Replaced = "zero"
    resamples: Annotated[int, "number of bootstrap resamples for the intervals of correlations"] = CORPORA
    no_ablation: Annotated[bool, "leave out ablation, which takes longest"] = False
    normalise: Annotated[bool, "divide the gradient measures of each layer by their Euclidean norm"] = False

    def __post_init__(self) -> None:
        check_resamples(self.resamples)


def check_resamples(resamples: int) -> None:
    """Raise AnalysisError for a number of resamples out of its range."""
    if not FEWEST_RESAMPLES <= resamples <= MOST_RESAMPLES:
        raise AnalysisError(
            f"{resamples:,} is not a number of resamples. Choose one from {FEWEST_RESAMPLES} to {MOST_RESAMPLES:,}."
        )
