"""The record of a role that a reader has written: its sieve in the form that its rule allows, and the tokens of a text
for which its conditions hold."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.passes.texts import PassText, TokenNotes
from attention_sieve.core.roles import record
from attention_sieve.core.roles.rules import ANY, Rule, Tokens, WrittenRole
from attention_sieve.core.texts.relations import ANY_RELATION, TokenPair, Wanted
from attention_sieve.core.texts.tokens import SPECIAL

BRACKETS: Final = {")": "(", "]": "[", "}": "{"}
NOTED: Final = ("punctuation", "digits", "capitalised")
"""Kinds of tokens that are read off the characters of the text."""
LACKS_MARKS: Final = (
    "no text has a marked antecedent: give a file of the command pairs, which makes them of files with mentions"
)


@lru_cache(maxsize=256)
def record_of(written: WrittenRole) -> record.Role:
    """The record of a written role, from which everything about it follows, as from those that are built in.

    Rules that say nothing of where a key stands to its query, or only in which segment, are sets of keys; offsets alone
    are a band; all others are pairs.
    """
    rule = written.rule
    by_segment = rule.relative in ("own segment", "other segment")
    return record.Role(
        name=written.id,
        expects=f"what the role {written.name} says",
        meaning="A role that a reader has written.",
        sieve=_sieve(rule),
        applies=record.within_pairs if by_segment else record.within_a_text,
        weight=rule.weight,
        is_usual=False,
        wanted=_wanted(rule),
        is_noted=_is_noted(rule),
        reads_marks=rule.relative == "antecedent",
        lacks=LACKS_MARKS if rule.relative == "antecedent" else record.LACKS,
        rule=written.canonical,
        version=2 if rule.queries.tree or rule.keys.tree else 1,
    )


def _sieve(rule: Rule) -> record.Keys | record.Band | record.Pairs:
    if rule.offset is not None and rule.queries == rule.keys == ANY:
        return record.Band(*rule.offset)
    if rule.offset is None and rule.relative is None and not rule.in_trees:
        keys = TokensThat(rule.keys)
        return (
            record.Keys((keys,)) if rule.queries == ANY else record.Keys((keys, TokensThat(None)), SetOf(rule.queries))
        )
    if rule.relative in ("own segment", "other segment"):
        sets = (TokensThat(rule.keys, 0), TokensThat(rule.keys, 1), TokensThat(None))
        return record.Keys(sets, SetOf(rule.queries, rule.relative))
    return record.Pairs(PairsOf(rule))


def _wanted(rule: Rule) -> Wanted:
    sides = (rule.queries, rule.keys)
    return Wanted(
        relations=tuple(
            dict.fromkeys((*rule.relations, *(n for side in sides for n in side.dependent_of + side.head_of)))
        ),
        lemmas=rule.relative == "same lemma",
        entities=any(side.entities for side in sides),
        patterns=tuple(dict.fromkeys(side.pattern for side in sides if side.pattern)),
        trees=tuple(dict.fromkeys(side.tree for side in sides if side.tree)),
    )


def _is_noted(rule: Rule) -> bool:
    sides = (rule.queries, rule.keys)
    return rule.relative in ("head", "dependent", "same lemma", "opening bracket", "antecedent") or any(
        side.words
        or side.pattern
        or side.tree
        or side.entities
        or side.dependent_of
        or side.head_of
        or set(NOTED) & set(side.kinds)
        for side in sides
    )


@dataclass(frozen=True)
class TokensThat:
    """The tokens for which conditions hold, as a set of keys; none without conditions of any kind."""

    tokens: Tokens | None
    segment: int | None = None
    """The segment of the tokens; None for all tokens, special ones included."""

    def __call__(self, text: PassText) -> Bool[np.ndarray, " key"]:
        """The keys; none in cross-attention, where no written role applies."""
        if self.tokens is None or text.queries is not text.keys:
            return np.zeros(len(text.keys.ids), bool)
        is_key = holds(self.tokens, text)
        return is_key if self.segment is None else is_key & (text.keys.segments == self.segment)


@dataclass(frozen=True)
class SetOf:
    """Which set of keys is the sieve of a query: that of its segment, or of the other; the last one for a query for
    which the conditions do not hold."""

    queries: Tokens
    relative: str | None = None

    def __call__(self, text: PassText) -> Int[np.ndarray, " query"]:
        """Index of the set of each query."""
        takes_part = holds(self.queries, text)
        if self.relative is None:
            return np.where(takes_part, 0, 1)
        sides = record.query_sides(text)
        return np.where(takes_part, sides if self.relative == "own segment" else 1 - sides, 2)


@dataclass(frozen=True)
class PairsOf:
    """The pairs of tokens for which a rule holds, one for each query, or for each pair of related words."""

    rule: Rule

    def __call__(self, text: PassText) -> list[TokenPair]:
        """The pairs of a text."""
        queries, keys = (holds(side, text) for side in (self.rule.queries, self.rule.keys))
        pairs = _PAIRS[self.rule.relative](text, self.rule)
        if self.rule.queries == self.rule.keys == ANY:
            return list(pairs)
        kept = (TokenPair(name, at[queries[at]], to[keys[to]]) for name, at, to in pairs)
        return [pair for pair in kept if len(pair.dependent) and len(pair.head)]


def holds(tokens: Tokens, text: PassText) -> Bool[np.ndarray, " token"]:
    """For which tokens of a text all conditions hold."""
    n_tokens = len(text.queries.ids)
    result = np.ones(n_tokens, bool)
    if tokens.positions:
        result &= np.isin(np.arange(n_tokens), [p + n_tokens if p < 0 else p for p in tokens.positions])
    if tokens.kinds:
        result &= np.any([_kind_mask(kind, text) for kind in tokens.kinds], axis=0)
    if tokens.words:
        result &= np.array([word.lower() in tokens.words for word in _notes(text).words])
    if tokens.pattern:
        result &= _notes(text).matches.get(tokens.pattern, np.zeros(n_tokens, bool))
    if tokens.tree:
        firsts = [pair.head for pair in _notes(text).trees.get(tokens.tree, ())]
        result &= np.isin(np.arange(n_tokens), np.concatenate(firsts) if firsts else [])
    if tokens.entities:
        is_any = "any" in tokens.entities
        result &= np.array([bool(kind) and (is_any or kind in tokens.entities) for kind in _notes(text).entities])
    for names, side in ((tokens.dependent_of, 1), (tokens.head_of, 2)):
        if names:
            at = [pair[side] for pair in _related(text, names)]
            result &= np.isin(np.arange(n_tokens), np.concatenate(at) if at else [])
    return result


def _notes(text: PassText) -> TokenNotes:
    if text.notes is None:
        raise RuntimeError("The text was prepared without the notes that a written role needs.")
    return text.notes


def _kind_mask(kind: str, text: PassText) -> Bool[np.ndarray, " token"]:
    tokens = text.queries
    match kind:
        case "start":
            return tokens.is_cls
        case "separator":
            return tokens.is_sep
        case "template":
            return record.in_template(text)
        case "first of segment" | "last of segment":
            inside = [np.flatnonzero(tokens.segments == side) for side in (0, 1)]
            ends = [own[0 if kind == "first of segment" else -1] for own in inside if len(own)]
            return np.isin(np.arange(len(tokens.ids)), ends)
        case "capitalised":
            return np.array([word[:1].isupper() for word in _notes(text).words])
        case "digits":
            return np.array([token.isdecimal() for token in _notes(text).written])
        case _:
            return np.array([bool(token) and all(map(_is_mark, token)) for token in _notes(text).written])


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("P")


def _related(text: PassText, names: tuple[str, ...]) -> list[TokenPair]:
    return [pair for pair in _notes(text).pairs if pair.name in names or ANY_RELATION in names]


def _at_offsets(text: PassText, rule: Rule) -> Iterator[TokenPair]:
    """A pair of each query for which the rule can hold, with the keys at its distances."""
    first, last = rule.offset or (0, 0)
    query = np.flatnonzero(holds(rule.queries, text))
    key = query[:, None] + np.arange(first, last + 1)
    is_inside = (key >= 0) & (key < len(text.queries.ids))
    return (TokenPair("", query[i : i + 1], key[i][is_inside[i]]) for i in np.flatnonzero(is_inside.any(axis=1)))


def _other_ends(text: PassText, rule: Rule) -> Iterator[TokenPair]:
    for pair in _related(text, rule.relations):
        ends = (pair.dependent, pair.head)
        yield TokenPair("", *(ends if rule.relative == "head" else ends[::-1]))


def _same_lemmas(text: PassText, rule: Rule) -> Iterator[TokenPair]:
    """Every token of a word with the tokens of other words of the same lemma."""
    notes = _notes(text)
    by_lemma = sorted((lemma, token) for token, lemma in enumerate(notes.lemmas) if lemma)
    for _, group in groupby(by_lemma, key=lambda pair: pair[0]):
        tokens = np.array([token for _, token in group])
        for token in tokens:
            yield TokenPair("", np.array([token]), tokens[notes.word_of[tokens] != notes.word_of[token]])


def _opening_brackets(text: PassText, rule: Rule) -> Iterator[TokenPair]:
    """Every token with a closing bracket, with the tokens of the opening ones that belong to it."""
    open_at: list[tuple[str, int]] = []
    last_segment = SPECIAL
    for token, written in enumerate(_notes(text).written):
        segment = int(text.queries.segments[token])
        if segment not in (SPECIAL, last_segment):
            open_at, last_segment = [], segment
        opened = []
        for character in written:
            if character in BRACKETS.values():
                open_at.append((character, token))
            elif character in BRACKETS and open_at and open_at[-1][0] == BRACKETS[character]:
                opened.append(open_at.pop()[1])
        if opened := [at for at in opened if at != token]:
            yield TokenPair("", np.array([token]), np.unique(opened))


_PAIRS: Final[dict[str | None, Callable[[PassText, Rule], Iterable[TokenPair]]]] = {
    None: lambda text, rule: _notes(text).trees.get(rule.keys.tree, ()) if rule.in_trees else _at_offsets(text, rule),
    "antecedent": lambda text, _: _notes(text).antecedents,
    "earlier copy": lambda text, _: record.earlier_copies(text),
    "after earlier copy": lambda text, _: record.after_earlier_copies(text),
    "head": _other_ends,
    "dependent": _other_ends,
    "same lemma": _same_lemmas,
    "opening bracket": _opening_brackets,
}
"""The pairs of a rule before its conditions on tokens, by where a key stands to its query."""
