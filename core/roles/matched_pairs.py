"""A control for syntactic roles: pairs of words at the same distance that no relation joins.

A head that attends to the next word attends to the heads of many dependents. A head that follows a relation scores
higher on the pairs of words that the relation joins than on other pairs of the same text at the same signed distance.
One that does not is positional.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, corrected, decided, one_sided
from attention_sieve.core.roles.measures import SYNTACTIC, SYNTACTIC_MEASURES, SyntacticDirection, mean_of_known
from attention_sieve.core.roles.pair_sieves import oriented
from attention_sieve.core.roles.record import DIRECTIONS
from attention_sieve.core.statistics.means import moments
from attention_sieve.core.texts.relations import RELATIONS, ROOT, UNIVERSAL, Dependencies, TokenPair, tokens_of
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TokenizedText

N_MATCHED: Final = 2 * len(SYNTACTIC_MEASURES)
"""Scores of a text: of pairs that a relation joins, by SYNTACTIC_MEASURES, then of pairs that none joins."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextMatches:
    """Scores of a text's pairs of words; NaN where no relation of the text has a pair to be compared with."""

    related: Float[np.ndarray, "measure layer head"]
    """Mean score, by SYNTACTIC_MEASURES, of the pairs that a relation joins and that have a pair to be compared
    with."""
    unrelated: Float[np.ndarray, "measure layer head"]
    """Mean over the same relations of the mean score of the pairs at the same distance that no relation joins."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchedPairs:
    """The relations of a text and, by their distance, the pairs of words that no relation joins."""

    related: tuple[tuple[int, TokenPair], ...]
    """Signed distance in words from the dependent to its head, and the pair."""
    unrelated: dict[int, tuple[TokenPair, ...]]
    """Pairs by distance, for every distance of a relation."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchedSieves:
    """The attention entries that the scores of a batch read, for layers with the same window."""

    at: Int[np.ndarray, "entry 3"]
    """Text, query and key, sorted by text and query."""
    target: Int[np.ndarray, " entry"]
    """Number of the text times N_MATCHED, plus the number of the score."""
    weight: Float[np.ndarray, " entry"]
    applicable: Bool[np.ndarray, "text measure"]
    """Whether a text has scores."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchedTests:
    """One paired test for each syntactic role and head."""

    texts: Int[np.ndarray, "role layer head"]
    """Number of texts with a relation that has a pair to be compared with, by SYNTACTIC."""
    related: Float[np.ndarray, "role layer head"]
    """Mean score of the pairs that a relation joins."""
    unrelated: Float[np.ndarray, "role layer head"]
    """Mean score of the pairs at the same distance that none joins."""
    p: Float[np.ndarray, "role layer head"]
    """One-sided p-value of "the first is above the second", paired by text; NaN with fewer than 2 texts."""
    p_adjusted: Float[np.ndarray, "role layer head"]
    """After the correction, as for roles."""
    beats: Bool[np.ndarray, "role layer head"]
    """Whether the first is above the second at the level of the criterion."""

    def positional(self, tests: HeadTests) -> Bool[np.ndarray, "role layer head"]:
        """Which heads hold a syntactic role and do not beat pairs at the same distance, by the roles of the tests.

        Roles with fewer than two texts to compare are left unmarked.
        """
        marked = np.zeros_like(tests.holds)
        for row, role in enumerate(SYNTACTIC):
            index = tests.roles.index(role)
            marked[index] = tests.holds[index] & (self.texts[row] >= 2) & ~self.beats[row]
        return marked


def matched_pairs(tokens: TokenizedText, text: Text, tree: Dependencies) -> MatchedPairs:
    """Relations of a text, and the pairs of words at their distances that no relation of the tree joins.

    Words are those of the parser. Those without a letter or digit are not used for comparison, as no relation of the
    roles joins them. Distances are counted in words, inside a segment.
    """
    spans = [(start, end) for start, end in tree.words.spans.tolist()]
    segments, heads = tree.words.segments.tolist(), tree.heads.tolist()
    pieces = [tokens_of(tokens, segment, span) for segment, span in zip(segments, spans)]
    is_word = [len(own) > 0 and any(map(str.isalnum, shown)) for own, shown in zip(pieces, tree.words.shown(text))]
    joined = {frozenset(edge) for edge in enumerate(heads)}

    def unrelated(distance: int) -> tuple[TokenPair, ...]:
        pairs = ((word, word + distance) for word in range(max(0, -distance), len(heads) - max(0, distance)))
        return tuple(
            TokenPair("", pieces[word], pieces[other_word])
            for word, other_word in pairs
            if is_word[word] and is_word[other_word] and segments[word] == segments[other_word]
            if frozenset((word, other_word)) not in joined
        )

    names = [UNIVERSAL.get(name, name) for name in tree.relations]
    related = tuple(
        (head - word, TokenPair(name, pieces[word], pieces[head]))
        for word, (name, head) in enumerate(zip(names, heads))
        if name in RELATIONS and head != ROOT and len(pieces[word]) and len(pieces[head])
    )
    distances = dict.fromkeys(distance for distance, _ in related)
    return MatchedPairs(related=related, unrelated={distance: unrelated(distance) for distance in distances})


Cells = list[tuple[int, int, float]]
"""Query, key, and weight in the score of their pair."""


def matched_sieves(texts: Sequence[MatchedPairs], live: Sequence[Int[np.ndarray, "_ 2"]]) -> MatchedSieves:
    """The entries that the scores of a batch read.

    Args:
        texts: pairs of each text.
        live: first and one-past-last key that each query of each text can attend to.
    """
    rows: list[tuple[int, int, int, int, float]] = []
    applicable = np.zeros((len(texts), len(SYNTACTIC_MEASURES)), dtype=bool)
    for number, (pairs, bounds) in enumerate(zip(texts, live, strict=True)):
        for index, direction in enumerate(DIRECTIONS):
            by_score = _entries(pairs, direction, bounds)
            for (kind, role), cells in by_score.items():
                measure = index * len(SYNTACTIC) + role
                applicable[number, measure] = True
                target = number * N_MATCHED + kind * len(SYNTACTIC_MEASURES) + measure
                rows += [(number, query, key, target, weight) for query, key, weight in cells]
    rows.sort(key=lambda row: row[:2])
    columns = np.array([row[:4] for row in rows], dtype=np.int64).reshape(-1, 4)
    weight = np.array([row[4] for row in rows], dtype=np.float64)
    return MatchedSieves(at=columns[:, :3], target=columns[:, 3], weight=weight, applicable=applicable)


def _entries(pairs: MatchedPairs, direction: str, bounds: Int[np.ndarray, "query 2"]) -> dict[tuple[int, int], Cells]:
    """Cells of one text in one direction: 0 (related) or 1 (unrelated) and role -> cells with their weights."""
    unrelated = {
        distance: [cells for pair in of_distance if (cells := _cells(pair, direction, bounds))]
        for distance, of_distance in pairs.unrelated.items()
    }
    related = [
        (distance, 1 + RELATIONS.index(pair.name), cells)
        for distance, pair in pairs.related
        if unrelated[distance] and (cells := _cells(pair, direction, bounds))
    ]
    by_score: dict[tuple[int, int], Cells] = {}
    for role in range(len(SYNTACTIC)):
        own = [(distance, cells) for distance, relation, cells in related if role in (0, relation)]
        if not own:
            continue
        by_score[0, role] = [cell for _, cells in own for cell in _scaled(cells, 1 / len(own))]
        by_score[1, role] = [
            cell
            for distance, n_related in Counter(distance for distance, _ in own).items()
            for cells in unrelated[distance]
            for cell in _scaled(cells, n_related / len(own) / len(unrelated[distance]))
        ]
    return by_score


def _cells(pair: TokenPair, direction: str, bounds: Int[np.ndarray, "query 2"]) -> Cells:
    """The entries of a pair that its queries can attend to, weighted so that uniform attention scores 1."""
    queries, keys = (side.tolist() for side in oriented(pair, direction))
    live = [(query, key) for query in queries for key in keys if bounds[query, 0] <= key < bounds[query, 1]]
    by_chance = sum(1 / float(bounds[query, 1] - bounds[query, 0]) for query, _ in live)
    return [(query, key, 1 / by_chance) for query, key in live]


def _scaled(cells: Cells, factor: float) -> Cells:
    return [(query, key, weight * factor) for query, key, weight in cells]


def matched_tests(texts: Sequence[TextMatches], direction: SyntacticDirection, criterion: Criterion) -> MatchedTests:
    """Whether heads score higher on pairs that a relation joins than on pairs at the same distance.

    Args:
        texts: one or more.
        direction: which word of a relation attends to which.
        criterion: level, correction and its family, standard deviation and method; tau is not used.
    """
    related = _by_role(np.stack([text.related for text in texts]), direction)
    unrelated = _by_role(np.stack([text.unrelated for text in texts]), direction)
    part = one_sided(*moments(related - unrelated), 0.0, criterion.ddof)
    return MatchedTests(
        texts=part.texts,
        related=moments(related)[1],
        unrelated=moments(unrelated)[1],
        p=part.p,
        p_adjusted=corrected(part.p, criterion),
        beats=decided([part], criterion),
    )


def _by_role(
    scores: Float[np.ndarray, "text measure layer head"], direction: SyntacticDirection
) -> Float[np.ndarray, "text role layer head"]:
    directions = DIRECTIONS if direction == "both" else (direction,)
    indices = [[SYNTACTIC_MEASURES.index(f"{role} {name}") for name in directions] for role in SYNTACTIC]
    return np.stack([mean_of_known(scores[:, role_indices]) for role_indices in indices], axis=1)
