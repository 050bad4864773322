"""The analysis of backups as a value: heads that look at the same, ablated together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from attention_sieve.core.answering import Analysis, Ask, Reading
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.ablation import Items, ablated
from attention_sieve.core.importance.backups import (
    HIDDEN,
    SAME,
    BackupAnswers,
    BackupFinding,
    gates_of,
    sets_of_alike,
)
from attention_sieve.core.importance.measures import output_measures
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import (
    BACKUP_DISTANCES,
    HEAD_OUTPUTS,
    OUTPUT_WEIGHTS,
    ablation_question,
    gated_question,
    mean_outputs,
)
from attention_sieve.core.importance.settings import AblationSettings, MetricSettings
from attention_sieve.core.importance.unreliable import LEAST_DAMAGE, NOTHING, some_texts
from attention_sieve.core.importance.usage import LABELLED_TEXTS
from attention_sieve.core.importance.verdicts import ALPHA
from attention_sieve.core.usage import A_DECODER, Example, Usage

if TYPE_CHECKING:
    import pandas as pd

BACKUP_COLUMNS: Final = {
    "heads": "the heads that are ablated together, as layer-head",
    "distance": "how differently they attend: of any two of them the Jensen-Shannon divergence between where one looks "
    "and where the other looks while the first is ablated, or the reverse, in nats; of three or more the largest",
    "together": "how much worse the score is without all of them",
    "most_alone": "how much worse it is without one of them alone, the one that matters most",
    "beyond": "together minus the sum of how much worse it is without each alone",
    "low": "lower end of the 95% confidence interval of beyond",
    "high": "upper end of this interval",
    "p": 'two-sided p-value of "nothing beyond", as of the other table',
    "p_adjusted": "p after correction over all rows",
    "redundant": f"whether they stand in for one another: together is at least {LEAST_DAMAGE:.0%} of the greatest, at "
    f"least {HIDDEN:.0%} of it is beyond, p_adjusted, if there is one, is below {ALPHA:g}, and no row has fewer of "
    "these heads alone that do",
}
NO_BACKUPS_OF_VECTORS: Final = (
    "The change of a text vector grows with the square of what heads write, so that two that write the same change it "
    "by more than both alone although neither stands in for the other. Choose another metric: lm or labels."
)


def backup_table(finding: BackupFinding) -> "pd.DataFrame":
    """A row per set of heads, with BACKUP_COLUMNS; none if no two heads look at the same."""
    import pandas as pd

    effects = finding.effects
    tested = {name: getattr(effects, name) for name in BACKUP_COLUMNS if hasattr(effects, name)}
    heads = [",".join(f"{layer}-{head}" for layer, head in heads) for heads in finding.sets]
    return pd.DataFrame(
        {"heads": pd.array(heads, "str"), "distance": finding.distances, **tested, "redundant": finding.is_redundant}
    )


def _backups(ask: Ask, items: Items, settings: AblationSettings) -> tuple[BackupAnswers]:
    """Ablate each head alone, and together those that look at the same.

    Raises: AnalysisError for a change of the text vector.
    """
    metric, texts = settings.metric_settings.metric, [item.text for item in items]
    if metric == "output":
        raise AnalysisError(NO_BACKUPS_OF_VECTORS)
    outputs = ask(HEAD_OUTPUTS, texts, "outputs of heads")
    shortest = min(texts, key=lambda text: sum(map(len, text.segments)))  # any text would do
    size = output_measures(outputs, *ask(OUTPUT_WEIGHTS, [shortest], "weights of outputs"))[0].values(len(outputs))
    some = [shortest, *(texts[index] for index in some_texts(len(texts)) if texts[index] != shortest)]
    distances = np.mean(ask(BACKUP_DISTANCES, some, "comparing heads with each one off"), axis=0, dtype=float)
    sets = sets_of_alike(distances, size > NOTHING**2 * np.nanmax(size))  # of squares
    means = mean_outputs(outputs) if settings.replace == "mean" else None
    alone = ablated(ask, items, settings)
    together = np.stack([outcome.full for outcome in alone])[:, None]
    if sets:
        question = gated_question(metric, gates_of(sets, size.shape), means)
        together = np.stack(ask(question, texts, "ablating several heads together"))
    return (BackupAnswers(sets=sets, distances=distances, alone=alone, together=together[:, : len(sets)]),)


def _notes(finding: BackupFinding) -> Iterator[str]:
    """That no two heads look at the same, or which tests are not possible."""
    if not finding.sets:
        yield (
            f"No two heads look at the same: their attention differs by more than {SAME:g} nats, of at most "
            f"{np.log(2):.2f}. So none is known that could stand in for another."
        )
    elif finding.without_verdict:
        yield finding.without_verdict


def check_no_vectors(_: Reading[LabelledText], settings: AblationSettings) -> None:
    """Raise AnalysisError for a change of the text vector."""
    if settings.metric_settings.metric == "output":
        raise AnalysisError(NO_BACKUPS_OF_VECTORS)


BACKUP_ANALYSIS: Final[Analysis[LabelledText, LabelledText, Any, AblationSettings, BackupFinding]] = Analysis(
    name="backups",
    sentence="Ablate heads that look at the same together, and measure what goes beyond the damage of each alone; a "
    "row per set of heads.",
    settings=AblationSettings(metric_settings=MetricSettings(metric="lm")),
    text_of=lambda item: item.text,
    question=lambda settings: ablation_question(settings.metric_settings.metric),
    collect=_backups,
    judge=lambda items, answers, settings: BackupFinding(items, answers[0], settings),
    table=backup_table,
    columns=BACKUP_COLUMNS,
    facts=lambda finding, _: finding.facts,
    usage=Usage(
        command=None,
        inputs=LABELLED_TEXTS,
        notes=_notes,
        example=Example(keywords='tokenizer=sieve.load("bundled").tokenizer', model="model", before=A_DECODER),
    ),
)
"""Which heads stand in for one another, so that none of them matters alone.

Source: Wang et al. 2022, section 3.4 (backup heads); McGrath et al. 2023 (the Hydra effect).
"""
