"""The analysis of word links as one value: how much each head attends from one word of a pattern to the other.

Heads that link the words over many texts are compared with evenly spread attention and with other words at the same
distance. Units are documents where these are known, else texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.answering import Analysis, Question, as_fields, in_single_precision, text_alone, text_itself
from attention_sieve.core.attention.settings import ONE_STACK, Head, PassSettings, Window, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.statistics import means
from attention_sieve.core.statistics.cases import N_HALVES
from attention_sieve.core.texts.parsers import trees_source
from attention_sieve.core.texts.text import Text
from attention_sieve.core.usage import HEAD_COLUMNS, Example, Option, Usage
from attention_sieve.core.word_links.habits import SumsByDistance, text_distances, word_attention
from attention_sieve.core.word_links.pattern import Pattern, PatternAttention, PatternText
from attention_sieve.core.wording import documents_note

if TYPE_CHECKING:
    import pandas as pd


def _compute(
    checkpoint: Checkpoint, texts: Sequence[PatternText], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, PatternAttention]]]:
    from attention_sieve.core.word_links.observer import pattern_attention

    return pattern_attention(checkpoint, texts, prepared, settings)


def _depends_on(item: PatternText) -> Mapping[str, object]:
    words = {"segments": item.segments, "spans": item.spans}
    return {**text_alone(item.text), **words, "pairs": item.pairs, "others": item.others}


WORD_LINKS: Question[PatternText, PatternAttention] = Question(
    name="word links",
    text_of=lambda item: item.text,
    depends_on=_depends_on,
    compute=_compute,
    pack=in_single_precision,
    unpack=lambda arrays: PatternAttention(**as_fields(arrays)),
    kinds=(*ONE_STACK, "encoder"),
    why_not="A pattern is of words of one text, but decoder and cross-attention need two. Choose encoder attention.",
)


def _distances(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, SumsByDistance]]]:
    from attention_sieve.core.passes.batches import MapCollector, collect

    layers = checkpoint.attentions[settings.kind]
    for batch in collect(checkpoint, prepared, settings, MapCollector):
        results = []
        for index, attention in batch:
            text = prepared[index]
            whole = Window((0, len(text.queries.ids)), (0, len(text.keys.ids)))
            text_attention = TextAttention(
                text=text,
                causal=layers.causal,
                window=whole,
                attention=attention,
                block=0,
                overview=None,
                reaches=layers.reaches,
            )
            results.append((index, text_distances(word_attention(text_attention))))
        yield results


DISTANCES: Question[Text, SumsByDistance] = Question(
    name="attention between words by distance",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_distances,
    pack=in_single_precision,
    unpack=lambda arrays: SumsByDistance(**arrays),
    kinds=(*ONE_STACK, "encoder", "decoder"),
    why_not="Words are compared with others of one text, but cross-attention joins two. Choose encoder attention.",
)


LEAST_GAIN: Final = 0.1
"""Minimum excess of a share over that of evenly spread attention, as a part of it: with enough texts, even a tiny
excess is significant."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutLink:
    """The head with the greatest mean share on each half of the units, on the other half; both results pooled."""

    heads: tuple[Head, Head]
    """Best on the texts or documents with even numbers, and on those with odd numbers."""
    share: float
    """Mean attention, 0 to 1."""
    low: float
    high: float
    """Interval of that mean."""
    others: float
    """Mean attention of the same heads between other words at the same distance; NaN where no text has such words."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PatternLinks:
    """How much every head attends from the first word of a pattern to the second."""

    n_texts: int
    """Texts with a pair whose first word can attend to the second."""
    n_pairs: int
    """Number of such pairs in all texts."""
    n_documents: int | None
    """Documents of these texts, which are the units; None where no document is known, and texts are the units."""
    shares: Float[np.ndarray, "layer head"]
    """Attention from the first word to the second, 0 to 1: mean over texts of the mean over the pairs of a text."""
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    """Interval of that mean; NaN with one unit."""
    even: Float[np.ndarray, " layer"]
    """Share of evenly spread attention."""
    n_compared: int
    """Texts with other words at the distance of a pair."""
    compared: Float[np.ndarray, "layer head"]
    """As `shares`, over the pairs and texts with other words at their distance; NaN without any."""
    others: Float[np.ndarray, "layer head"]
    """Attention between those other words."""
    p: Float[np.ndarray, "layer head"]
    """One-sided p-value of the paired t-test over units that `compared` is above `others`, corrected over all heads;
    NaN with fewer than 2 units to compare."""
    held_out: HeldOutLink | None
    """None with one unit."""

    def beats(self, alpha: float) -> Bool[np.ndarray, "layer head"]:
        """Heads that attend from the first word to the second clearly more than evenly spread attention, and
        significantly more than between other words at the same distance.
        """
        return (self.p < alpha) & (self.shares > (1 + LEAST_GAIN) * self.even[:, None])


def pattern_links(
    texts: Sequence[PatternAttention],
    documents: Sequence[str | None] | None = None,
    *,
    alpha: float = 0.05,
    correction: means.Correction = "bh",
) -> PatternLinks:
    """Means over texts, with intervals and tests.

    Documents are the units of intervals and tests where these are known, because texts of one document are similar
    (attention_sieve.core.statistics.means); otherwise texts count as independent.

    Args:
        texts: results of `WORD_LINKS`.
        documents: name of each text's document, None for a text without one; None if no document is known.
        alpha: intervals cover 1 - alpha.
        correction: of the p-values over all heads.

    Raises: AnalysisError if no text has a pair whose first word can attend to the second.
    """
    with_pairs = [index for index, text in enumerate(texts) if text.n_pairs]
    if not with_pairs:
        raise AnalysisError("In no text with this pattern can the first word attend to the second. Choose other words.")
    texts = [texts[index] for index in with_pairs]
    numbers = None if documents is None else means.document_numbers([documents[index] for index in with_pairs])
    units = np.arange(len(texts)) if numbers is None else numbers
    shares, compared, others = (
        np.stack([getattr(text, name) for text in texts]).astype(np.float64)
        for name in ("shares", "compared", "others")
    )
    share_means, differences = _means(shares, units), _means(compared - others, units)
    low, high = means.share_interval(share_means, alpha)
    return PatternLinks(
        n_texts=len(texts),
        n_pairs=sum(text.n_pairs for text in texts),
        n_documents=None if numbers is None else share_means.n_documents,
        shares=share_means.mean,
        low=low,
        high=high,
        even=np.stack([text.even for text in texts]).mean(axis=0, dtype=np.float64),
        n_compared=differences.n_cases,
        compared=_means(compared, units).mean,
        others=_means(others, units).mean,
        p=means.adjusted(means.above_zero(differences), correction),
        held_out=_held_out(shares, others, units, alpha) if share_means.n_documents >= N_HALVES else None,
    )


def _means(values: Float[np.ndarray, "text *head"], units: Int[np.ndarray, " text"]) -> means.DocumentMeans:
    """Means over the texts with a value; these are the same texts for all heads that were not removed."""
    has_value = np.isfinite(values.reshape(len(values), -1)).any(axis=1)
    n_texts = np.unique(units[has_value], return_counts=True)[1]
    return means.document_means(means.document_sums(np.moveaxis(values[has_value], 0, -1), units[has_value]), n_texts)


def _held_out(
    shares: Float[np.ndarray, "text layer head"],
    others: Float[np.ndarray, "text layer head"],
    units: Int[np.ndarray, " text"],
    alpha: float,
) -> HeldOutLink:
    heads, best_heads = [], np.zeros((len(shares), 2), int)
    for half in range(N_HALVES):
        is_in_half = units % N_HALVES == half
        half_means = shares[is_in_half].mean(axis=0)
        # NaN: the head was removed.
        best = np.unravel_index(np.nan_to_num(half_means, nan=-1).argmax(), half_means.shape)
        layer, head = (int(index) for index in best)
        heads.append((layer, head))
        best_heads[~is_in_half] = layer, head
    indices = (np.arange(len(shares)), *best_heads.T)
    held_out = _means(shares[indices], units)
    low, high = means.share_interval(held_out, alpha)
    return HeldOutLink(
        heads=(heads[0], heads[1]),
        share=float(held_out.mean),
        low=float(low),
        high=float(high),
        others=float(_means(others[indices], units).mean),
    )


@dataclass(frozen=True, kw_only=True)
class WordLinkSettings:
    """The pattern, and the level of the tests.

    Raises: AnalysisError for an alpha that is not between 0 and 1.
    """

    pattern: Pattern
    alpha: Annotated[float, "significance level of tests; confidence intervals cover 1 - alpha"] = 0.05
    correction: Annotated[
        means.Correction, "correction of p-values for all heads: Benjamini-Hochberg (bh), Holm (holm) or none"
    ] = "bh"

    def __post_init__(self) -> None:
        means.check_alpha(self.alpha)


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
            "documents": "none" if self.links.n_documents is None else str(self.links.n_documents),
            "alpha": str(self.settings.alpha),
            "correction": self.settings.correction,
        }


COLUMNS: Final = {
    **HEAD_COLUMNS,
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


def _summary(links: PatternLinks) -> str:
    size = f"{links.n_pairs:,} pairs in {links.n_texts:,} texts."
    held_out = links.held_out
    if held_out is None:
        return f"{size} A single text or document gives no intervals, tests or held-out evaluation. Give more texts."
    names = " or ".join(dict.fromkeys(head_name(*head) for head in held_out.heads))
    return (
        f"{size} {names}, chosen on one half of the texts, gives {held_out.share:.1%} of its attention to the other "
        f"word in the other half ({held_out.low:.1%} to {held_out.high:.1%}); between other words at the same distance "
        f"{held_out.others:.1%}."
    )


DETAILS: Final = """\
If the file names documents, these are the units of intervals and tests; otherwise texts count as independent. The best
head of one half of the texts, evaluated on the other half, is printed to standard error."""
WORD_LINK_ANALYSIS: Final = Analysis(
    name="word_links",
    sentence="Measure which heads attend from one word to another, over all texts in which both occur; a row per head.",
    settings=WordLinkSettings(pattern=Pattern(relation="nsubj")),
    text_of=text_itself,
    items=lambda _, trees, settings: [PatternText.of(text, tree, settings.pattern) for text, tree in trees],
    question=lambda _: WORD_LINKS,
    judge=WordLinkFinding,
    table=word_link_table,
    columns=COLUMNS,
    facts=lambda finding, _: finding.facts,
    usage=Usage(
        details=DETAILS,
        parses=True,
        options={
            "query": Option(sentence="the word that attends (query); default: any word", flag="--from", metavar="WORD"),
            "key": Option(
                sentence="the word that is attended to (key); default: any word", flag="--to", metavar="WORD"
            ),
            "relation": Option(
                sentence="syntactic relation between the two, such as nsubj; default: any two words of a text"
            ),
            "from_head": Option(
                sentence="attention from the head of the --relation to its dependent, instead of from the dependent to "
                "its head",
                usual=False,
            ),
        },
        usual=lambda options: WordLinkSettings(
            pattern=Pattern(options.query, options.key, options.relation, from_dependent=not options.from_head)
        ),
        notes=lambda finding: (f"{_summary(finding.links)} {documents_note(finding.links.n_documents)}",),
        example=Example(keywords='relation="det"'),
    ),
)
"""Attention from the first word of a pattern to the second, against other words at the same distance."""
