"""Reads files of texts with gold mentions; recognises the format by the content.

Kinds:
    Clusters: JSON objects, one, in a list or one a line, with "text" or "words", and "clusters": a list of clusters,
        each a list of mentions [start, end] of one entity. Offsets count the characters of "text", or "words", from 0;
        the end is one past the last. A cluster of one mention is a candidate antecedent. Optional: "name"; and, of the
        same form as the clusters, "types", with pronoun, proper or nominal for each mention, and "heads", with the
        first character of its head word, or that word. Without heads, a parser finds them.
    UD GUM: JSON objects with "mentions" beside "sentences", for whole documents, or "words", for windows of consecutive
        sentences.
    GAP: a table with tabs and the columns GAP_COLUMNS; quotes are plain characters. Only the pronoun is
        resolved, so names after it are left out.

Texts with the same name ("name", "doc", "ID") are parts of one document; those without a name are documents
of their own.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, chain, islice
from typing import Any, Final

from attention_sieve.core.coreference.mentions import (
    Marked,
    MarkedText,
    MentionText,
    MentionType,
    marked_characters,
    marked_words,
    type_named,
    unwatched,
    with_heads,
)
from attention_sieve.core.errors import TextError
from attention_sieve.core.json_values import as_index, as_list, as_name, check_as_many, kind_of, value_at
from attention_sieve.core.texts.json_files import parsed_json
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import MAX_TEXTS, decoded

GAP_COLUMNS: Final = ("Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")
CONLLU_COLUMNS: Final = 10
MENTION_KEYS: Final = ("start", "end", "head")
"""Keys of a mention of UD GUM: its first word, last word (inclusive), and head word."""
FLAGS: Final = {"TRUE": True, "FALSE": False}
KINDS: Final = "JSON with clusters, UD GUM as JSON, or GAP as a table with tabs"
EXAMPLE: Final = '{"text": "Ann left. She was tired.", "clusters": [[[0, 3], [10, 13]]]}'

_ONE_A_LINE: Final = re.compile(r"\s*\{[^\n]*\}[^\S\n]*\n\s*\{")


def read_mentions(
    content: bytes, watched: Callable[[Iterable[Dependencies], int], Iterable[Dependencies]] = unwatched
) -> tuple[MentionText, ...]:
    """Texts with gold mentions.

    Args:
        content: the file's bytes, UTF-8, in one of the formats above; the file name is ignored.
        watched: wraps the iteration over the parsed texts, to report progress.

    Raises: TextError with the line or item; AnalysisError if head words are needed and no parser is installed.
    """
    value = decoded(content)
    if not value.strip():
        raise TextError(f"The file is empty. Choose {KINDS}.")
    every_text = _json_texts(value) if value.lstrip()[0] in "[{" else _gap_texts(value)
    texts = tuple(islice(every_text, MAX_TEXTS + 1))
    if len(texts) > MAX_TEXTS:
        raise TextError(f"There are more than {MAX_TEXTS:,} texts. Choose fewer.")
    if not any(text.mentions for text in texts):
        raise TextError(
            f"The file has {len(texts):,} text{'' if len(texts) == 1 else 's'} and no mention. Choose {KINDS}."
        )
    return with_heads(texts, watched)


def _json_texts(value: str) -> Iterator[MarkedText]:
    if _ONE_A_LINE.match(value):
        for line, row in enumerate(io.StringIO(value, newline=None), start=1):
            if row.strip():
                yield _from_object(parsed_json(row.removesuffix("\n"), line), f"Line {line:,}")
        return
    parsed = parsed_json(value, 1)
    for position, item in enumerate(parsed if isinstance(parsed, list) else [parsed], start=1):
        yield _from_object(item, f"Item {position:,}")


def _from_object(item: Any, where: str) -> MarkedText:
    if not isinstance(item, dict):
        raise TextError(f"{where} is {kind_of(item)}. Write an object with clusters, such as {EXAMPLE}.")
    if "clusters" in item:
        return _from_clusters(item, where)
    if "mentions" in item and ("sentences" in item or "words" in item):
        return _gum_text(item, where)
    raise TextError(f"{where} has no mentions. Write an object with clusters, such as {EXAMPLE}.")


def _from_clusters(item: dict[str, Any], where: str) -> MarkedText:
    if ("text" in item) == ("words" in item):
        raise TextError(f'{where} has {"both" if "text" in item else "neither"} "text" and "words". Give one of them.')
    mentions, name = list(_cluster_mentions(item, where)), as_name(item.get("name", where), "name", where)
    if "words" in item:
        return marked_words(name, as_list(item["words"], "words", where), mentions, where)
    if not isinstance(item["text"], str):
        raise TextError(f'{where}: "text" is {kind_of(item["text"])}. Write a string.')
    return marked_characters(name, item["text"], mentions, where)


def _cluster_mentions(item: dict[str, Any], where: str) -> Iterator[Marked]:
    clusters = as_list(item["clusters"], "clusters", where)
    types, heads = (_by_cluster(item, name, clusters, where) for name in ("types", "heads"))
    for number, (cluster, cluster_types, cluster_heads) in enumerate(zip(clusters, types, heads), start=1):
        location = f"{where}, cluster {number:,}"
        spans = as_list(cluster, "clusters", location)
        attributes = (
            _by_mention(cluster_types, "types", spans, location),
            _by_mention(cluster_heads, "heads", spans, location),
        )
        for span, type_, head in zip(spans, *attributes):
            if not isinstance(span, list) or len(span) != 2:
                raise TextError(
                    f"{location} has a mention that is not a pair [start, end]. Write where it starts and ends."
                )
            start, end = (as_index(value, name, location) for value, name in zip(span, ("start", "end")))
            yield Marked(
                start,
                end,
                str(number),
                head=None if head is None else as_index(head, "head", location),
                type=None if type_ is None else type_named(type_, location),
            )


def _by_cluster(item: dict[str, Any], name: str, clusters: list[Any], where: str) -> list[Any]:
    """Values of an optional key, one per cluster; None for every cluster if the key is missing."""
    if name not in item:
        return [None] * len(clusters)
    values = as_list(item[name], name, where)
    check_as_many(values, clusters, (f"lists of {name}", "clusters"), where)
    return values


def _by_mention(given: Any, name: str, spans: list[Any], where: str) -> list[Any]:
    """Values of one cluster, one per mention; None for every mention if the cluster has none."""
    if given is None:
        return [None] * len(spans)
    values = as_list(given, name, where)
    check_as_many(values, spans, (name, "mentions"), where)
    return values


def _gum_text(item: dict[str, Any], where: str) -> MarkedText:
    """One document, which has "sentences" and mentions with a "sent" each, or one window, which has "words".

    All mentions are candidates, including singletons, appositions and predicates. Types are those of "anaphors", or
    otherwise derived from "xpos" or "upos" of the head word.
    """
    is_window = "words" in item
    sentences = [item["words"]] if is_window else as_list(item["sentences"], "sentences", where)
    firsts = [0, *accumulate(len(as_list(words, "sentences", where)) for words in sentences)]
    type_of = _gum_types(item, where, firsts[-1])
    mentions = []
    for number, mention in enumerate(as_list(item["mentions"], "mentions", where), start=1):
        location = f"{where}, mention {number:,}"
        sentence = 0 if is_window else as_index(value_at(mention, "sent", location), "sent", location)
        if sentence >= len(sentences):
            raise TextError(f'{location}: "sent" is {sentence} and there are {len(sentences):,} sentences, from 0.')
        mentions.append(_gum_mention(mention, firsts[sentence], type_of, location))
    return marked_words(
        as_name(item.get("doc", where), "doc", where),
        list(chain.from_iterable(sentences)),
        mentions,
        where,
        sentence_ends=None if is_window else tuple(end for end in dict.fromkeys(firsts) if end),
        is_excerpt=is_window,
    )


def _gum_mention(item: Any, first: int, type_of: Callable[[int], MentionType | None], where: str) -> Marked:
    start, end, head = (as_index(value_at(item, key, where), key, where) for key in MENTION_KEYS)
    if not start <= head <= end:
        raise TextError(f"{where} has the words {start} to {end} and the head word {head}. Correct them.")
    entity = as_name(value_at(item, "cluster", where), "cluster", where)
    return Marked(first + start, first + end + 1, entity, first + head, type_of(first + head))


def _gum_types(item: dict[str, Any], where: str, n_words: int) -> Callable[[int], MentionType | None]:
    """Function from a head word to the type of its mention, or None if the file does not specify it."""
    if "anaphors" in item:
        anaphors = as_list(item["anaphors"], "anaphors", where)
        type_of_head = {
            as_index(value_at(anaphor, "head", where), "head", where): type_named(
                value_at(anaphor, "type", where), where
            )
            for anaphor in anaphors
        }
        return type_of_head.get
    key = next((key for key in ("xpos", "upos") if key in item), None)
    if key is None:
        return lambda word: None
    tags = as_list(item[key], key, where)
    if "sentences" in item:
        tags = list(chain.from_iterable(as_list(sentence, key, where) for sentence in tags))
    check_as_many(tags, range(n_words), (f"tags in {key}", "words"), where)
    return lambda word: _type_of_tag(str(tags[word])) if word < n_words else None


def _type_of_tag(tag: str) -> MentionType:
    """Type for a Penn or universal tag; demonstratives (DT in the Penn tag set) are nominal."""
    if tag in ("PRP", "PRP$", "WP", "WP$", "PRON"):
        return "pronoun"
    return "proper" if tag in ("NNP", "NNPS", "PROPN") else "nominal"


def _gap_texts(value: str) -> Iterator[MarkedText]:
    rows = enumerate(io.StringIO(value, newline=None), start=1)
    header = next(rows)[1].rstrip("\n").split("\t")
    missing = [name for name in GAP_COLUMNS if name not in header]
    if missing and (header[0].startswith("#") or len(header) == CONLLU_COLUMNS):
        raise TextError(f"This looks like CoNLL-U, which does not mark mentions. Choose {KINDS}.")
    if missing:
        raise TextError(f'This is not JSON, and the first line names no column "{missing[0]}". Choose {KINDS}.')
    for line, row in rows:
        if row.strip():
            cells = row.rstrip("\n").split("\t")
            check_as_many(cells, header, ("cells", "columns in the first line"), f"Line {line:,}")
            yield _gap_text(dict(zip(header, cells)), f"Line {line:,}")


def _gap_text(row: dict[str, str], where: str) -> MarkedText:
    start, end = _gap_span(row, "Pronoun", where)
    mentions = [Marked(start, end, "pronoun", type="pronoun")]
    for name in ("A", "B"):
        flag = row[f"{name}-coref"].strip().upper()
        if flag not in FLAGS:
            raise TextError(f'{where}: {name}-coref is "{flag}". Write TRUE or FALSE.')
        span = _gap_span(row, name, where)
        if span[1] <= start:
            mentions.append(Marked(*span, "pronoun" if FLAGS[flag] else name, type="proper"))
    return marked_characters(row.get("ID", where), row["Text"], mentions, where, is_excerpt=True)


def _gap_span(row: dict[str, str], name: str, where: str) -> tuple[int, int]:
    offset, phrase = row[f"{name}-offset"].strip(), row[name]
    start = int(offset) if offset.isascii() and offset.isdigit() and len(offset) < 10 else -1
    if start < 0 or row["Text"][start : start + len(phrase)] != phrase:
        raise TextError(f'{where}: "{phrase}" is not at character "{offset}" of the text. Correct {name}-offset.')
    return start, start + len(phrase)
