"""The table of contents: the analyses of the heads of a checkpoint, and the answers to any question.

`attention_sieve.core.answering.find` makes an analysis without a cache, `attention_sieve.cache.inference` with a store.
"""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.answering import Item, Question, Result, answer
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.copying.analysis import COPY_ANALYSIS
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS, IMPORTANCE_ANALYSIS, SINGLE_HEAD_ANALYSIS
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.sinks import SINK_ANALYSIS
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.surface.analysis import GRADIENT_ANALYSIS, SURFACE_ANALYSIS
from attention_sieve.core.word_links.analysis import WORD_LINK_ANALYSIS

ANALYSES: Final = (
    ROLE_ANALYSIS,
    SINK_ANALYSIS,
    COPY_ANALYSIS,
    SURFACE_ANALYSIS,
    GRADIENT_ANALYSIS,
    RELATION_ANALYSIS,
    COREFERENCE_ANALYSIS,
    WORD_LINK_ANALYSIS,
    SIMILARITY_ANALYSIS,
    ABLATION_ANALYSIS,
    SINGLE_HEAD_ANALYSIS,
    BACKUP_ANALYSIS,
    IMPORTANCE_ANALYSIS,
)
"""For `attention_sieve.core.answering.find`."""


def results(
    checkpoint: Checkpoint,
    question: Question[Item, Result],
    items: Sequence[Item],
    settings: PassSettings | None = None,
) -> list[Result]:
    """Any question's results for items, in their order. Without settings, of the checkpoint's first attention with all
    heads on.

    Raises: TextTooLong for the first text that is longer than the checkpoint accepts; NoTokens; PairNeeded;
        AnalysisError for a kind of attention that the question does not support.
    """
    settings = settings or PassSettings(checkpoint.files.kinds[0])
    prepared, _ = prepare_all(checkpoint, [question.text_of(item) for item in items], settings, "error")
    by_index = dict(indexed for batch in answer(checkpoint, question, items, prepared, settings) for indexed in batch)
    return [by_index[index] for index in range(len(items))]
