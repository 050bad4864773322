"""Patterns of spaCy's Matcher, written by a reader: what they may hold, and the words that they match.

Source: https://spacy.io/api/matcher, attributes and operators of its patterns, of which each takes bounded time here: a
pattern covers a bounded number of words, and a regular expression that does not end is stopped.
"""

import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from attention_sieve.core.errors import AnalysisError, quoted

ATTRIBUTES: Final = {
    **dict.fromkeys(("ORTH", "TEXT", "LOWER", "TAG", "POS", "LEMMA", "DEP", "SHAPE", "ENT_TYPE"), str),
    **dict.fromkeys(("IS_ALPHA", "IS_ASCII", "IS_DIGIT", "IS_LOWER", "IS_UPPER", "IS_TITLE", "IS_PUNCT"), bool),
    **dict.fromkeys(("IS_STOP", "IS_SENT_START", "LIKE_NUM", "LIKE_URL", "LIKE_EMAIL"), bool),
    "LENGTH": int,
}
"""Attributes of a word that a pattern may ask for, with the kind of their values."""
REPEATS: Final = re.compile(r"(!)|(\?)|\{([0-9])\}|\{([0-9]?),([0-9])\}")
MOST_WORDS: Final = 16
"""Words that a pattern can match together."""
MOST_OPTIONAL: Final = 6
"""Words of these that may be missing: spaCy follows every way of leaving some of them out."""
LONGEST: Final = 100
"""Characters in a value."""
SECONDS: Final = 0.5
"""For a regular expression over all words that are parsed at once."""


def checked(pattern: object, where: str) -> str:
    """A pattern as JSON with sorted names.

    Raises: AnalysisError that begins with `where`, for one that spaCy does not know, or that could take long.
    """
    if not isinstance(pattern, list) or not pattern or not all(isinstance(word, dict) for word in pattern):
        raise AnalysisError(f'{where}: a pattern is a list with a table for each word, such as [{{POS = "VERB"}}].')
    least, most = 0, 0
    for number, word in enumerate(pattern, start=1):
        fewest, largest = _repeats(word.get("OP", "{1}"), f"{where}, word {number}")
        least, most = least + fewest, most + largest
        for name, value in word.items():
            if name != "OP":
                _check(name, value, f"{where}, word {number}")
    if most > MOST_WORDS or most - least > MOST_OPTIONAL:
        raise AnalysisError(
            f"{where}: the pattern matches up to {most} words, of which {most - least} may be missing. At most "
            f"{MOST_WORDS} and {MOST_OPTIONAL} are searched for."
        )
    return json.dumps(pattern, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _repeats(operator: object, where: str) -> tuple[int, int]:
    """How often a word of a pattern occurs, at least and at most."""
    match = REPEATS.fullmatch(operator) if isinstance(operator, str) else None
    if match is None:
        raise AnalysisError(
            f"{where}: OP is {quoted(operator)}. Choose !, ?, or numbers such as {{2}} or {{1,5}}: * and + could match "
            "without end."
        )
    _, optional, exactly, least, most = match.groups()
    if optional or most:
        return (0, 1) if optional else (int(least or 0), int(most))
    return int(exactly or 1), int(exactly or 1)


def _check(name: str, value: object, where: str) -> None:
    if name not in ATTRIBUTES:
        raise AnalysisError(f"{where}: there is no attribute {quoted(name)}. Choose one of: {', '.join(ATTRIBUTES)}.")
    of_value = ATTRIBUTES[name]
    for operator, single in value.items() if isinstance(value, dict) else [("", value)]:
        singles = single if operator in ("IN", "NOT_IN") and isinstance(single, list) else [single]
        known = {str: ("", "IN", "NOT_IN", "REGEX"), int: ("", ">=", "<=", ">", "<", "=="), bool: ("",)}[of_value]
        if operator not in known:
            raise AnalysisError(f"{where}: {name} cannot be compared by {quoted(operator)}. Choose: {known[1:]}.")
        if not all(type(each) is of_value and len(str(each)) <= LONGEST for each in singles) or len(singles) > LONGEST:
            kind = {str: f"text of at most {LONGEST} characters", int: "a number", bool: "true or false"}[of_value]
            raise AnalysisError(f"{where}: {name} takes {kind}, and this is {quoted(str(single))}.")
        if operator == "REGEX":
            _expression(str(single), where)


def _expression(expression: str, where: str) -> Any:
    import regex  # the only one of Python's that can be stopped

    try:
        return regex.compile(expression)
    except regex.error as error:
        raise AnalysisError(f"{where}: {quoted(expression)} is no regular expression: {error}.") from error


def matched_words(pattern: str, documents: Sequence[Any]) -> list[list[bool]]:
    """Which words of each document are part of a match.

    Args:
        pattern: from `checked`.
        documents: parsed by spaCy, at least one.

    Raises: AnalysisError for a regular expression that does not end.
    """
    from spacy.matcher import Matcher

    matcher = Matcher(documents[0].vocab)
    matcher.add("pattern", [[_without_expressions(word, documents) for word in json.loads(pattern)]])
    matched = []
    for document in documents:
        is_matched = [False] * len(document)
        for _, start, end in matcher(document):
            is_matched[start:end] = [True] * (end - start)
        matched.append(is_matched)
    return matched


def _without_expressions(word: dict[str, Any], documents: Sequence[Any]) -> dict[str, Any]:
    """A word of a pattern with the values that occur in place of regular expressions, which spaCy would not stop."""
    known = dict(word)
    for name, value in word.items():
        if isinstance(value, dict) and "REGEX" in value:
            attribute = {"ORTH": "text", "TEXT": "text"}.get(name, f"{name.lower()}_")
            values = {getattr(token, attribute) for document in documents for token in document}
            fits = _fitting(value["REGEX"], values)
            if "IN" in value:
                fits = [each for each in fits if each in value["IN"]]
            known[name] = {name: part for name, part in value.items() if name != "REGEX"} | {"IN": fits}
    return known


def _fitting(expression: str, values: Iterable[str]) -> list[str]:
    compiled, end = _expression(expression, "The pattern"), time.monotonic() + SECONDS
    try:
        return [each for each in values if compiled.search(each, timeout=max(1e-3, end - time.monotonic()))]
    except TimeoutError as error:
        raise AnalysisError(
            f"The regular expression {quoted(expression)} takes more than {SECONDS:g} s. Write it without a repetition "
            "inside a repetition."
        ) from error
