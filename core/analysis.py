"""The table of contents: the analyses of the heads of a checkpoint, and one call for each question that is none yet.

Every call passes texts through the checkpoint, without a cache, and returns the result of its package in `core`. The
commands of `python -m attention_sieve` answer the same questions for files, and `attention_sieve.cache.inference` for a
store.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.comparison.differences import PairedTests, paired_tests
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.effects import Effects, effects
from attention_sieve.core.importance.metrics import SCORE_NAMES, mean_score
from attention_sieve.core.importance.question import HEAD_OUTPUTS, Replace, ablation_question, mean_outputs
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.passes.prepare import prepare_all
from attention_sieve.core.passes.question import Item, Question, Result, answer
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.surface.analysis import GRADIENT_ANALYSIS, SURFACE_ANALYSIS
from attention_sieve.core.texts.text import Text
from attention_sieve.core.word_links.analysis import WORD_LINK_ANALYSIS

ANALYSES: Final = (
    ROLE_ANALYSIS,
    SURFACE_ANALYSIS,
    GRADIENT_ANALYSIS,
    RELATION_ANALYSIS,
    COREFERENCE_ANALYSIS,
    WORD_LINK_ANALYSIS,
    SIMILARITY_ANALYSIS,
)
"""Analyses that are values, for `attention_sieve.core.answering.find`; the others still are functions below."""
USUAL_CRITERION: Final = Criterion()


def results(
    checkpoint: Checkpoint,
    question: Question[Item, Result],
    items: Sequence[Item],
    settings: PassSettings | None = None,
) -> list[Result]:
    """Any question's results for items, in their order.

    Args:
        checkpoint: loaded, from `attention_sieve.core.checkpoints.find.load_checkpoint`.
        question: the question to answer.
        items: one or more.
        settings: which attention, and which heads are off; None for the checkpoint's first attention, all heads on.

    Raises: TextTooLong for the first text that is longer than the checkpoint accepts; NoTokens; PairNeeded;
        AnalysisError for a kind of attention that the question does not support.
    """
    settings = settings or PassSettings(checkpoint.files.kinds[0])
    prepared, _ = prepare_all(checkpoint, [question.text_of(item) for item in items], settings, "error")
    by_index = dict(indexed for batch in answer(checkpoint, question, items, prepared, settings) for indexed in batch)
    return [by_index[index] for index in range(len(items))]


def comparison(
    a: Float[np.ndarray, "text role layer head"],
    b: Float[np.ndarray, "text role layer head"],
    criterion: Criterion = USUAL_CRITERION,
) -> PairedTests:
    """How the mean scores of a second checkpoint differ from those of the first on the same texts."""
    return paired_tests(a, b, ROLES, alpha=criterion.alpha, correction=criterion.correction, family=criterion.family)


def ablations(
    checkpoint: Checkpoint,
    texts: Sequence[Text],
    settings: PassSettings | None = None,
    metric: Metric = "output",
    replace: Replace = "zero",
) -> Effects:
    """Effect of ablating each head: on the vector of a text, or on the loss of its language model.

    Accuracy on labelled texts: `results` of `attention_sieve.core.importance.question.ablation_question("labels")`,
    scored by `attention_sieve.core.importance.metrics.label_score`.

    Raises: AnalysisError for a metric that the checkpoint does not support, and for labels.
    Source: Michel et al. 2019, section 3.2.
    """
    if metric == "labels":
        raise AnalysisError("The metric labels needs labels, which texts alone do not have. Choose output or lm.")
    means = mean_outputs(results(checkpoint, HEAD_OUTPUTS, texts, settings)) if replace == "mean" else None
    outcomes = results(checkpoint, ablation_question(metric, means=means), texts, settings)
    return effects(outcomes, mean_score(SCORE_NAMES[metric][0]), [text.document for text in texts])
