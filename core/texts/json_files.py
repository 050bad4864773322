"""Reads texts from JSON: a text, a pair, words with optional heads and relations, word pieces, or ids of tokens."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from attention_sieve.core.errors import TextError, quoted
from attention_sieve.core.json_values import as_list, kind_of, span_of, whole_numbers
from attention_sieve.core.texts.given import (
    DOCUMENT,
    PAIRS,
    GivenTokens,
    Tree,
    WrittenText,
    checked_tree,
    written_ids,
    written_pairs,
)

KINDS: Final = (("text",), ("text_a", "text_b"), ("words",), ("tokens",), ("ids",))
"""The keys that hold an object's text; an object has the keys of exactly one kind."""
TREE: Final = ("heads", "relns")
"""Optional keys of an object with words; both or neither."""
SPANS: Final = ("needle", "answer")
"""Optional keys of an object with ids; both or neither."""
TURNS: Final = "turns"
"""Optional key of an object with ids, of a chat."""
LARGEST_ID: Final = 2**31 - 1
CLS: Final = "[CLS]"
SEP: Final = "[SEP]"
CONTINUES: Final = "##"
"""Prefix of a word piece that continues the previous piece."""


def read_json(value: str) -> Iterator[WrittenText]:
    """Read the texts of a .json file: a list of objects or strings, one object, or one object with a list under each
    key.

    Raises: TextError with the line of invalid JSON, or the number of the item.
    """
    parsed = parsed_json(value, first_line=1)
    if isinstance(parsed, dict):
        if not _holds_lists(parsed):
            yield from_object(parsed, "The object")
            return
        parsed = _rows(parsed)
    if not isinstance(parsed, list):
        raise TextError(f"The file holds {kind_of(parsed)}. Write a list of objects, a list of texts, or one object.")
    for position, item in enumerate(parsed, start=1):
        where = f"Item {position:,}"
        yield WrittenText(where, (item,)) if isinstance(item, str) else from_object(item, where)


def parsed_json(value: str, first_line: int) -> Any:
    """Parse JSON; all numbers become floats. The first line is that of the file on which it starts.

    Raises: TextError with the line number, also for an object with the same key twice, of which Python's parser drops
        the first value.
    """

    def with_each_key_once(items: list[tuple[str, Any]]) -> dict[str, Any]:
        parsed = dict(items)
        if len(parsed) < len(items):
            twice = next(key for key, n_times in Counter(key for key, _ in items).items() if n_times > 1)
            raise TextError(
                f"In the JSON that starts on line {first_line:,}, an object has the key {quoted(twice)} more than "
                "once. Keep one of them."
            )
        return parsed

    try:
        # As floats, numbers cannot run into the limit on the digits of an int.
        return json.loads(value, parse_int=float, object_pairs_hook=with_each_key_once)
    except json.JSONDecodeError as error:
        line, reason = first_line + error.lineno - 1, error.msg.removesuffix(" at")
        raise TextError(
            f"{reason} at line {line:,}, character {error.colno:,}: this is not JSON. Correct it there."
        ) from error
    except RecursionError as error:
        raise TextError(
            f"The JSON that starts on line {first_line:,} is nested too deeply. Write flat objects with text or words."
        ) from error


def _holds_lists(item: dict[str, Any]) -> bool:
    """Whether an object contains several texts, as lists of strings or lists of lists of words."""
    texts = [item[key] for keys in KINDS[:2] for key in keys if key in item]
    words = [item[key] for keys in KINDS[2:] for key in keys if key in item]
    return any(isinstance(value, list) for value in texts) or any(
        isinstance(value, list) and value and isinstance(value[0], list) for value in words
    )


def _rows(item: dict[str, Any]) -> list[dict[str, Any]]:
    """One object per text, from an object of lists."""
    columns = {key: item[key] for keys in (*KINDS, TREE, SPANS, (PAIRS, DOCUMENT)) for key in keys if key in item}
    lengths = {key: len(as_list(value, key, "The object", "one entry per text")) for key, value in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = " and ".join(f'{length:,} under "{key}"' for key, length in lengths.items())
        raise TextError(f"The lists in the object differ in length: {counts}. Give each text an entry in every list.")
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def from_object(item: Any, where: str) -> WrittenText:
    """The text of one object of a file, as it stands there. Error messages begin with its location in the file.

    Raises: TextError for an object that holds no text, or several.
    """
    if not isinstance(item, dict):
        raise TextError(f'{where} is {kind_of(item)}. Write an object, such as {{"text": "One text."}}.')
    kinds = [keys for keys in KINDS if any(key in item for key in keys)]
    if len(kinds) > 1:
        raise TextError(f"{where} has both {' and '.join(keys[0] for keys in kinds)}. Keep one of them.")
    if not kinds and "mentions" in item:
        raise TextError(
            f"{where} has mentions and no text: such files are read for coreference only. Give it a key "
            '"text", the keys "text_a" and "text_b", or a key "words".'
        )
    if not kinds:
        raise TextError(
            f'{where} has no text. Give it a key "text", the keys "text_a" and "text_b", a key "words", or a key "ids".'
        )
    (kind,) = kinds
    if PAIRS in item and kind not in KINDS[:2]:
        raise TextError(
            f'{where} has "{PAIRS}" and "{kind[0]}". Pairs join spans of characters of a "text", or of "text_a" and '
            '"text_b".'
        )
    if kind == ("words",):
        words = _strings(item["words"], "words", "word", where)
        return WrittenText(where, words=words, tree=_tree(item, len(words), where))
    if without_words := [key for key in TREE if key in item]:
        raise TextError(f'{where} has "{without_words[0]}" but no "words". Give it "words", or neither.')
    if kind == ("ids",):
        return written_ids(_given(item, where), where)
    if kind == ("tokens",):
        return WrittenText(where, _joined(_strings(item["tokens"], "tokens", "token", where), where))
    segments = tuple(_string(item, key, where) for key in kind)
    if PAIRS not in item:
        return WrittenText(where, segments)
    document, pairs = written_pairs(item, segments, where)
    return WrittenText(where, segments, pairs=pairs, document=document)


def _tree(item: dict[str, Any], n_words: int, where: str) -> Tree | None:
    missing = [key for key in TREE if key not in item]
    if len(missing) == len(TREE):
        return None
    if missing:
        raise TextError(f'{where} has no "{missing[0]}". Give both "heads" and "relns", or neither.')
    howto = "Write the number of the word's head, counted from 1; 0 for a root."
    heads = whole_numbers(item["heads"], "heads", f"{where}: head", howto)
    return checked_tree(heads, _strings(item["relns"], "relns", "relation", where), n_words, where)


def _given(item: dict[str, Any], where: str) -> GivenTokens:
    """The tokens of an object with ids."""
    howto = "Write the number of a token in the vocabulary, counted from 0."
    ids = whole_numbers(item["ids"], "ids", f"{where}: id", howto)
    if not ids:
        raise TextError(f"{where} has no token. Give it at least one id.")
    if outside := [number for number in ids if not 0 <= number <= LARGEST_ID]:
        raise TextError(f"{where} has the id {outside[0]:g}. {howto}")
    turns = None
    if TURNS in item:
        spans = as_list(item[TURNS], TURNS, where, "turns, each of two whole numbers")
        turns = tuple(span_of(span, TURNS, len(ids), where) for span in spans)
        if any(later < end for (_, end), (later, _) in pairwise(turns)):
            raise TextError(
                f"{where}: two turns overlap, or do not stand in their order. Put each after the one before."
            )
    if (has_span := [key in item for key in SPANS]) == [False, False]:
        return GivenTokens(ids, turns=turns)
    if not all(has_span):
        raise TextError(
            f'{where} has no "{SPANS[has_span.index(False)]}". Give both "needle" and "answer", or neither.'
        )
    (needle, end), (answer, answer_end) = (span_of(item[key], key, len(ids), where) for key in SPANS)
    if answer < end:
        raise TextError(
            f"{where}: the answer begins at {answer:,}, before the needle ends at {end:,}. Put it after it."
        )
    return GivenTokens(ids, (needle, end), (answer, answer_end), turns)


def _joined(pieces: Sequence[str], where: str) -> tuple[str, ...]:
    """Join word pieces to segments, with spaces between words and punctuation.

    [CLS] may come first and [SEP] ends a segment; other special tokens, such as [UNK], are kept literally.
    """
    segments: list[list[str]] = [[]]
    for position, piece in enumerate(pieces, start=1):
        continues = piece.startswith(CONTINUES) and piece != CONTINUES
        if piece == SEP:
            segments.append([])
        elif piece == CLS:
            if position > 1:
                raise TextError(f"{where}: token {position:,} is {CLS}, which only begins a text. Remove it.")
        elif continues and segments[-1]:
            segments[-1].append(piece.removeprefix(CONTINUES))
        else:  # a text cut at its beginning may begin with the rest of a word
            segments[-1].append((" " if segments[-1] else "") + (piece.removeprefix(CONTINUES) if continues else piece))
    if len(segments) > 1 and not segments[-1]:
        segments.pop()
    if len(segments) > 2:
        raise TextError(
            f"{where}: its tokens have {len(segments):,} segments and a text has one or two. Keep one {SEP} between "
            "two segments."
        )
    return tuple("".join(segment) for segment in segments)


def _string(item: dict[str, Any], key: str, where: str) -> str:
    if key not in item:
        raise TextError(f'{where} has one half of a pair and no "{key}". Give both text_a and text_b.')
    if not isinstance(item[key], str):
        raise TextError(f'{where}: "{key}" is {kind_of(item[key])}. Write a string.')
    return item[key]


def _strings(values: Any, key: str, noun: str, where: str) -> tuple[str, ...]:
    for position, value in enumerate(as_list(values, key, where, "strings"), start=1):
        if not isinstance(value, str):
            raise TextError(f"{where}: {noun} {position:,} is {kind_of(value)}. Write a list of strings.")
    return tuple(values)
