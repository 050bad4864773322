"""Stored descriptions of all heads as sentences, for tooltips, tables and files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.dashboard.views.corpus import kept_corpus
from attention_sieve.dashboard.views.descriptions import wording
from attention_sieve.dashboard.views.descriptions.known import Described, kept_descriptions
from attention_sieve.dashboard.views.frame import Visit

if TYPE_CHECKING:
    import pandas as pd

Sentences = Sequence[Sequence[str]]
"""By layer and head."""
MOSTLY: Final = "mostly"
"""Column name in tables."""
_written: Final[WeakKeyDictionary[Described, Sentences]] = WeakKeyDictionary()
"""Sentences by description, needed again on every run of a page."""


def kept_sentences(visit: Visit, tests: HeadTests | None = None) -> Sentences | None:
    """The sentence of every head; None if that needs a pass or there are no texts.

    Args:
        tests: of the roles; by default those over the corpus.
    """
    if tests is None:
        tested = kept_corpus(visit) if visit.texts else None
        if tested is None:
            return None
        tests = tested.tests
    described = kept_descriptions(visit, tests)
    if described is None:
        return None
    if described not in _written:
        by_layer: dict[int, list[str]] = {}
        for (layer, _), description in described.heads.items():
            by_layer.setdefault(layer, []).append(wording.tip(description))
        _written[described] = list(by_layer.values())
    return _written[described]


def with_sentences(table: "pd.DataFrame", sentences: Sentences | None, column: str = MOSTLY) -> "pd.DataFrame":
    """Add the sentence of each head as the last column of a table; without sentences the table is unchanged.

    Args:
        table: with columns "layer" and "head", or head names in "head".
        column: name of the new column.
    """
    if sentences is None:
        return table
    by_name = {
        head_name(layer, head): sentence
        for layer, layer_sentences in enumerate(sentences)
        for head, sentence in enumerate(layer_sentences)
    }
    if "layer" in table:
        names = [head_name(layer, head) for layer, head in zip(table["layer"], table["head"])]
    else:
        names = table["head"].tolist()
    return table.assign(**{column: [by_name[name] for name in names]})
