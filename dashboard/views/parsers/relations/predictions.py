"""Predictions of every head on the corpus and their accuracies, for the checkpoint and for random weights."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final

from attention_sieve.cache.store.recent import Recent
from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.passes.prepare import queries_text
from attention_sieve.core.relations.accuracy import TextPredictions, relation_accuracies
from attention_sieve.core.relations.question import ParsedText, prediction_question
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.progress import in_its_place
from attention_sieve.dashboard.views.asking import ask, policy
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.parsers.relations.results import RelationResults, RelationSettings
from attention_sieve.dashboard.views.parsers.trees import trees_of

RESULTS_BYTES: Final = 96 * 2**20
"""Size of the in-memory cache of predictions and their accuracies."""
_recent: Final[Recent[Hashable, RelationResults]] = Recent(RESULTS_BYTES)


@in_its_place
def relation_results(visit: Visit, settings: RelationSettings) -> RelationResults | None:
    """Predictions of every head and their accuracies; None where the reader has to do something first.

    Raises: AnalysisError of any stage.
    """
    alpha = visit.chosen.criterion.alpha
    key = (visit.engine, visit.settings, policy(), visit.texts, settings.from_word, settings.parsing, alpha)
    results = _recent.get(key)
    if results is None:
        texts = tuple(queries_text(text, visit.settings.kind) for text in visit.texts)
        trees = trees_of(texts)
        results = None if trees is None else _predict(visit, texts, trees, settings)
        if results is None:
            return None
        _recent.put(key, results, sum(of_text.n_bytes for of_text in results.predictions))
    return results


def random_results(visit: Visit, settings: RelationSettings) -> RelationResults | None:
    """The same results for a checkpoint of the same shape with random weights and all heads on."""
    random = replace(visit.engine, files=randomly_initialised(visit.engine.files))
    return relation_results(replace(visit, engine=random, chosen=replace(visit.chosen, off=())), settings)


def _predict(
    visit: Visit, texts: Sequence[Text], trees: Sequence[Dependencies], settings: RelationSettings
) -> RelationResults | None:
    items = [ParsedText.of(text, tree) for text, tree in zip(visit.texts, trees, strict=True)]
    answers = ask(visit, prediction_question(settings.from_word), items)
    if answers is None:
        return None
    predictions = [
        TextPredictions.of(trees[position], result, texts[position].document)
        for position, result in zip(answers.positions, answers.results, strict=True)
    ]
    alpha = visit.chosen.criterion.alpha
    return RelationResults(
        texts=tuple(texts[position] for position in answers.positions),
        positions=answers.positions,
        predictions=tuple(predictions),
        accuracies=relation_accuracies(predictions, settings.parsing, alpha=alpha),
        by_row=relation_accuracies(predictions, replace(settings.parsing, reading="row"), alpha=alpha),
        too_long=answers.too_long,
    )
