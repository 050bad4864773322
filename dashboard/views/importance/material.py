"""What the views of the page share: what importance is measured by, and the effect of switching off each head."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.command_lines import given_options
from attention_sieve.core.importance.finding import AblationFinding, metric_facts
from attention_sieve.core.importance.labels import read_labels
from attention_sieve.core.importance.metrics import SCORE_NAMES
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import Replace
from attention_sieve.core.importance.settings import AblationSettings, LabelScore, MetricSettings
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import costs
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import call, reads_texts
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import Analysed, Inputs, chosen_settings
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance import wording
from attention_sieve.dashboard.views.pickers import from_list, one_of
from attention_sieve.dashboard.views.training.labelled import Labelled, labelled_texts

METRIC_KEY: Final = "metric"
METRICS: Final[dict[str, Metric]] = {
    wording.OUTPUT: "output",
    wording.LM: "lm",
    wording.LABELS: "labels",
}
WORD_HEADS: Final = ("masked token", "next token")
REPLACEMENTS: Final[dict[str, Replace]] = {wording.ZERO: "zero", wording.MEAN: "mean"}
SCORE_WIDTH: Final = 250


@dataclass(frozen=True, eq=False, kw_only=True)
class Material:
    """The inputs of all views of the page."""

    visit: Visit
    """What the page works with."""
    inputs: tuple[LabelledText, ...]
    """The texts that the metric is computed on."""
    settings: AblationSettings
    table: Labelled | None = None
    """The labelled table; only for the metric labels."""
    labels_name: str = ""
    """Names of the labelled table and of its label column."""

    @property
    def metric(self) -> MetricSettings:
        return self.settings.metric_settings

    @property
    def key(self) -> tuple[object, ...]:
        """Cache key: the checkpoint, the texts and everything else that the measurement depends on."""
        return self.visit.engine, self.inputs, self.visit.settings, self.metric, self.settings.replace

    @property
    def source(self) -> Inputs:
        """The inputs as an analysis reads them."""
        return Inputs(
            read=self.inputs, facts={"corpus": self.labels_name or self.visit.choice.corpus}, options=self._reading()
        )

    @property
    def options(self) -> list[str]:
        return given_options(self.settings, AblationSettings())

    def _reading(self, name: str = "") -> list[str]:
        """Options with which a command reads the texts, from a file of some name, or the labelled table."""
        return self.table.options if self.table else ["--texts", reads_texts([each.text for each in self.inputs], name)]

    def pruning_options(self, at_least: int, within: float) -> list[str]:
        """The settings as options of the command `prune`."""
        metric_options = given_options(self.metric, MetricSettings())
        return [*metric_options, f"--replace={self.settings.replace}", f"--at-least={at_least}", f"--within={within}"]

    def line(self, name: str, *options: str, texts: str = "", output: str = "", checkpoint: str = "") -> str:
        """The line of a command about the texts, or about the labelled table, which the archive of the page holds.

        Args:
            texts: name of the file of texts; by default that of the page's.
            output, checkpoint: as of `call`.
        """
        choice, engine, too_long = self.visit.choice, self.visit.engine, f"--too-long={policy()}"
        read = self._reading(texts)
        return call(name, choice, engine, *read, *options, too_long, output=output, checkpoint=checkpoint)

    def at(self, positions: Sequence[int]) -> tuple[LabelledText, ...]:
        return tuple(self.inputs[position] for position in positions)


def of_texts(texts: Sequence[Text]) -> tuple[LabelledText, ...]:
    return tuple(map(LabelledText, texts))


def material(places: frame.Places) -> Material | None:
    """Let the reader choose the metric and the replacement; None while texts are missing, after asking for them.

    Raises: AnalysisError where the checkpoint or the texts cannot be read.
    """
    visit = frame.without_corpus()
    has_words = visit.engine.files.head in WORD_HEADS
    with places.controls:
        metric = one_of(
            wording.METRIC,
            {name: metric for name, metric in METRICS.items() if metric != "lm" or has_words},
            key=METRIC_KEY,
            help=wording.METRIC_HELP if has_words else wording.without_words(plain(visit.engine.files.name)),
        )
        replacement = one_of(wording.REPLACE, REPLACEMENTS, key="replaced by", help=wording.REPLACE_HELP)
        more = st.popover(shared_wording.SETTINGS, icon=":material/tune:")
    usual = AblationSettings(
        metric_settings=MetricSettings(metric=metric), replace=replacement, correction=visit.choice.criterion.correction
    )
    settings = chosen_settings(usual, "importance", more, wording.FURTHER)
    if metric == "labels":
        with places.sections:
            return _labelled(visit, settings)
    with places.finding:
        with_texts = frame.with_corpus(visit)
    if with_texts is None:
        return None
    return Material(visit=with_texts, inputs=of_texts(with_texts.texts), settings=settings)


def _labelled(visit: Visit, settings: AblationSettings) -> Material | None:
    with st.expander(wording.TABLE_OF_LABELS, expanded=True):
        table = labelled_texts("held out")
    if table is None:
        return None
    data, checkpoint = table.data, visit.inference.checkpoint(visit.engine)
    labels = read_labels(checkpoint, data.name, table.content(), data.text_columns, data.label_column)
    names = [name for name in SCORE_NAMES["labels"] if (name == "pearson") != (labels.n_classes > 0) or name == "loss"]
    options: dict[str, LabelScore] = {wording.SCORES[name]: name for name in names if name != "change"}
    score = from_list(wording.SCORE, options, key="score", start=next(iter(options)), width=SCORE_WIDTH)
    metric = replace(settings.metric_settings, score=score, n_classes=labels.n_classes)
    return Material(
        visit=replace(visit, texts=labels.texts),
        inputs=labels.items,
        settings=replace(settings, metric_settings=metric),
        table=table,
        labels_name=f"{data.name}, {data.label_column}",
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Importance:
    """What the views of the page share."""

    material: Material
    analysed: Analysed[AblationSettings, AblationFinding]
    """The effect of switching off each head."""
    heads: list[Head]
    """The chosen heads."""
    without_layers: Float[np.ndarray, " layer"] | None
    """How much worse the score is with all heads of a layer off; None where that is not known."""

    @property
    def found(self) -> CorpusFinding[AblationFinding]:
        return self.analysed.found

    @property
    def facts(self) -> dict[str, str]:
        """Provenance of files, without a command: each view has its own, or none."""
        choice, engine = self.material.visit.choice, self.material.visit.engine
        return {
            **provenance.engine_facts(choice, engine),
            **self.material.source.facts,
            "corpus texts": str(len(self.ablation.items)),
            **metric_facts(self.material.settings),
            "alpha": f"{choice.criterion.alpha:g}",
            "correction": choice.criterion.correction,
        }

    def computed_by(self, name: str, *options: str) -> dict[str, str]:
        return self.facts | {"command": self.material.line(name, *options)}

    def cost(self, n_passes: float) -> str:
        """How long so many passes of the texts take."""
        texts = [item.text for item in self.read]
        return costs.of_passes(self.material.visit.engine.files, n_passes, costs.mean_characters(texts))

    @property
    def ablation(self) -> AblationFinding:
        return self.found.finding

    @property
    def read(self) -> Sequence[LabelledText]:
        return self.material.at(self.found.positions)

    @property
    def differs(self) -> Bool[np.ndarray, "layer head"]:
        """Heads without which the score differs significantly, at the reader's level and with their correction."""
        return self.ablation.effects.p_adjusted < self.material.visit.choice.criterion.alpha
