"""The analyses of importance as values: ablation of each head, keeping one head a layer, and cheaper measures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from attention_sieve.core.answering import Analysis, Ask, Reading
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.ablation import Items, ablated
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS, BACKUP_COLUMNS, check_no_vectors
from attention_sieve.core.importance.effects import halves
from attention_sieve.core.importance.finding import (
    AblationFinding,
    CheapMeasures,
    ImportanceFinding,
    compared_texts,
    metric_facts,
)
from attention_sieve.core.importance.measures import (
    Measure,
    attributions,
    confidence,
    gradient_measures,
    output_measures,
    relevance,
)
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.per_text import RELEVANCE_RULE, LabelledText
from attention_sieve.core.importance.question import (
    HEAD_OUTPUTS,
    OUTPUT_WEIGHTS,
    ablation_question,
    relevance_question,
    slopes_question,
)
from attention_sieve.core.importance.settings import AblationSettings, ImportanceSettings
from attention_sieve.core.importance.unreliable import FIRST_ORDER, LEAST_DAMAGE, LOOKED_AT, NOTHING
from attention_sieve.core.importance.usage import LABELLED_TEXTS, importance_summary
from attention_sieve.core.importance.wording import NEEDS
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.usage import HEAD_COLUMNS, Example, SecondTable, Usage

if TYPE_CHECKING:
    import pandas as pd

KINDS: Final[Mapping[str, str]] = {
    "gradient per token": "gradients",
    "gradient per text": "gradients",
    "gradient per batch": "gradients",
    "attribution against zero": "gradients",
    "attribution against mean": "gradients",
    "wanda-sp": "wanda-sp and flap",
    "flap": "wanda-sp and flap",
    "confidence": "confidence",
    "relevance": "relevance",
}
"""Name of each measure -> key in `ways_to_measures`; the metric output has no attributions."""
TESTED: Final = {
    "without": "metric without this head",
    "delta": "without - full",
    "low": "lower end of the 95% confidence interval of delta",
    "high": "upper end of this interval",
    "p": 'two-sided p-value of "no change", the larger of a sign-flip test and a bootstrap-t test over texts, or over '
    "documents if these are known",
    "p_adjusted": "p after correction over all heads",
}
ABLATION_COLUMNS: Final = {
    **HEAD_COLUMNS,
    "full": "metric with all heads on; 0 for the metric output",
    **TESTED,
}
SINGLE_HEAD_COLUMNS: Final = {
    "layer": "index of the layer, from 0",
    "even_head": "the head that is best on every second text, from the first on",
    "odd_head": "the head that is best on every second text, from the second on",
    "full": "metric with all heads on",
    **TESTED,
    "without": "metric of each half of the texts with only the head on that is best on the other half",
    "p_adjusted": "p after correction over all layers",
}
IMPORTANCE_COLUMNS: Final = {
    "measure": "name of the measure",
    **HEAD_COLUMNS,
    "value": "importance of the head; larger is more important",
    "unreliable": "whether a first-order measure (gradients, attributions, relevance) errs, as where a softmax or a "
    f"prediction is saturated: it gives at most {NOTHING:.0%} of its greatest value (attributions: of the damage) to a "
    f"head whose damage by ablation is at least {LEAST_DAMAGE:.0%} of the greatest, or the wrong sign to one with at "
    f"least {NOTHING:.0%}, in 95% of resamples of the ablated texts; empty for other measures",
    "exact": "damage by ablation of a head for which the measure is unreliable, over all texts, or with --no-ablation "
    f"over {LOOKED_AT} of them",
}
AGREEMENT_COLUMNS: Final = {
    "measure": "name of the measure",
    "layer": "index of the layer, from 0; empty for the correlation over all heads",
    "spearman": "rank correlation with ablation",
    "low": "lower end of its 95% bootstrap interval over texts",
    "high": "upper end of this interval",
}


def ways_to_measures(
    ask: Ask, items: Sequence[LabelledText], metric: Metric, *, normalised: bool = False
) -> Mapping[str, Callable[[], list[Measure]]]:
    """Functions that compute each kind of measure except ablation; each raises AnalysisError if the checkpoint does not
    support it.

    Args:
        items: the texts; with labels, if the metric needs them.
        normalised: whether gradient measures are divided by the norm of their layer.
    """
    texts = [item.text for item in items]

    def gradients() -> list[Measure]:
        slopes = ask(slopes_question(metric), items, "gradients")
        by_gradient = gradient_measures(slopes, normalised)
        # The metric output has no gradient of its own; the random direction used instead has no meaningful sign.
        if metric == "output":
            return by_gradient
        return [*by_gradient, *attributions(slopes, ask(HEAD_OUTPUTS, texts, "outputs of heads"))]

    def by_outputs() -> list[Measure]:
        outputs = ask(HEAD_OUTPUTS, texts, "outputs of heads")
        shortest = min(texts, key=lambda text: sum(map(len, text.segments)))  # any text would do
        return output_measures(outputs, *ask(OUTPUT_WEIGHTS, [shortest], "weights of outputs"))

    def by_confidence() -> list[Measure]:
        surfaces = SURFACE_ANALYSIS.answers(ask, tuple(texts), SURFACE_ANALYSIS.settings)
        return [confidence(np.stack([surface.confidence for surface in surfaces]))]

    def by_relevance() -> list[Measure]:
        return [relevance(ask(relevance_question(metric), texts, "relevance"))]

    return {
        "gradients": gradients,
        "wanda-sp and flap": by_outputs,
        "confidence": by_confidence,
        "relevance": by_relevance,
    }


def cheap_measures(
    ask: Ask, items: Sequence[LabelledText], metric: Metric, *, normalised: bool = False
) -> CheapMeasures:
    """All measures except ablation that a checkpoint supports; arguments as of `ways_to_measures`."""
    measures: list[Measure] = []
    left_out = []
    for name, compute in ways_to_measures(ask, items, metric, normalised=normalised).items():
        try:
            measures += compute()
        except AnalysisError as error:
            left_out.append((name, str(error)))
    return CheapMeasures(measures=tuple(measures), left_out=tuple(left_out))


def ablation_table(finding: AblationFinding) -> "pd.DataFrame":
    """A row per head, with ABLATION_COLUMNS."""
    import pandas as pd  # which the first page does without

    effects = finding.effects
    layer, head = np.indices(effects.delta.shape)
    tested = {name: getattr(effects, name).ravel() for name in TESTED}
    return pd.DataFrame({"layer": layer.ravel(), "head": head.ravel(), "full": effects.full, **tested})


def single_head_table(finding: AblationFinding) -> "pd.DataFrame":
    """A row per layer, with SINGLE_HEAD_COLUMNS."""
    import pandas as pd

    (even, odd), effects = finding.kept.head, finding.kept.effects
    tested = {name: getattr(effects, name) for name in TESTED}
    columns = {"layer": np.arange(len(even)), "even_head": even, "odd_head": odd, "full": effects.full}
    return pd.DataFrame({**columns, **tested})


def importance_table(finding: ImportanceFinding) -> "pd.DataFrame":
    """A row per measure and head, with IMPORTANCE_COLUMNS."""
    import pandas as pd

    parts = []
    for measure, values in finding.values.items():
        layer, head = (axis.ravel() for axis in np.indices(values.shape))
        errs = finding.unreliable.get(measure)
        exact = np.full(values.shape, np.nan)
        if errs is not None and finding.exact is not None:
            exact[errs] = finding.exact[errs]
        parts.append(
            pd.DataFrame(
                {
                    "measure": measure,
                    "layer": layer,
                    "head": head,
                    "value": values.ravel(),
                    "unreliable": pd.array([None] * values.size if errs is None else errs.ravel(), "boolean"),
                    "exact": exact.ravel(),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def agreement_table(finding: ImportanceFinding) -> "pd.DataFrame":
    """A row per measure and layer, with AGREEMENT_COLUMNS; first the correlation over all heads."""
    import pandas as pd

    parts = []
    for agreement in finding.agreements.values():
        layer = pd.array([None, *range(len(agreement.spearman) - 1)], dtype="Int64")
        correlations = {name: getattr(agreement, name) for name in ("spearman", "low", "high")}
        parts.append(pd.DataFrame({"measure": agreement.measure, "layer": layer, **correlations}))
    return pd.concat(parts, ignore_index=True)


def _measured(
    ask: Ask, items: Items, settings: ImportanceSettings
) -> tuple[tuple[TextOutcomes, ...] | None, CheapMeasures]:
    cheap = cheap_measures(ask, items, settings.metric_settings.metric, normalised=settings.normalise)
    if not settings.no_ablation:
        return ablated(ask, items, settings), cheap
    if not any(measure.name in FIRST_ORDER for measure in cheap.measures):
        return None, cheap
    compared = tuple(items[index] for index in compared_texts(len(items), settings))
    try:
        outcomes = ablated(ask, compared, settings)
        if len(outcomes) < len(compared):
            raise AnalysisError("Some of the texts that are compared are too long. Leave out such texts.")
    except AnalysisError as error:
        return None, replace(cheap, left_out=(*cheap.left_out, ("a comparison with ablation", str(error))))
    return outcomes, cheap


def _check_halves(reading: Reading[LabelledText], _: AblationSettings) -> None:
    """Raise AnalysisError for too few texts to choose a head on one half of them."""
    halves([reading.inputs[index].text.document for index in sorted(reading.prepared)])


def _check_ablation(_: Reading[LabelledText], settings: ImportanceSettings) -> None:
    if settings.no_ablation:
        raise AnalysisError("Agreement is measured against ablation. Leave out either --no-ablation or --agreement.")


ABLATION_DETAILS: Final = """\
A larger output change or loss is worse; a larger accuracy, matthews, f1 or pearson is better. The output change
cannot be below 0, so for that metric p only shows that a head has any effect. A masked language model predicts 15%
of the tokens of each text, always the same ones; other language models predict every token after the first."""
IMPORTANCE_DETAILS: Final = """\
Measures that this checkpoint does not support are left out, with the reason on standard error. The command prints
the rank correlation of each measure with ablation, and how much of the relevance arrives at the tokens.

Measures:
    ablation: how much worse the metric is without the head
    gradient per token, text or batch: absolute value of the head's output times its gradient, taken per token, per
        text or per batch
    attribution against zero, against mean: first-order estimate of how much the loss rises when the head's output
        is replaced by zero, or by its mean
    wanda-sp, flap: pruning scores, computed from outputs and weights
    confidence: largest attention weight of a query, mean over queries
    relevance: share of the head in the relevance of its layer, by layer-wise relevance propagation"""
SINGLE_HEAD_ANALYSIS: Final[Analysis[LabelledText, LabelledText, TextOutcomes, AblationSettings, AblationFinding]] = (
    Analysis(
        name="single_heads",
        sentence="Keep one head of a layer at a time and measure how a metric of the model changes; a row per layer.",
        settings=AblationSettings(),
        text_of=lambda item: item.text,
        question=lambda settings: ablation_question(settings.metric_settings.metric, alone=True),
        collect=lambda ask, items, settings: ablated(ask, items, settings, alone=True),
        judge=AblationFinding,
        table=single_head_table,
        columns=SINGLE_HEAD_COLUMNS,
        facts=lambda finding, _: finding.facts(finding.kept.effects),
        usage=Usage(command=None, inputs=LABELLED_TEXTS),
    )
)
"""How a metric changes when a layer keeps only its best head, which is chosen on the other half of the texts.

Source: Michel et al. 2019, section 3.3.
"""
ABLATION_ANALYSIS: Final[Analysis[LabelledText, LabelledText, TextOutcomes, AblationSettings, AblationFinding]] = (
    Analysis(
        name="ablation",
        sentence="Ablate each head in turn and measure how a metric of the model changes; a row per head.",
        settings=AblationSettings(),
        text_of=lambda item: item.text,
        question=lambda settings: ablation_question(settings.metric_settings.metric),
        collect=ablated,
        judge=AblationFinding,
        table=ablation_table,
        columns=ABLATION_COLUMNS,
        facts=lambda finding, _: finding.facts(finding.effects),
        usage=Usage(
            command="ablate",
            details=ABLATION_DETAILS,
            more=f"\n\n{NEEDS}",
            inputs=LABELLED_TEXTS,
            second={
                "keep_one": SecondTable(
                    sentence="the effect of keeping only the best head of each layer, which is chosen on one half of "
                    "the texts and evaluated on the other",
                    columns=SINGLE_HEAD_COLUMNS,
                    analysis=SINGLE_HEAD_ANALYSIS,
                    check=_check_halves,
                ),
                "backups": SecondTable(
                    sentence="the damage by heads that look at the same, ablated together, beyond that of each alone",
                    columns=BACKUP_COLUMNS,
                    analysis=BACKUP_ANALYSIS,
                    check=check_no_vectors,
                ),
            },
            notes=lambda finding: filter(None, (finding.without_verdict(finding.effects),)),
            example=Example(keywords='replace="mean"'),
        ),
    )
)
"""How a metric changes when each head is ablated in turn.

Source: Michel et al. 2019, section 3.2.
"""
IMPORTANCE_ANALYSIS: Final[Analysis[LabelledText, LabelledText, Any, ImportanceSettings, ImportanceFinding]] = Analysis(
    name="importance",
    sentence="Measure the importance of each head in several ways; a row per measure and head.",
    settings=ImportanceSettings(),
    text_of=lambda item: item.text,
    question=lambda _: SURFACE_ANALYSIS.question(SURFACE_ANALYSIS.settings),
    collect=_measured,
    judge=ImportanceFinding,
    table=importance_table,
    columns=IMPORTANCE_COLUMNS,
    facts=lambda finding, settings: {
        **metric_facts(settings),
        "estimates compared with ablation": f"over {len(finding.compared):,} of {len(finding.items):,} texts",
        "relevance rule": RELEVANCE_RULE,
        "gradients by layer norm": "yes" if settings.normalise else "no",
    },
    usage=Usage(
        details=IMPORTANCE_DETAILS,
        inputs=LABELLED_TEXTS,
        second={
            "agreement": SecondTable(
                sentence="rank correlation (Spearman) of each measure with ablation",
                columns=AGREEMENT_COLUMNS,
                table=agreement_table,
                check=_check_ablation,
            )
        },
        notes=lambda finding: (f"Without {name}: {reason}" for name, reason in finding.cheap.left_out),
        summary=importance_summary,
        example=Example(keywords="no_ablation=True"),
    ),
)
"""The importance of each head by ablation, and by cheaper measures that the checkpoint supports.

Source: of each measure, `attention_sieve.core.importance.measures`.
"""
