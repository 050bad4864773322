"""A control for roles whose sieves are pairs: syntactic ones, and those that a reader has written.

A head that attends to the next word attends to the heads of many dependents. A head that follows a relation scores
higher on the pairs of words that the relation joins than on other pairs of the same text at the same signed distance:
significantly, and at least LEAST_TIMES as high. One that does not is positional. The pairs of a written role are
compared likewise, token by token.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, corrected, decided, one_sided
from attention_sieve.core.roles.measures import (
    SYNTACTIC,
    SYNTACTIC_MEASURES,
    RoleSet,
    SyntacticDirection,
    mean_of_known,
)
from attention_sieve.core.roles.pair_sieves import oriented
from attention_sieve.core.roles.record import DIRECTIONS, Pairs, Role
from attention_sieve.core.roles.roles import role_named
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.statistics.means import moments, moments_by_document
from attention_sieve.core.texts.relations import RELATIONS, ROOT, UNIVERSAL, Dependencies, TokenPair, tokens_of
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

MOST_OTHERS: Final = 256
"""Pairs of tokens at one distance with which those of a written role are compared, at even steps through the text."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextMatches:
    """Scores of a text's pairs of words; NaN where no relation of the text has a pair to be compared with."""

    related: Float[np.ndarray, "measure layer head"]
    """Mean score, by the measures of the roles, of the pairs that a relation joins and that have a pair to be compared
    with."""
    unrelated: Float[np.ndarray, "measure layer head"]
    """Mean over the same relations of the attention between pairs at the same distance that no relation joins, as a
    multiple of what uniform attention gives to those that one joins: where tokens see earlier ones alone, it would give
    less to later queries, and so a head that always looks at one distance gets the same in both."""


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
    """Number of the text times twice the number of measures, plus the number of the score: the measures of pairs that a
    relation joins, then of those that none joins."""
    weight: Float[np.ndarray, " entry"]
    applicable: Bool[np.ndarray, "text measure"]
    """Whether a text has scores."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchedTests:
    """One paired test for each role and head."""

    roles: tuple[str, ...]
    texts: Int[np.ndarray, "role layer head"]
    """Number of texts with a relation that has a pair to be compared with."""
    related: Float[np.ndarray, "role layer head"]
    unrelated: Float[np.ndarray, "role layer head"]
    """Mean score of the pairs at the same distance that none joins."""
    p: Float[np.ndarray, "role layer head"]
    """One-sided p-value of "the first is above the second", paired by text; NaN with fewer than 2 texts."""
    p_adjusted: Float[np.ndarray, "role layer head"]
    beats: Bool[np.ndarray, "role layer head"]
    """Whether the first is above the second at the level of the criterion, and at least LEAST_TIMES as high."""

    def positional(self, tests: HeadTests) -> Bool[np.ndarray, "role layer head"]:
        """Which heads hold a role and do not beat pairs at the same distance, by the roles of the tests.

        Roles with fewer than two texts to compare are left unmarked.
        """
        marked = np.zeros_like(tests.holds)
        for row, role in enumerate(self.roles):
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
    """The entries that the scores of a batch read, from the pairs of each text and the keys that queries can see."""
    rows: list[tuple[int, int, int, int, float]] = []
    applicable = np.zeros((len(texts), len(SYNTACTIC_MEASURES)), dtype=bool)
    for number, (pairs, bounds) in enumerate(zip(texts, live, strict=True)):
        for index, direction in enumerate(DIRECTIONS):
            by_score = _entries(pairs, direction, bounds)
            for (kind, role), cells in by_score.items():
                measure = index * len(SYNTACTIC) + role
                applicable[number, measure] = True
                target = (2 * number + kind) * len(SYNTACTIC_MEASURES) + measure
                rows += [(number, query, key, target, weight) for query, key, weight in cells]
    rows.sort(key=lambda row: row[:2])
    columns = np.array([row[:4] for row in rows], dtype=np.int64).reshape(-1, 4)
    weight = np.array([row[4] for row in rows], dtype=np.float64)
    return MatchedSieves(at=columns[:, :3], target=columns[:, 3], weight=weight, applicable=applicable)


def is_matched(role: str) -> bool:
    """Whether a role is one that a reader has written, and joins tokens in pairs."""
    record = role_named(role)
    return bool(record.rule) and isinstance(record.sieve, Pairs)


def matched_tokens(
    role: Role, texts: Sequence[PassText], causal: bool, live: Sequence[Int[np.ndarray, "_ 2"]]
) -> MatchedSieves:
    """The entries that the scores of a written role read in a batch: its pairs, and all others at the same distances.

    Pairs are of single tokens, and their distance is counted in tokens. A pair counts as in the score of the role. It
    is compared with the pairs of tokens, none of them special, that neither the role nor a relation that the text is
    noted with joins in either direction, of which at most MOST_OTHERS are read.
    """
    applicable = np.zeros((len(texts), 1), dtype=bool)
    columns, weights = [np.zeros((0, 4), np.int64)], [np.zeros(0)]
    for number, (text, bounds) in enumerate(zip(texts, live, strict=True)):
        pairs = role.sieve.of(text) if isinstance(role.sieve, Pairs) and role.applies(text, causal) else []
        for kind, (at, weight) in enumerate(_beside_others(text, pairs, bounds)):
            applicable[number] |= len(at) > 0
            columns.append(np.column_stack([np.full(len(at), number), at, np.full(len(at), 2 * number + kind)]))
            weights.append(weight)
    entries, weight = np.concatenate(columns), np.concatenate(weights)
    order = np.lexsort((entries[:, 1], entries[:, 0]))
    return MatchedSieves(at=entries[order, :3], target=entries[order, 3], weight=weight[order], applicable=applicable)


Entries = tuple[Int[np.ndarray, "_ 2"], Float[np.ndarray, " _"]]
"""Query and key, and weight in the score."""


def _beside_others(
    text: PassText, pairs: Sequence[TokenPair], bounds: Int[np.ndarray, "query 2"]
) -> tuple[Entries, Entries]:
    """The entries of the pairs of a text that others can be compared with, weighted so that uniform attention scores 1;
    and of these others, which have the same weights."""
    place, n_visible = np.arange(len(bounds)), bounds[:, 1] - bounds[:, 0]
    is_live = (bounds[:, :1] <= place) & (place < bounds[:, 1:])
    is_joined = np.zeros_like(is_live)
    for pair in (*pairs, *(() if text.notes is None else text.notes.pairs)):
        is_joined[np.ix_(pair.dependent, pair.head)] = True
    is_word = text.queries.segments != SPECIAL
    is_other = is_live & ~is_joined & ~is_joined.T & is_word[:, None] & is_word
    others_at: dict[int, Int[np.ndarray, "other 2"]] = {}
    cells, weights = [np.zeros((0, 2), int)], [np.zeros(0)]
    for pair in pairs:
        at = np.stack(np.meshgrid(pair.dependent, pair.head, indexing="ij"), axis=-1).reshape(-1, 2)
        at = at[is_live[at[:, 0], at[:, 1]]]
        for distance in set((at[:, 1] - at[:, 0]).tolist()) - set(others_at):
            query = np.flatnonzero(np.diagonal(is_other, distance)) + max(0, -distance)
            query = query[np.linspace(0, len(query) - 1, min(len(query), MOST_OTHERS)).astype(int)]
            others_at[distance] = np.column_stack([query, query + distance])
        at = at[[len(others_at[distance]) > 0 for distance in (at[:, 1] - at[:, 0]).tolist()]]
        if len(at):
            cells.append(at)
            weights.append(np.full(len(at), 1 / (1 / n_visible[at[:, 0]]).sum()))
    at, weight = np.concatenate(cells), np.concatenate(weights) / max(1, len(cells) - 1)
    others, other_weights = [np.zeros((0, 2), int)], [np.zeros(0)]
    for distance in set((at[:, 1] - at[:, 0]).tolist()):
        is_here, other = at[:, 1] - at[:, 0] == distance, others_at[distance]
        others.append(other)
        other_weights.append(np.full(len(other), weight[is_here].sum() / len(other)))
    return (at, weight), (np.concatenate(others), np.concatenate(other_weights))


def _entries(pairs: MatchedPairs, direction: str, bounds: Int[np.ndarray, "query 2"]) -> dict[tuple[int, int], Cells]:
    """Cells of one text in one direction: 0 (related) or 1 (unrelated) and role -> cells with their weights."""
    unrelated = {
        distance: [cells for pair in pairs_at if (cells := _live(pair, direction, bounds))]
        for distance, pairs_at in pairs.unrelated.items()
    }
    related = [
        (distance, 1 + RELATIONS.index(pair.name), _weighted(cells, bounds))
        for distance, pair in pairs.related
        if unrelated[distance] and (cells := _live(pair, direction, bounds))
    ]
    by_score: dict[tuple[int, int], Cells] = {}
    for role in range(len(SYNTACTIC)):
        own = [(distance, cells) for distance, relation, cells in related if role in (0, relation)]
        if not own:
            continue
        by_score[0, role] = [(query, key, weight / len(own)) for _, joined in own for query, key, weight in joined]
        weights = defaultdict[int, float](float)
        for distance, joined in own:
            weights[distance] += sum(weight for _, _, weight in joined) / len(own)
        by_score[1, role] = [
            (query, key, weight / len(unrelated[distance]) / len(at))
            for distance, weight in weights.items()
            for at in unrelated[distance]
            for query, key in at
        ]
    return by_score


def _live(pair: TokenPair, direction: str, bounds: Int[np.ndarray, "query 2"]) -> list[tuple[int, int]]:
    """The entries of a pair that its queries can attend to."""
    queries, keys = (side.tolist() for side in oriented(pair, direction))
    return [(query, key) for query in queries for key in keys if bounds[query, 0] <= key < bounds[query, 1]]


def _weighted(at: list[tuple[int, int]], bounds: Int[np.ndarray, "query 2"]) -> Cells:
    """The same, weighted so that uniform attention scores 1."""
    by_chance = sum(1 / float(bounds[query, 1] - bounds[query, 0]) for query, _ in at)
    return [(query, key, 1 / by_chance) for query, key in at]


def matched_tests(
    texts: Sequence[TextMatches],
    direction: SyntacticDirection,
    criterion: Criterion,
    roles: tuple[str, ...] = SYNTACTIC,
    document: Int[np.ndarray, " text"] | None = None,
) -> MatchedTests:
    """Whether heads score higher on pairs that a relation joins than on others at their distance; tau is not used.
    `document` is as of `role_tests`. The effect that is asked for is that of the key-matched control
    (`attention_sieve.core.statistics.cases`)."""
    related = _by_role(np.stack([text.related for text in texts]), direction, RoleSet(roles))
    unrelated = _by_role(np.stack([text.unrelated for text in texts]), direction, RoleSet(roles))
    part = one_sided(*moments_by_document(related - unrelated, document), 0.0, criterion.ddof)
    related_means, unrelated_means = moments(related)[1], moments(unrelated)[1]
    return MatchedTests(
        roles=roles,
        texts=part.texts,
        related=related_means,
        unrelated=unrelated_means,
        p=part.p,
        p_adjusted=corrected(part.p, criterion),
        beats=decided([part], criterion) & (related_means >= LEAST_TIMES * unrelated_means),
    )


def joined_tests(parts: Iterable[MatchedTests]) -> MatchedTests:
    """The tests of several sets of roles, each corrected on its own; at least one."""
    tests = list(parts)
    names = ("texts", "related", "unrelated", "p", "p_adjusted", "beats")
    arrays = {name: np.concatenate([getattr(part, name) for part in tests]) for name in names}
    return MatchedTests(roles=tuple(role for part in tests for role in part.roles), **arrays)


def _by_role(
    scores: Float[np.ndarray, "text measure layer head"], direction: SyntacticDirection, roles: RoleSet
) -> Float[np.ndarray, "text role layer head"]:
    directions = DIRECTIONS if direction == "both" else (direction,)
    indices = [
        [roles.measures.index(f"{role.name} {name}") for name in directions]
        if role.directions
        else [roles.measures.index(role.name)]
        for role in roles.records
    ]
    return np.stack([mean_of_known(scores[:, role_indices]) for role_indices in indices], axis=1)
