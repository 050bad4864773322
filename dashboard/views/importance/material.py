"""What importance is measured by: the metric, its texts, and what replaces the output of a head that is off."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.cache.answers import Answers
from attention_sieve.core.importance.labels import read_labels
from attention_sieve.core.importance.metrics import (
    SCORE_NAMES,
    SMALLER_IS_BETTER,
    Score,
    ScoreName,
    TextOutcomes,
    label_score,
    mean_score,
)
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import HEAD_OUTPUTS, MeanOutputs, Replace, ablation_question, mean_outputs
from attention_sieve.core.passes.metric import Metric
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask
from attention_sieve.dashboard.views.finetune.labelled import Labelled, labelled_texts
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance import wording
from attention_sieve.dashboard.views.pickers import from_list, one_of

METRIC_KEY: Final = "metric"
METRICS: Final[dict[str, Metric]] = {
    wording.OUTPUT: "output",
    wording.LM: "lm",
    wording.LABELS: "labels",
}
REPLACEMENTS: Final[dict[str, Replace]] = {wording.ZERO: "zero", wording.MEAN: "mean"}
SCORE_WIDTH: Final = 250


@dataclass(frozen=True, eq=False, kw_only=True)
class Material:
    """The inputs of all views of the page."""

    visit: Visit
    """What the page works with; its texts are those that the metric is computed on."""
    metric: Metric
    score_name: ScoreName
    replace: Replace
    labels: Float[np.ndarray, " text"] | None = None
    """Class index or value of each text; only for the metric labels."""
    n_classes: int = 0
    """0 without labels and for regression."""
    table: Labelled | None = None
    """The labelled table; only for the metric labels."""
    labels_name: str = ""
    """Names of the labelled table and of its label column."""
    text_columns: tuple[str, ...] = ()
    label_column: str = ""
    """Label column of the labelled table."""

    @property
    def key(self) -> tuple[object, ...]:
        """Cache key: the checkpoint, the texts and everything else that the measurement depends on."""
        label_bytes = None if self.labels is None else self.labels.tobytes()
        visit = self.visit
        return visit.engine, visit.texts, visit.settings, self.metric, self.score_name, self.replace, label_bytes

    @property
    def labelled(self) -> list[LabelledText]:
        """The texts with their labels; the label is None where the metric needs none."""
        labels = [None] * len(self.visit.texts) if self.labels is None else self.labels.tolist()
        return [LabelledText(text, label) for text, label in zip(self.visit.texts, labels, strict=True)]

    @property
    def sign(self) -> int:
        """1 if a larger score is worse, otherwise -1."""
        return 1 if self.score_name in SMALLER_IS_BETTER else -1

    def score(self, positions: tuple[int, ...]) -> Score:
        """How to score the outcomes of some of the texts.

        Raises: AnalysisError for a score that is not defined for the labels.
        """
        if self.labels is None:
            return mean_score(self.score_name)
        return label_score(self.score_name, self.labels[list(positions)], self.n_classes)

    def documents(self, positions: tuple[int, ...]) -> list[str | None]:
        """Document of each of the texts at these positions; None where it is unknown."""
        return [self.visit.texts[position].document for position in positions]


def material() -> Material | None:
    """Let the reader choose the metric and the replacement; None while texts are missing, after asking for them.

    Raises: AnalysisError where the checkpoint or the texts cannot be read.
    """
    visit = frame.without_corpus()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        metric = one_of(wording.METRIC, METRICS, key=METRIC_KEY, help=wording.METRIC_HELP)
        replacement = one_of(wording.REPLACE, REPLACEMENTS, key="replaced by", help=wording.REPLACE_HELP)
    if metric == "labels":
        return _labelled(visit, replacement)
    with_texts = frame.with_corpus(visit)
    if with_texts is None:
        return None
    return Material(visit=with_texts, metric=metric, score_name=SCORE_NAMES[metric][0], replace=replacement)


def _labelled(visit: Visit, replacement: Replace) -> Material | None:
    """Labelled texts, with labels as the classifier indexes them."""
    with st.expander(wording.TABLE_OF_LABELS, expanded=True):
        table = labelled_texts("held out")
    if table is None:
        return None
    labels = read_labels(
        visit.inference.checkpoint(visit.engine),
        table.data.name,
        table.content(),
        table.data.text_columns,
        table.data.label_column,
    )
    names = [name for name in SCORE_NAMES["labels"] if (name == "pearson") != (labels.n_classes > 0) or name == "loss"]
    options = {wording.SCORES[name]: name for name in names}
    score_name = from_list(wording.SCORE, options, key="score", start=next(iter(options)), width=SCORE_WIDTH)
    return Material(
        visit=replace(visit, texts=labels.texts),
        metric="labels",
        score_name=score_name,
        replace=replacement,
        labels=labels.values,
        n_classes=labels.n_classes,
        table=table,
        labels_name=_labels_name(table),
        text_columns=table.data.text_columns,
        label_column=table.data.label_column,
    )


def _labels_name(table: Labelled) -> str:
    return f"{table.data.name}, {table.data.label_column}"


def means(material: Material) -> MeanOutputs | None:
    """Mean outputs that replace a head that is off; None for zeros, and where the reader has to do something first."""
    if material.replace == "zero":
        return None
    outputs = ask(material.visit, HEAD_OUTPUTS, material.visit.texts)
    return None if outputs is None else mean_outputs(outputs.results)


def ablated(material: Material, *, alone: bool = False) -> Answers[TextOutcomes] | None:
    """Outcomes of every text with each head off, or with each head alone in its layer; None as for `ask`.

    Raises: AnalysisError of any stage.
    """
    mean_values = means(material)
    if mean_values is None and material.replace == "mean":
        return None
    return ask(material.visit, ablation_question(material.metric, alone=alone, means=mean_values), material.visit.texts)
