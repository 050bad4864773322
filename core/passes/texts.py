"""Texts as a pass takes them, with what is known of each token, and the attention of a text as it is drawn.

    Text -> PassText -> (pass with observers) -> measures || scores -> tests at tau -> roles

Left of the bar costs a forward pass, depends on checkpoint, texts and pass settings only, and begins here. Right of it
is instant: `attention_sieve.core.roles.measures.role_scores`, `attention_sieve.core.roles.hypotheses.role_tests`, and
what `attention_sieve.core.roles.roles` reads off the tests.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Kind, PassSettings, Reach, Window
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, check_heads, no_such_attention
from attention_sieve.core.errors import PairNeeded, TextError, TextTooLong
from attention_sieve.core.texts.given import GivenPairs
from attention_sieve.core.texts.parsers import NO_PARSER
from attention_sieve.core.texts.patterns import tree_matches, word_patterns
from attention_sieve.core.texts.relations import (
    RELATED_WORDS,
    RELATIONS,
    Dependencies,
    Relation,
    TokenPair,
    Wanted,
    dependencies,
    parse_for,
    token_pairs,
    token_pairs_of,
)
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText, TooLong, as_decoder_input, tokenize

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
    """The matches of each pattern of trees: all tokens of the word that looks, or else of the first again, and of the
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
        word_spans = [
            (side, *match.span()) for side, segment in enumerate(text.segments) for match in WORD.finditer(segment)
        ]
        word_texts = ["", *(text.segments[side][start:end] for side, start, end in word_spans)]
        words = tuple(word_texts[number + 1] for number in _words_of_tokens(tokens, text, word_spans))
    numbers = np.full(len(tokens.ids), -1)
    if parsed is not None:
        spans_of = zip(parsed.words.segments.tolist(), parsed.words.spans.tolist())
        numbers = _words_of_tokens(tokens, text, [(side, *span) for side, span in spans_of])
    strings = [("", *(getattr(parsed, name, ()) or ())) for name in ("lemmas", "entities")]
    lemmas, entities = (tuple(given[number + 1] if len(given) > 1 else "" for number in numbers) for given in strings)
    matches = dict(zip(wanted.all_word_patterns, () if parsed is None else map(np.array, parsed.matches)))
    return TokenNotes(
        written=written,
        words=words,
        lemmas=lemmas,
        entities=entities,
        matches={pattern: np.append(is_matched, False)[numbers] for pattern, is_matched in matches.items()},
        trees={tree: _tree_pairs(tree, parsed, matches, tokens) for tree in wanted.trees if parsed is not None},
        word_of=numbers,
        pairs=pairs,
        antecedents=() if text.pairs is None else _antecedents(tokens, text, text.pairs),
    )


def _antecedents(tokens: TokenizedText, text: Text, pairs: GivenPairs) -> tuple[TokenPair, ...]:
    word_of = _words_of_tokens(tokens, text, [(side, *span) for side, span in zip(pairs.segments, pairs.spans)])
    antecedent_pairs = (
        TokenPair("", np.flatnonzero(word_of == word), np.flatnonzero(np.isin(word_of, earlier)))
        for word, earlier in pairs.antecedents()
    )
    return tuple(pair for pair in antecedent_pairs if len(pair.dependent) and len(pair.head))


def _tree_pairs(
    tree: str, parsed: Dependencies, matches: Mapping[str, Bool[np.ndarray, " word"]], tokens: TokenizedText
) -> tuple[TokenPair, ...]:
    """The matches of a pattern of trees, as relations are mapped to tokens: a token of two words, such as "didn" of
    "didn't", is one of both."""
    matched = tree_matches(tree, parsed.heads, np.stack([matches[pattern] for pattern in word_patterns(tree)]))
    sides, spans = parsed.words.segments.tolist(), [(start, end) for start, end in parsed.words.spans.tolist()]
    relations = [Relation("", sides[key], spans[query], spans[key]) for query, key in matched.tolist()]
    return token_pairs(tokens, relations)


def _words_of_tokens(
    tokens: TokenizedText, text: Text, spans: Iterable[tuple[int, int, int]]
) -> Int[np.ndarray, " token"]:
    """Index of the word in which each token begins; -1 for a token outside all words. Spans are segment, first and
    one-past-last character of each word."""
    at = [np.full(len(segment) + 1, -1) for segment in text.segments]
    for number, (side, start, end) in enumerate(spans):
        at[side][start:end] = number
    words = np.full(len(tokens.ids), -1)
    for side, words_at in enumerate(at):
        is_own = (tokens.segments == side) & (tokens.spans[:, 0] < tokens.spans[:, 1])
        words[is_own] = words_at[np.minimum(tokens.spans[is_own, 0], len(words_at) - 1)]
    return words


REST_OF_SENTENCE: Final = 1000
"""Characters after a truncation point that are still parsed."""
WINDOW_ENTRIES: Final = 1 << 25
"""Maximum number of stored attention entries per text, over all layers and heads."""
WINDOW_TOKENS: Final = 256
"""Maximum number of queries, and of keys, in a window; if WINDOW_ENTRIES permits, such a text is stored whole."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PassText:
    """One text, prepared for a pass."""

    kind: Kind
    source: TokenizedText
    """Input of the only stack, or of the encoder."""
    target: TokenizedText | None = None
    """Input of the decoder of an encoder-decoder; None if the decoder does not run."""
    pairs: tuple[TokenPair, ...] = ()
    """Relations between the queries; empty for cross-attention, whose keys are another text."""
    notes: TokenNotes | None = None
    """What is known of the queries, where a role asks for it; None for cross-attention."""
    predicts_after: tuple[int, ...] | None = None
    """Positions after which a causal language model predicts the next token for its loss; None for all."""

    @property
    def queries(self) -> TokenizedText:
        """The tokens that attend."""
        return self.source if self.target is None or self.kind in ("self", "encoder") else self.target

    @property
    def keys(self) -> TokenizedText:
        """The tokens that are attended to."""
        return self.queries if self.kind == "decoder" else self.source

    @property
    def n_tokens(self) -> int:
        """Number of queries or keys, whichever is larger."""
        return max(len(self.queries.ids), len(self.keys.ids))

    @property
    def lengths(self) -> dict[str, int]:
        """Number of tokens of the whole text, of separately encoded segments the longer one, and how many were cut."""
        sides = (self.queries, self.keys)
        return {
            "n_tokens": max(len(side.ids) + side.n_cut for side in sides),
            "n_cut": max(side.n_cut for side in sides),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class TextAttention:
    """One text and its attention, for display."""

    text: PassText
    causal: bool
    """Whether tokens cannot attend to later tokens."""
    window: Window
    attention: Float[np.ndarray, "layer head query key"]
    """Inside the window. Rows of the whole text sum to 1, or to what attention sinks leave."""
    block: int
    """Block size of the overview in tokens; 0 if the window is the whole text."""
    overview: Float[np.ndarray, "layer head query_block key_block"] | None
    """Mean attention between the tokens of two blocks; None if the window is the whole text."""
    reaches: tuple[Reach, ...] = ()
    """Attention window of each layer; empty if no layer of the checkpoint has one."""


def same_tokens(a: PassText, b: PassText) -> bool:
    """Whether two tokenizers split a text identically, special tokens included."""

    def cuts(side: TokenizedText) -> list[np.ndarray]:
        return [side.spans, side.segments, side.is_cls, side.is_sep]

    side_pairs = [(a.queries, b.queries), (a.keys, b.keys)]
    return all(np.array_equal(*pair) for sides in side_pairs for pair in zip(*map(cuts, sides)))


def prepare(
    checkpoint: Checkpoint,
    text: Text,
    settings: PassSettings,
    *,
    position: int | None = None,
    truncate: bool = False,
) -> PassText:
    """One text's tokens, without relations. An encoder-decoder reads source and target as a pair; its encoder also
    accepts a text without a target.

    Raises: TextTooLong; NoTokens; PairNeeded; AnalysisError if the checkpoint lacks the requested attention or head.
    """
    check_settings(checkpoint, settings)
    tokens = partial(_tokens, checkpoint, position=position, truncate=truncate)
    if settings.kind == "self":
        return PassText(kind=settings.kind, source=tokens(text))
    if settings.kind == "encoder":
        return PassText(kind=settings.kind, source=tokens(_segment(text, 0)))
    if len(text.segments) < 2:
        raise PairNeeded(position)
    target = tokens(_segment(text, 1), spare=1)  # the start token comes before it
    return PassText(
        kind=settings.kind,
        source=tokens(_segment(text, 0)),
        target=as_decoder_input(target, checkpoint.tokenizer, checkpoint.start_id),
    )


def _tokens(
    checkpoint: Checkpoint, segment: Text, *, spare: int = 0, position: int | None, truncate: bool
) -> TokenizedText:
    if segment.given is not None:
        check_ids(checkpoint, segment.given.ids)
    return tokenize(segment, checkpoint.tokenizer, checkpoint.max_tokens - spare, position=position, truncate=truncate)


def check_settings(checkpoint: Checkpoint, settings: PassSettings) -> None:
    """Raise if the checkpoint lacks the requested attention, or a head to switch off.

    Raises: AnalysisError.
    """
    attention = checkpoint.attentions.get(settings.kind)
    if attention is None:
        raise no_such_attention(checkpoint.files.name, settings.kind, checkpoint.attentions)
    check_heads(checkpoint.files.name, (attention.n_layers, attention.n_heads), settings.off)


def check_ids(checkpoint: Checkpoint, ids: Sequence[int]) -> None:
    """Raise if the checkpoint's vocabulary lacks an id.

    Raises: TextError.
    """
    n_known = checkpoint.full_model.get_input_embeddings().num_embeddings
    if outside := [number for number in ids if not 0 <= number < n_known]:
        raise TextError(
            f"The texts hold the id {max(outside):,}, and the vocabulary of {checkpoint.files.name} has the ids 0 to "
            f"{n_known - 1:,}. Choose texts whose ids were made for this checkpoint."
        )


def _segment(text: Text, side: int) -> Text:
    selected = slice(side, side + 1)
    return replace(
        text,
        segments=text.segments[selected],
        words=text.words and text.words[selected],
        heads=text.heads and text.heads[selected],
        relations=text.relations and text.relations[selected],
        spans=text.spans and text.spans[selected],
        pairs=text.pairs and text.pairs.within_segment(side),
    )


def queries_text(text: Text, kind: Kind) -> Text:
    """The text whose tokens are the queries of a pass."""
    return text if kind == "self" else _segment(text, 0 if kind == "encoder" else 1)


def with_relations(
    prepared: Sequence[PassText], texts: Sequence[Text], wanted: Wanted = RELATED_WORDS, *, noted: bool = False
) -> list[PassText]:
    """Add the relations between the queries of each text; parsing all together is much faster than one by one. A text
    prepared for several checkpoints is parsed once."""
    numbers: dict[Text, int] = {}
    number_of = {
        index: numbers.setdefault(text, len(numbers)) for index, text in _texts_to_parse(prepared, texts).items()
    }
    parses, sources = list(parse_for(list(numbers), wanted)), list(numbers)
    queries = [prepared[index].queries for index in number_of]
    pairs_of = token_pairs_of(queries, [parses[number][0] for number in number_of.values()])
    related = list(prepared)
    for (index, number), pairs in zip(number_of.items(), pairs_of, strict=True):
        tokens, words = related[index].queries, parses[number][1]
        related[index] = replace(
            related[index],
            pairs=tuple(pair for pair in pairs if pair.name in RELATIONS),
            notes=notes_of(tokens, sources[number], pairs, words, wanted) if noted else None,
        )
    return related


def trees(prepared: Sequence[PassText], texts: Sequence[Text]) -> list[tuple[Text, Dependencies] | None]:
    """The queries' text of each item and its dependency trees, parsed together; None for cross-attention."""
    parser_texts = {
        index: text
        for index, text in _texts_to_parse(prepared, texts).items()
        if text.heads is not None or text.parser != NO_PARSER
    }
    parsed = dict(zip(parser_texts, dependencies(list(parser_texts.values()))))
    return [(parser_texts[index], parsed[index]) if index in parser_texts else None for index in range(len(prepared))]


def _texts_to_parse(prepared: Sequence[PassText], texts: Sequence[Text]) -> dict[int, Text]:
    """The text to parse for each item, by index; none for cross-attention, whose keys are another text."""
    return {
        index: _part_to_parse(queries_text(text, tokens.kind), tokens.queries)
        for index, (tokens, text) in enumerate(zip(prepared, texts))
        if tokens.kind != "cross"
    }


def _part_to_parse(text: Text, tokens: TokenizedText) -> Text:
    """A truncated text up to its last token and the rest of the sentence, which is all that needs to be parsed."""
    if not tokens.n_cut or text.words is not None or text.spans is not None:
        return text
    ends = (int(tokens.spans[tokens.segments == side, 1].max()) for side in range(len(text.segments)))
    return Text(
        tuple(segment[: end + REST_OF_SENTENCE] for segment, end in zip(text.segments, ends)), parser=text.parser
    )


def window_at(checkpoint: Checkpoint, text: PassText, start: tuple[int, int] = (0, 0)) -> Window:
    """The attention window of a text that starts at some query and key; the whole text if it is short enough. The
    checkpoint's numbers of layers and heads limit its size; it begins earlier if it would extend beyond the end."""
    attention = checkpoint.attentions[text.kind]
    size = WINDOW_TOKENS
    while attention.n_layers * attention.n_heads * size * size > WINDOW_ENTRIES:
        size //= 2

    def side(begin: int, n_tokens: int) -> tuple[int, int]:
        begin = max(0, min(begin, n_tokens - size))
        return begin, min(begin + size, n_tokens)

    return Window(side(start[0], len(text.queries.ids)), side(start[1], len(text.keys.ids)))


def prepare_all(
    checkpoint: Checkpoint, texts: Sequence[Text], settings: PassSettings, too_long: TooLong
) -> tuple[dict[int, PassText], list[tuple[int, int]]]:
    """Tokens of each text by its index, and index and number of tokens of those left out (`skip` only).

    Raises: TextTooLong for the first such text (`error` only); NoTokens; PairNeeded.
    """
    prepared: dict[int, PassText] = {}
    left_out: list[tuple[int, int]] = []
    for position, text in enumerate(texts):
        try:
            prepared[position] = prepare(checkpoint, text, settings, position=position, truncate=too_long == "truncate")
        except TextTooLong as error:
            if too_long == "error":
                raise
            left_out.append((position, error.n_tokens))
    return prepared, left_out
