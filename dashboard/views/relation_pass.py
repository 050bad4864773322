"""Trees of the corpus, guesses of every head on it, and what they come to; those of random weights, too."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final

import streamlit as st

from cache.inference import Engine, Inference, Report, Status
from cache.parsing import PREDICTIONS, ParsedText, found_predictions
from cache.recent import Recent
from core.analysis import queries_text
from core.checkpoints import randomly_initialised
from core.parses import Dependencies, dependencies
from core.parsing_heads import relation_accuracies
from core.texts import Text
from dashboard import wording as shared_wording
from dashboard.progress import with_progress
from dashboard.state import Choice
from dashboard.views.asking import asked
from dashboard.views.corpus import policy
from dashboard.views.relation_results import Asked, Relations

TREES: Final = 20_000
"""Texts whose trees stay in memory: parsing takes longer than anything else that a click asks for again."""
PARSED_PER_REPORT: Final = 20
RESULTS_BYTES: Final = 96 * 2**20
"""Of guesses that stay in memory, with what they come to."""


def relations_of(
    inference: Inference, engine: Engine, chosen: Choice, texts: tuple[Text, ...], how: Asked
) -> Relations | None:
    """Guesses of every head and how often they are right; None where the reader has to do something first.

    Raises: AnalysisError of any stage.
    """
    settings = chosen.pass_settings(engine)
    question = (engine, settings, policy(), texts, how.from_word, how.parsing, chosen.criterion.alpha)
    found = _results().get(question)
    if found is None:
        read = tuple(queries_text(text, settings.kind) for text in texts)
        trees = trees_of(read)
        found = None if trees is None else _relations(inference, engine, chosen, texts, read, trees, how)
        if found is None:
            return None
        _results().put(question, found, sum(one.predicted.nbytes for one in found.predictions))
    return found


def control_of(
    inference: Inference, engine: Engine, chosen: Choice, texts: tuple[Text, ...], how: Asked
) -> Relations | None:
    """The same of random weights of the same shape, with all heads on."""
    random = replace(engine, files=randomly_initialised(engine.files))
    return relations_of(inference, random, replace(chosen, off=()), texts, how)


def _relations(
    inference: Inference,
    engine: Engine,
    chosen: Choice,
    texts: tuple[Text, ...],
    read: tuple[Text, ...],
    trees: list[Dependencies],
    how: Asked,
) -> Relations | None:
    items = [ParsedText.of(text, tree.words, how.from_word) for text, tree in zip(texts, trees, strict=True)]
    answers = asked(inference, engine, chosen, PREDICTIONS, items)
    if answers is None:
        return None
    predictions = found_predictions(answers, trees)
    alpha = chosen.criterion.alpha
    return Relations(
        given=texts,
        texts=tuple(read[place] for place in answers.positions),
        positions=answers.positions,
        predictions=tuple(predictions),
        accuracies=relation_accuracies(predictions, how.parsing, alpha=alpha),
        by_row=relation_accuracies(predictions, replace(how.parsing, reading="row"), alpha=alpha),
        too_long=answers.too_long,
    )


def trees_of(texts: tuple[Text, ...]) -> list[Dependencies] | None:
    """The trees of texts; those that are missing are parsed under a progress bar, None where that is stopped."""
    known = _trees()
    found = {text: tree for text in texts if (tree := known.get(text)) is not None}
    missing = [text for text in dict.fromkeys(texts) if text not in found]
    if missing:
        parsed = with_progress(
            ("trees", tuple(missing)), lambda report: _parse(missing, len(found), report), shared_wording.PARSING
        )
        if parsed is None:
            return None
        found |= parsed
    return [found[text] for text in texts]


def _parse(texts: Sequence[Text], n_known: int, report: Report) -> dict[Text, Dependencies]:
    """Trees of texts, each kept as soon as it is there."""
    found = dict[Text, Dependencies]()
    for text, tree in zip(texts, dependencies(texts), strict=True):
        found[text] = tree
        _trees().put(text, tree, 1)
        if len(found) % PARSED_PER_REPORT == 0:
            done, total = n_known + len(found), n_known + len(texts)
            report(Status(done=done, total=total, seconds_left=None, n_waiting_before=0))
    return found


@st.cache_resource(show_spinner=False)
def _trees() -> Recent[Text, Dependencies]:
    """The trees of latest texts, whoever asked for them."""
    return Recent(TREES)


@st.cache_resource(show_spinner=False)
def _results() -> Recent[Hashable, Relations]:
    return Recent(RESULTS_BYTES)
