"""The analysis of word links: how much each head attends from one word of a pattern to the other, as one value."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from attention_sieve.core.answering import Analysis, text_itself
from attention_sieve.core.statistics.means import Correction, check_alpha, documents_fact
from attention_sieve.core.texts.parsers import trees_source
from attention_sieve.core.word_links.on_corpus import PatternLinks, pattern_links
from attention_sieve.core.word_links.pattern import Pattern, PatternAttention, PatternText
from attention_sieve.core.word_links.question import WORD_LINKS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class WordLinkSettings:
    """The pattern, and the level of the tests.

    Raises: AnalysisError for an alpha that is not between 0 and 1.
    """

    pattern: Pattern
    alpha: Annotated[float, "significance level of tests; confidence intervals cover 1 - alpha"] = 0.05
    correction: Annotated[
        Correction, "correction of p-values for all heads: Benjamini-Hochberg (bh), Holm (holm) or none"
    ] = "bh"

    def __post_init__(self) -> None:
        check_alpha(self.alpha)


@dataclass(frozen=True, eq=False)
class WordLinkFinding:
    """How much every head links the words of a pattern, over the texts that have it."""

    items: tuple[PatternText, ...]
    answers: tuple[PatternAttention, ...]
    settings: WordLinkSettings

    @cached_property
    def links(self) -> PatternLinks:
        """Means over the texts, with intervals and tests.

        Raises: AnalysisError if no text has a pair whose first word can attend to the second.
        """
        documents = [item.text.document for item in self.items]
        alpha, correction = self.settings.alpha, self.settings.correction
        return pattern_links(self.answers, documents, alpha=alpha, correction=correction)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        pattern = self.settings.pattern
        return {
            "from": pattern.query or "any word",
            "to": pattern.key or "any word",
            "relation": pattern.relation or "none",
            "from head": "no" if pattern.from_dependent else "yes",
            "relations": trees_source(item.text for item in self.items),
            "documents": documents_fact(self.links.n_documents),
            "alpha": str(self.settings.alpha),
            "correction": self.settings.correction,
        }


COLUMNS: Final = {
    "layer": "index of the layer, from 0",
    "head": "index of the head, from 0",
    "texts": "number of texts with the pattern",
    "pairs": "number of its pairs of words in which the first can attend to the second",
    "share": "attention from the first word to the second, mean over texts",
    "low": "lower end of the confidence interval of the share",
    "high": "upper end of this interval",
    "even": "share that uniform attention would give",
    "compared_texts": "number of texts that have other words at the distance of a pair",
    "compared": "in these texts, the share",
    "others": "in these texts, the attention between those other words",
    "p": "one-sided p-value of compared being above others (paired t-test), corrected for all heads",
    "beats": "whether p is below alpha and the share is clearly above even",
}


def word_link_table(finding: WordLinkFinding) -> "pd.DataFrame":
    """A row per layer and head, with COLUMNS."""
    import pandas as pd  # which the first page does without

    links = finding.links
    layer, head = (index.ravel() for index in np.indices(links.shares.shape))
    return pd.DataFrame(
        {
            "layer": layer,
            "head": head,
            "texts": links.n_texts,
            "pairs": links.n_pairs,
            "share": links.shares.ravel(),
            "low": links.low.ravel(),
            "high": links.high.ravel(),
            "even": links.even[layer],
            "compared_texts": links.n_compared,
            "compared": links.compared.ravel(),
            "others": links.others.ravel(),
            "p": links.p.ravel(),
            "beats": links.beats(finding.settings.alpha).ravel(),
        }
    )


WORD_LINK_ANALYSIS: Final = Analysis(
    name="word_links",
    settings=WordLinkSettings(pattern=Pattern(relation="nsubj")),
    text_of=text_itself,
    items=lambda _, trees, settings: [PatternText.of(text, tree, settings.pattern) for text, tree in trees],
    question=lambda _: WORD_LINKS,
    judge=WordLinkFinding,
    table=word_link_table,
    columns=COLUMNS,
    facts=lambda finding, _: finding.facts,
)
"""Attention from the first word of a pattern to the second, against other words at the same distance."""
