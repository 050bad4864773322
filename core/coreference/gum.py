"""Coreference of Universal Dependencies GUM as JSON: whole documents, or windows of consecutive sentences."""

from collections.abc import Callable
from itertools import accumulate, chain
from typing import Any, Final

from attention_sieve.core.coreference.marked_texts import Marked, MarkedText, marked_words, type_named
from attention_sieve.core.coreference.mentions import MentionType
from attention_sieve.core.errors import TextError
from attention_sieve.core.json_values import as_index, as_list, as_name, check_as_many, value_at

MENTION_KEYS: Final = ("start", "end", "head")
"""Keys of a mention: its first word, last word (inclusive), and head word."""


def gum_text(item: dict[str, Any], where: str) -> MarkedText:
    """One document, which has "sentences" and mentions with a "sent" each, or one window, which has "words".

    All mentions are candidates, including singletons, appositions and predicates. Types are those of "anaphors", or
    otherwise derived from "xpos" or "upos" of the head word.

    Raises: TextError.
    """
    is_window = "words" in item
    sentences = [item["words"]] if is_window else as_list(item["sentences"], "sentences", where)
    firsts = [0, *accumulate(len(as_list(words, "sentences", where)) for words in sentences)]
    type_of = _types(item, where, firsts[-1])
    mentions = []
    for number, mention in enumerate(as_list(item["mentions"], "mentions", where), start=1):
        location = f"{where}, mention {number:,}"
        sentence = 0 if is_window else as_index(value_at(mention, "sent", location), "sent", location)
        if sentence >= len(sentences):
            raise TextError(f'{location}: "sent" is {sentence} and there are {len(sentences):,} sentences, from 0.')
        mentions.append(_mention(mention, firsts[sentence], type_of, location))
    return marked_words(
        as_name(item.get("doc", where), "doc", where),
        list(chain.from_iterable(sentences)),
        mentions,
        where,
        sentence_ends=None if is_window else tuple(end for end in dict.fromkeys(firsts) if end),
        is_excerpt=is_window,
    )


def _mention(item: Any, first: int, type_of: Callable[[int], MentionType | None], where: str) -> Marked:
    start, end, head = (as_index(value_at(item, key, where), key, where) for key in MENTION_KEYS)
    if not start <= head <= end:
        raise TextError(f"{where} has the words {start} to {end} and the head word {head}. Correct them.")
    entity = as_name(value_at(item, "cluster", where), "cluster", where)
    return Marked(first + start, first + end + 1, entity, first + head, type_of(first + head))


def _types(item: dict[str, Any], where: str, n_words: int) -> Callable[[int], MentionType | None]:
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
        tags = list(chain.from_iterable(as_list(of_sentence, key, where) for of_sentence in tags))
    check_as_many(tags, range(n_words), (f"tags in {key}", "words"), where)
    return lambda word: _type_of_tag(str(tags[word])) if word < n_words else None


def _type_of_tag(tag: str) -> MentionType:
    """Type for a Penn or universal tag; demonstratives (DT in the Penn tag set) are nominal."""
    if tag in ("PRP", "PRP$", "WP", "WP$", "PRON"):
        return "pronoun"
    return "proper" if tag in ("NNP", "NNPS", "PROPN") else "nominal"
