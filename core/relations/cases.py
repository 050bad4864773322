"""Heads as parsers: texts with their trees, parsed or gold, what each head predicts for their words, and how often it
is right."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.answering import REMOVED
from attention_sieve.core.relations.settings import (
    AS_IN_PAPER,
    DIRECTIONS,
    OFFSETS,
    VOITA_MARGIN,
    Direction,
    Margin,
    Reading,
    RelationSettings,
)
from attention_sieve.core.statistics.cases import HeadCases, Joined, KeyMatched, judge
from attention_sieve.core.statistics.means import document_numbers
from attention_sieve.core.texts.relations import ROOT, ROOT_RELATION, Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import Words

NO_RELATION: Final = ("punct", ROOT_RELATION)
"""Relations that are not evaluated."""
POSSESSORS: Final = ("poss", "nmod:poss")
CLITICS: Final = ("possessive", "case")
NONE: Final = -1
"""Stands for no prediction."""


@dataclass(frozen=True)
class ParsedText:
    """A text with the tree of what its queries are, by content, so that it can be hashed."""

    text: Text
    segments: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """As in attention_sieve.core.texts.tokens.Words, of what the queries of the attention read
    (attention_sieve.core.passes.texts.queries_text)."""
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    """As in attention_sieve.core.texts.relations.Dependencies."""

    @classmethod
    def of(cls, text: Text, tree: Dependencies) -> "ParsedText":
        """A text with its parse, or the tree of its file."""
        spans = tuple((start, end) for start, end in tree.words.spans.tolist())
        return cls(text, tuple(tree.words.segments.tolist()), spans, tuple(tree.heads.tolist()), tree.relations)

    @property
    def tree(self) -> Dependencies:
        """The tree as arrays."""
        words = Words(segments=np.array(self.segments, int), spans=np.array(self.spans, int).reshape(-1, 2))
        return Dependencies(words=words, heads=np.array(self.heads, int), relations=self.relations)


@dataclass(frozen=True, eq=False, kw_only=True)
class WordPredictions:
    """Predictions of every head for the words of one text."""

    predicted: Int[np.ndarray, "direction layer head word"]
    """Index of the predicted head of each word, never the word itself. -1 for a word without tokens, or without
    attention to, or from, another word, such as the first word in a causal model or a single word. REMOVED for a head
    that was removed from the checkpoint."""
    has_tokens: Bool[np.ndarray, " word"]
    """As in attention_sieve.core.texts.tokens.WordMap: False for truncated words, and for words of characters unknown
    to the tokenizer."""
    to_head: Float[np.ndarray, "layer head word"]
    """Attention from each word to its syntactic head, 0 to 1; NaN for a root, where one of the two has no tokens, where
    the word cannot see its head, and for a head that was removed."""
    from_head: Float[np.ndarray, "layer head word"]
    """Attention to each word from its syntactic head; NaN as for `to_head`."""
    from_others: Float[np.ndarray, "layer head word"]
    """Mean attention to each word from the other words that can see it, punctuation included, except those that a
    relation joins to it (its dependents and its syntactic head); NaN where there are none. Special tokens are not
    words."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextPredictions(WordPredictions):
    """Predictions together with the text's relations."""

    dependencies: Dependencies
    document: str | None = None
    """As in attention_sieve.core.texts.text.Text."""

    @classmethod
    def of(
        cls, dependencies: Dependencies, predictions: WordPredictions, document: str | None = None
    ) -> "TextPredictions":
        """Combine predictions with the tree of a text, and its document."""
        return cls(
            dependencies=dependencies,
            document=document,
            **{field.name: getattr(predictions, field.name) for field in fields(WordPredictions)},
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationCases:
    """Every word of some texts, numbered consecutively through all texts."""

    names: tuple[str, ...]
    """Relations."""
    codes: Int[np.ndarray, " case"]
    """Relation of each case, as an index into `names`."""
    text: Int[np.ndarray, " case"]
    heads: Int[np.ndarray, " case"]
    """ROOT for a root."""
    distances: Int[np.ndarray, " case"]
    """Distance in words to the head, from the word or from the clitic at which the prediction is read, or from the same
    place in the head's segment where that is another; the head of a root counts as before the first word of its
    segment."""
    rooms: Int[np.ndarray, "2 case"]
    """Number of words before and after it in its segment, or in that of its head."""
    right: Bool[np.ndarray, "direction layer head case"]
    """Whether each head is right in each case."""
    absent: Bool[np.ndarray, "direction layer head"]
    """Attention heads that were removed from the checkpoint."""
    is_known: Bool[np.ndarray, " case"]
    """Whether the word, the word at which its prediction is read, and its head have tokens. Even then there may be no
    prediction, for example for a sentence of one word."""

    joined: Joined
    """Attention to the right word of every case, in both directions, and what other words give to the same word; not of
    a case that is read at a clitic. Its units are also those of halves."""
    by_document: bool
    """Whether documents are known, so that they are the units of halves, intervals and tests, and not the texts."""


def cases_of(
    texts: Sequence[TextPredictions], *, at_clitic: bool = False, reading: Reading = "column"
) -> RelationCases:
    """The words of one or more texts as cases, from predictions under one checkpoint.

    Args:
        at_clitic: whether a possessor's prediction is read at the 's that follows it.
        reading: how head-to-dependent is read.
    """
    trees = [text.dependencies for text in texts]
    sizes = [len(tree.heads) for tree in trees]
    text_numbers = np.repeat(np.arange(len(texts)), sizes)
    firsts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    heads = _global_indices(np.concatenate([tree.heads for tree in trees]), firsts)
    names, codes = _coded(list(chain.from_iterable(tree.relations for tree in trees)))
    guesses = _global_indices(np.concatenate([text.predicted for text in texts], axis=-1), firsts)
    is_tokenized = np.concatenate([text.has_tokens for text in texts])
    starts, ends = np.concatenate([_segment_ends(tree) for tree in trees], axis=1) + firsts
    words = np.arange(len(heads))
    # A pair may join two segments: the distance is then counted from the same place in the segment of its head.
    first_of_head, end_of_head = (np.where(heads == ROOT, own, own[heads]) for own in (starts, ends))
    read_at = words + (_has_clitic(names, codes, heads) if at_clitic else 0)
    predicted = guesses[..., read_at]
    right = (predicted == heads) & (heads != ROOT)
    if reading == "row":
        right = np.stack([right[0], np.where(heads == ROOT, NONE, guesses[0][..., heads]) == words])
    documents = document_numbers([text.document for text in texts])
    # A root has no right word (`to_right` is NaN), and its index, ROOT, reads any other word.
    to_right = np.concatenate([np.stack([text.to_head, text.from_head]) for text in texts], axis=-1)
    to_word = np.concatenate([text.from_others for text in texts], axis=-1)
    return RelationCases(
        names=names,
        codes=codes,
        text=text_numbers,
        heads=heads,
        distances=np.where(heads == ROOT, starts - 1, heads) - first_of_head - (read_at - starts),
        rooms=np.stack([read_at - starts, end_of_head - 1 - first_of_head - (read_at - starts)]),
        right=right,
        absent=(predicted == REMOVED).any(axis=-1),
        is_known=is_tokenized & is_tokenized[read_at] & ((heads == ROOT) | is_tokenized[heads]),
        joined=Joined(
            to_right=np.where(read_at != words, np.nan, to_right),
            from_others=np.stack([to_word[..., heads], to_word]),
            unit=text_numbers if documents is None else documents[text_numbers],
        ),
        by_document=documents is not None,
    )


def _global_indices(
    indices: Int[np.ndarray, "*shape word"], firsts: Int[np.ndarray, " word"]
) -> Int[np.ndarray, "*shape word"]:
    """Convert indices within each text to indices in all texts; NONE and REMOVED stay as they are."""
    return np.where(indices >= 0, indices + firsts, indices).astype(np.int32)


def _coded(relations: Sequence[str]) -> tuple[tuple[str, ...], Int[np.ndarray, " word"]]:
    codes = {name: code for code, name in enumerate(dict.fromkeys(relations))}
    return tuple(codes), np.array([codes[name] for name in relations], int)


def _segment_ends(text: Dependencies) -> Int[np.ndarray, "end word"]:
    """First and one past the last word of each word's segment."""
    segments = text.words.segments
    return np.stack([np.searchsorted(segments, segments), np.searchsorted(segments, segments, side="right")])


def _has_clitic(
    names: Sequence[str], codes: Int[np.ndarray, " word"], heads: Int[np.ndarray, " word"]
) -> Bool[np.ndarray, " word"]:
    """Possessors whose next word depends on them as a clitic."""
    relation = np.array([1 if name in POSSESSORS else 2 if name in CLITICS else 0 for name in names])[codes]
    followed = np.zeros(len(codes), bool)
    followed[:-1] = (relation[1:] == 2) & (heads[1:] == np.arange(len(heads) - 1))
    return followed & (relation == 1)


NAN: Final = float("nan")
ALL: Final = "all"
"""All relations together, by default without punct and root."""
NOWHERE: Final = -2
"""Stands for a word that no word's head is."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OffsetBaseline:
    """The best fixed offset of a relation: head = dependent + offset, in words."""

    offset: int
    share: float
    """Accuracy, 0 to 1."""
    shares: dict[int, float]
    """Accuracy of each offset."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationAccuracy:
    """Accuracy of every attention head at one relation."""

    relation: str
    n_cases: int
    """Dependents with this relation; both dependent and head have tokens."""
    n_left_out: int
    """Dependents that are excluded because they or their heads have no tokens (truncated or unknown)."""
    baseline: OffsetBaseline
    """Baseline on the same cases."""
    nearest: float
    """Accuracy of a baseline that knows which words are right in some case of its text, see `among_right_words`."""
    random_choice: float
    """Accuracy of a random choice among these words."""
    accuracy: Float[np.ndarray, "direction layer head"]
    """Share of the cases, 0 to 1; NaN for a head that was removed."""
    n_documents: int | None
    """Documents with cases; None if no document is known, so that texts are the units."""
    low: Float[np.ndarray, "direction layer head"]
    high: Float[np.ndarray, "direction layer head"]
    """Its interval; NaN with fewer than two documents, or texts if no document is known."""
    design_effect: Float[np.ndarray, "direction layer head"]
    """As in attention_sieve.core.statistics.cases.Judgement: of the variance of `accuracy`."""
    p_values: Float[np.ndarray, "direction layer head"]
    """p-values against the baseline, corrected for the number of heads and directions."""
    key_matched: KeyMatched
    """Attention to the right word against what other words give to the same word, by direction, layer and head. In both
    directions the right word is the one looked at: the syntactic head, then the dependent."""
    best: tuple[Direction, int, int]
    """Direction, layer and head with the highest accuracy on all cases, among those that beat this control on them, if
    any does."""
    best_of_halves: tuple[tuple[Direction, int, int], ...]
    """The best on the first, third, ... document, and on the second, fourth, ...; of texts if no document is known;
    empty if a half has no cases."""
    best_accuracy: float
    """Held-out accuracy: each of these evaluated on the half that it was not selected on, pooled; NaN if a half has no
    cases. Unlike `accuracy` at `best`, it is an unbiased accuracy of "the best head"."""
    best_low: float
    best_high: float
    """Its interval, as of `accuracy`."""
    best_design_effect: float
    """Of its variance."""
    best_where_wrong: float
    """The same accuracy in the cases in which the baseline is wrong: a head that only looks at a distance is seldom
    right there. NaN if a half has no cases, or the baseline is never wrong."""
    p_value: float
    """p-value of `best`."""
    best_key_matched: KeyMatched
    """Of the heads of `best_of_halves` on the half that each was not selected on, as `key_matched` but uncorrected; of
    `best` if a half has no cases."""


def relation_accuracies(
    texts: Sequence[TextPredictions], settings: RelationSettings = AS_IN_PAPER
) -> list[RelationAccuracy]:
    """Accuracies of every relation with a case, most cases first, after ALL. Without punct and root.

    A case is a dependent with tokens whose head has tokens, too. Words of a text that has two segments compete
    with each other; a head that attends to no other word is wrong.

    Whether a head beats the baseline is tested on the same cases, one-sided. Documents are the units of halves,
    intervals and tests (`attention_sieve.core.statistics.means`); a text without one counts as a document of its own,
    and if none is known, texts are the units: the words of a sentence depend on each other, so that an interval for
    independent cases covers the accuracy over all relations too rarely. p-values are multiplied by the number of heads
    and directions (Bonferroni): valid for any dependence between heads, and for any head selected afterwards, such as
    the best, whose p-value need not be the smallest. There is no correction for the number of relations, and the
    baseline's offset is chosen on the same cases, in its favour.

    The best head is named among those that also beat a second control (`attention_sieve.core.statistics.cases`):
    they give the right word more attention from the word that the relation joins to it than the text's other words give
    it. A case read at a clitic is not compared.

    Args:
        texts: predictions under one checkpoint.
        settings: how they are evaluated; alpha is also the level of the second control.

    Source: Clark et al. 2019, section 4.2 and table 1, where the best head is chosen and reported on the same
        sentences, without a test. The default follows the paper; AS_IN_CODE counts as their code does, except for the
        clitic. Their code recognises it by its form, 's or s', where a slip in operator precedence lets s' count after
        any relation, and it looks one word past the end of the sentence; here the clitic is the next word, if it
        depends on the possessor as `possessive` or `case`.
    """
    if not texts:
        return []
    cases = cases_of(texts, at_clitic=settings.at_clitic, reading=settings.reading)
    accuracies = [_accuracy(name, mask, cases, settings) for name, mask in _relations(cases, settings.every_word)]
    return sorted(accuracies, key=lambda accuracy: (accuracy.relation != ALL, -accuracy.n_cases))


def _relations(cases: RelationCases, every_word: bool) -> list[tuple[str, Bool[np.ndarray, " case"]]]:
    """Names and cases of the relations with a case; ALL replaces a relation of that name in a file."""
    named = [(name, cases.codes == code) for code, name in enumerate(cases.names) if name not in NO_RELATION]
    codes_of_all = [code for code, name in enumerate(cases.names) if every_word or name not in NO_RELATION]
    relations = [(ALL, np.isin(cases.codes, codes_of_all)), *((name, mask) for name, mask in named if name != ALL)]
    return [(name, mask) for name, mask in relations if (mask & cases.is_known).any()]


def _accuracy(
    relation: str,
    mask: Bool[np.ndarray, " case"],
    cases: RelationCases,
    settings: RelationSettings,
) -> RelationAccuracy:
    known = np.flatnonzero(mask & cases.is_known)
    distances, rooms = cases.distances[known], cases.rooms[:, known]
    baseline = best_offset(distances, rooms, settings.candidates)
    baseline_right = is_at_offset(distances, rooms, baseline.offset)
    nearest, random_choice = among_right_words(known, cases.heads, cases.text)
    joined = cases.joined.of(known)
    head_cases = HeadCases(
        cases.right[..., known],
        baseline_right[None],
        joined.unit,
        by_document=cases.by_document,
        absent=cases.absent,
        joined=joined,
    )
    judgement = judge(head_cases, settings.alpha)
    held_out = judgement.held_out
    return RelationAccuracy(
        relation=relation,
        n_cases=len(known),
        n_left_out=int(mask.sum()) - len(known),
        baseline=baseline,
        nearest=nearest,
        random_choice=random_choice,
        accuracy=judgement.accuracy[0],
        n_documents=None if judgement.n_documents is None else int(judgement.n_documents[0]),
        low=judgement.low[0],
        high=judgement.high[0],
        design_effect=judgement.design_effect[0],
        p_values=judgement.p_values[0, 0],
        key_matched=judgement.key_matched[0],
        best=_direction_and_head(judgement.best),
        best_of_halves=() if held_out is None else tuple(map(_direction_and_head, held_out.heads)),
        best_accuracy=NAN if held_out is None else float(held_out.accuracy[0]),
        best_low=NAN if held_out is None else float(held_out.low[0]),
        best_high=NAN if held_out is None else float(held_out.high[0]),
        best_design_effect=NAN if held_out is None else float(held_out.design_effect[0]),
        best_where_wrong=NAN if held_out is None else _share(held_out.right(head_cases)[~baseline_right]),
        p_value=float(judgement.p_values[0, 0][judgement.best]),
        best_key_matched=judgement.best_key_matched,
    )


def _share(right: Bool[np.ndarray, " case"]) -> float:
    return float(right.mean()) if len(right) else NAN


def best_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offsets: Sequence[int] = OFFSETS
) -> OffsetBaseline:
    """The offset with the highest accuracy; ties are resolved in favour of the smaller, then the positive offset.

    Args:
        distances: from each dependent to its head, in words; the head of a root counts as before the first word.
        rooms: number of words before and after each dependent in its segment.
        offsets: the candidates.

    Source: Clark et al. 2019, section 4.2; their code clips predictions to the sentence, and chooses from -3 to 2.
    """
    candidates = (*offsets, 0) if (distances == 0).any() else offsets  # in pairs that join two segments
    shares = {offset: float(is_at_offset(distances, rooms, offset).mean()) for offset in candidates}
    best = max(shares, key=lambda offset: (shares[offset], -abs(offset), offset))
    return OffsetBaseline(offset=best, share=shares[best], shares=shares)


def is_at_offset(
    distances: Int[np.ndarray, " case"], rooms: Int[np.ndarray, "2 case"], offset: int
) -> Bool[np.ndarray, " case"]:
    """Cases that a fixed offset predicts correctly; it is clipped to the last word, and means root before the first."""
    before, after = rooms
    return np.clip(offset, -before - 1, after) == distances


def among_right_words(
    words: Int[np.ndarray, " case"], heads: Int[np.ndarray, " word"], text: Int[np.ndarray, " word"]
) -> tuple[float, float]:
    """Accuracies of two baselines that know which words of a text are the head of one of these words.

    Args:
        words: one or more cases of a relation, in their order.
        heads: head of every word, numbered through all texts; ROOT for none, where no baseline is right.
        text: number of the text of every word, in order.

    Returns: the share in which the nearest of these heads before the word is right, or the nearest after it, whichever
        is greater; and the expected share of a random one, the word itself excepted.
    """
    right, word_text = heads[words], text[words]
    known = np.unique(right[right != ROOT])
    before, after = np.searchsorted(known, words), np.searchsorted(known, words, side="right")
    padded = np.concatenate([[NOWHERE], known, [NOWHERE]])
    nearest = max(float((padded[before] == right).mean()), float((padded[after + 1] == right).mean()))
    texts = text[known]
    n_choices = np.searchsorted(texts, word_text, side="right") - np.searchsorted(texts, word_text) - (after - before)
    return nearest, float(np.where(right == ROOT, 0, 1 / np.maximum(n_choices, 1)).mean())


def _direction_and_head(index: tuple[int, ...]) -> tuple[Direction, int, int]:
    direction, layer, head = index
    return DIRECTIONS[direction], layer, head


def beats_baseline(
    accuracy: RelationAccuracy, *, by: float = VOITA_MARGIN, margin: Margin = "points"
) -> Bool[np.ndarray, "direction layer head"]:
    """Heads that beat the baseline by at least a margin: Voita's rule.

    Args:
        accuracy: of one relation; for the paper's other direction with the reading "row".
        by: the margin, as a share.
        margin: whether it is added to the baseline, or is a share of it.

    Source: Voita et al. 2019, section 5.2: "at least 10% higher than the baseline"; which of the two is not stated.
        Their baseline is the share of the most frequent distance; here offsets stop at the end of the segment, as in
        Clark's code.
    """
    share = accuracy.baseline.share
    least = share + by if margin == "points" else share * (1 + by)
    return accuracy.accuracy >= least - 1e-9  # 0.2 + 0.1 is a little more than 0.3
