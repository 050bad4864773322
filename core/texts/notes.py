"""What is known of each token of a text beyond the tokenizer: the word it is part of, and what a parser says of it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.texts.pairs import GivenPairs
from attention_sieve.core.texts.patterns import tree_matches, word_patterns
from attention_sieve.core.texts.relations import Dependencies, TokenPair, Wanted
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

WORD: Final = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
"""A word as it is written, for conditions without a parser."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenNotes:
    """Notes on the tokens of one text; a token belongs to the word in which it begins."""

    written: tuple[str, ...]
    """The characters of each token in the text; "" for a special token."""
    words: tuple[str, ...]
    """The whole word of each token, as it is written."""
    lemmas: tuple[str, ...]
    """Lemma of the parser's word of each token; "" where it was not asked for."""
    entities: tuple[str, ...]
    """Kind of the named entity that each token is part of; "" outside one, and where it was not asked for."""
    matches: Mapping[str, Bool[np.ndarray, " token"]]
    """The tokens of the words that each pattern matches."""
    trees: Mapping[str, tuple[TokenPair, ...]]
    """The matches of each pattern of trees: the tokens of the word that looks, or else of the first again, and of the
    first."""
    word_of: Int[np.ndarray, " token"]
    """Number of the parser's word of each token; -1 without one."""
    pairs: tuple[TokenPair, ...]
    """All relations that were asked for."""
    antecedents: tuple[TokenPair, ...]
    """Every mention for which a file marks an antecedent, with all that are marked."""


def notes_of(
    tokens: TokenizedText,
    text: Text,
    pairs: tuple[TokenPair, ...],
    parsed: Dependencies | None,
    wanted: Wanted,
) -> TokenNotes:
    """The notes on the tokens of a text. The pairs are its relations in tokens, and its words by the parser are given
    if something is asked for that a file does not have."""
    if text.given is not None:
        written = tuple("" if side == SPECIAL else token for token, side in zip(tokens.tokens, tokens.segments))
        words = written
    else:
        spans = zip(tokens.segments.tolist(), tokens.spans.tolist())
        written = tuple("" if side == SPECIAL else text.segments[side][start:end] for side, (start, end) in spans)
        found = [
            (side, *match.span()) for side, segment in enumerate(text.segments) for match in WORD.finditer(segment)
        ]
        of_words = ["", *(text.segments[side][start:end] for side, start, end in found)]
        words = tuple(of_words[number + 1] for number in _words_of_tokens(tokens, text, found))
    numbers = np.full(len(tokens.ids), -1)
    if parsed is not None:
        spans_of = zip(parsed.words.segments.tolist(), parsed.words.spans.tolist())
        numbers = _words_of_tokens(tokens, text, [(side, *span) for side, span in spans_of])
    strings = [("", *(getattr(parsed, name, ()) or ())) for name in ("lemmas", "entities")]
    lemmas, entities = (tuple(of[number + 1] if len(of) > 1 else "" for number in numbers) for of in strings)
    matches = dict(zip(wanted.of_words, () if parsed is None else map(np.array, parsed.matches)))
    return TokenNotes(
        written=written,
        words=words,
        lemmas=lemmas,
        entities=entities,
        matches={pattern: np.append(is_matched, False)[numbers] for pattern, is_matched in matches.items()},
        trees={tree: _of_tree(tree, parsed.heads, matches, numbers) for tree in wanted.trees if parsed is not None},
        word_of=numbers,
        pairs=pairs,
        antecedents=() if text.pairs is None else _antecedents(tokens, text, text.pairs),
    )


def _antecedents(tokens: TokenizedText, text: Text, pairs: GivenPairs) -> tuple[TokenPair, ...]:
    word_of = _words_of_tokens(tokens, text, [(side, *span) for side, span in zip(pairs.segments, pairs.spans)])
    found = (
        TokenPair("", np.flatnonzero(word_of == word), np.flatnonzero(np.isin(word_of, earlier)))
        for word, earlier in pairs.antecedents()
    )
    return tuple(pair for pair in found if len(pair.dependent) and len(pair.head))


def _of_tree(
    tree: str,
    heads: Int[np.ndarray, " word"],
    matches: Mapping[str, Bool[np.ndarray, " word"]],
    word_of: Int[np.ndarray, " token"],
) -> tuple[TokenPair, ...]:
    found = tree_matches(tree, heads, np.stack([matches[pattern] for pattern in word_patterns(tree)]))
    pairs = (TokenPair("", *(np.flatnonzero(word_of == word) for word in words)) for words in found)
    return tuple(pair for pair in pairs if len(pair.dependent) and len(pair.head))


def _words_of_tokens(
    tokens: TokenizedText, text: Text, spans: Iterable[tuple[int, int, int]]
) -> Int[np.ndarray, " token"]:
    """Index of the word in which each token begins; -1 for a token outside all words. Spans are segment, first and
    one-past-last character of each word."""
    at = [np.full(len(segment) + 1, -1) for segment in text.segments]
    for number, (side, start, end) in enumerate(spans):
        at[side][start:end] = number
    words = np.full(len(tokens.ids), -1)
    for side, of_character in enumerate(at):
        is_own = (tokens.segments == side) & (tokens.spans[:, 0] < tokens.spans[:, 1])
        words[is_own] = of_character[np.minimum(tokens.spans[is_own, 0], len(of_character) - 1)]
    return words
