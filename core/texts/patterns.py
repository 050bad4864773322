"""Patterns of spaCy's Matcher and DependencyMatcher, written by a reader: what they may hold, and what they match.

Source: https://spacy.io/api/matcher and https://spacy.io/api/dependencymatcher, attributes and operators of their
patterns, of which each takes bounded time here: a pattern covers a bounded number of words, a regular expression that
does not end is stopped, and trees are matched node by node, where spaCy goes through all combinations of words.
"""

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.pauses import pause

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
"""Of a processor, for all regular expressions together over all words that are parsed at once."""
LONGEST_WORD: Final = 10_000
"""Characters of a word in which an expression is searched for: each of its groups keeps all that it has matched."""
MOST_COPIES: Final = 1_000
"""Of a part of an expression, which is compiled as often as it is repeated at least."""
COUNTS: Final = re.compile(r"\{([0-9]+)[,}]")
PROPERTY: Final = re.compile(r"\\[pP]\{[^{}]*\}")
MOST_NODES: Final = 8
"""Words of a pattern of a tree."""
QUERY: Final = "from"
"""Name of the word of a tree that looks at the first one."""
STEPS: Final = {".": "+", ".*": "++", ";": "-", ";*": "--"}
"""Operators that ask for an order alone -> what stands for it behind those that also ask for a relation."""
OPERATORS: Final = ("<", ">", "<<", ">>", *STEPS, *(kind + step for kind in "<>$" for step in STEPS.values()))
"""Of a word of a tree and an earlier one."""


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
    return _as_json(pattern)


def checked_tree(pattern: object, where: str) -> str:
    """A pattern of spaCy's DependencyMatcher as JSON with sorted names.

    Raises: AnalysisError that begins with `where`, for one that spaCy does not know.
    """
    if not isinstance(pattern, list) or not 1 <= len(pattern) <= MOST_NODES:
        raise AnalysisError(
            f"{where}: a pattern of trees is a list of 1 to {MOST_NODES} tables, one for each word, such as "
            '[{RIGHT_ID = "verb", RIGHT_ATTRS = {POS = "VERB"}}].'
        )
    names: list[str] = []
    for number, node in enumerate(pattern, start=1):
        at = f"{where}, word {number}"
        needed = ("RIGHT_ID", "RIGHT_ATTRS", *(("LEFT_ID", "REL_OP") if names else ()))
        if not isinstance(node, dict) or set(node) != set(needed):
            raise AnalysisError(f"{at}: write a table with {', '.join(needed)}, and nothing else.")
        name, attributes = node["RIGHT_ID"], node["RIGHT_ATTRS"]
        if not isinstance(name, str) or not name or len(name) > LONGEST or name in names:
            raise AnalysisError(f"{at}: RIGHT_ID is {quoted(str(name))}. Give the word a name of its own.")
        if names and node["LEFT_ID"] not in names:
            known = ", ".join(map(quoted, names))
            raise AnalysisError(f"{at}: LEFT_ID is {quoted(str(node['LEFT_ID']))}. Name an earlier word: {known}.")
        if names and node["REL_OP"] not in OPERATORS:
            raise AnalysisError(
                f"{at}: REL_OP is {quoted(str(node['REL_OP']))}. Choose one of: {', '.join(OPERATORS)}."
            )
        if not isinstance(attributes, dict):
            raise AnalysisError(f'{at}: RIGHT_ATTRS is a table of attributes, such as {{POS = "VERB"}}.')
        for attribute, value in attributes.items():
            _check(attribute, value, at)
        names.append(name)
    return _as_json(pattern)


def _as_json(pattern: object) -> str:
    return json.dumps(pattern, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def word_patterns(tree: str) -> tuple[str, ...]:
    """The patterns of the single words of a pattern of trees, in their order."""
    return tuple(_as_json([node["RIGHT_ATTRS"]]) for node in json.loads(tree))


def names_query(tree: str) -> bool:
    """Whether a word of a pattern of trees, other than the first, is the one that looks."""
    return any(node["RIGHT_ID"] == QUERY for node in json.loads(tree)[1:])


def tree_matches(
    tree: str, heads: Int[np.ndarray, " word"], fits: Bool[np.ndarray, "node word"]
) -> Int[np.ndarray, "match 2"]:
    """The words that match a pattern of trees: the one that looks, or else the first again; and the first.

    Like spaCy's, two nodes may be one word. Unlike spaCy's, a root has no siblings, and spaces are no words.

    Args:
        tree: from `checked_tree`.
        heads: index of each word's head; below 0 for a root.
        fits: whether each word matches the pattern of each node.
    """
    nodes = json.loads(tree)
    number = {node["RIGHT_ID"]: place for place, node in enumerate(nodes)}
    parent = [number.get(node.get("LEFT_ID"), 0) for node in nodes]
    root_of = np.arange(len(heads))
    while (heads[root_of] >= 0).any():
        root_of = np.where(heads[root_of] >= 0, heads[root_of], root_of)
    matches = [np.zeros((0, 2), int)]
    for root in np.unique(root_of):
        words = np.flatnonzero(root_of == root)
        own_heads, is_there = np.where(heads[words] >= 0, np.searchsorted(words, heads[words]), -1), fits[:, words]
        for place in range(len(nodes) - 1, 0, -1):
            related = _related(nodes[place]["REL_OP"], own_heads)
            is_there[parent[place]] &= related[:, is_there[place]].any(axis=1)
        at, path = number.get(QUERY, 0), list[int]()
        while at:
            at, path = parent[at], [at, *path]
        reached = np.diag(is_there[0]).astype(np.float32)  # whose product is much faster than that of truth values
        for place in path:
            reached = np.minimum(reached @ _related(nodes[place]["REL_OP"], own_heads), is_there[place], dtype="f4")
        first, query = reached.nonzero()
        matches.append(words[np.stack([query, first], axis=1)])
    return np.concatenate(matches)


def _related(operator: str, heads: Int[np.ndarray, " word"]) -> Bool[np.ndarray, "word other"]:
    """Whether an operator holds between each word of a sentence and each other one."""
    step = STEPS.get(operator) or operator.lstrip("<>$")
    place = np.arange(len(heads))
    distance = place - place[:, None]
    is_head = heads[:, None] == place
    match operator.removesuffix(step) if operator not in STEPS else "":
        case "<":
            related = is_head
        case ">":
            related = is_head.T
        case "<<" | ">>":
            related, above = np.zeros_like(is_head), heads
            while (above >= 0).any():
                related[place[above >= 0], above[above >= 0]] = True
                above = np.where(above >= 0, heads[above], -1)
            related = related if operator == "<<" else related.T
        case "$":
            related = (heads[:, None] == heads) & (heads >= 0) & (distance != 0)
        case _:
            related = np.ones_like(is_head)
    order = {"+": distance == 1, "-": distance == -1, "++": distance > 0, "--": distance < 0}
    return related & order[step] if step else related


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
    expected = ATTRIBUTES[name]
    for operator, single in value.items() if isinstance(value, dict) else [("", value)]:
        singles = single if operator in ("IN", "NOT_IN") and isinstance(single, list) else [single]
        known = {str: ("", "IN", "NOT_IN", "REGEX"), int: ("", ">=", "<=", ">", "<", "=="), bool: ("",)}[expected]
        if operator not in known:
            raise AnalysisError(f"{where}: {name} cannot be compared by {quoted(operator)}. Choose: {known[1:]}.")
        if not all(type(part) is expected and len(str(part)) <= LONGEST for part in singles) or len(singles) > LONGEST:
            kind = {str: f"text of at most {LONGEST} characters", int: "a number", bool: "true or false"}[expected]
            raise AnalysisError(f"{where}: {name} takes {kind}, and this is {quoted(str(single))}.")
        if operator == "REGEX":
            _expression(str(single), where)


def _expression(expression: str, where: str) -> Any:
    """A compiled expression, of those that spaCy's Matcher takes, with Unicode's properties such as `\\p{Lu}` beside
    them: none that calls itself, which takes memory without end."""
    import regex  # the only one of Python's that can be stopped

    n_copies = math.prod(int(least) for least in COUNTS.findall(expression) if int(least))
    if n_copies > MOST_COPIES:
        raise AnalysisError(
            f"{where}: {quoted(expression)} repeats a part at least {n_copies:,} times. Repeat at most {MOST_COPIES:,} "
            "times, all counts multiplied."
        )
    try:
        re.compile(PROPERTY.sub(r"\\w", expression))
        return regex.compile(expression)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise AnalysisError(f"{where}: {quoted(expression)} is no regular expression: {error}.") from error


def matched_words(patterns: Sequence[str], documents: Sequence[Any]) -> list[list[list[bool]]]:
    """For each pattern, which words of each document are part of a match. Patterns are from `checked`, and the
    documents, at least one, are parsed by spaCy and share a vocabulary.

    Raises: AnalysisError for regular expressions that do not end, and for words that are too long for them.
    """
    from spacy.matcher import Matcher

    read = [json.loads(pattern) for pattern in patterns]
    occurring = _found_values([word for pattern in read for word in pattern], documents)
    matched = []
    for pattern in read:
        pause()
        matcher = Matcher(documents[0].vocab)
        matcher.add("pattern", [[_without_expressions(word, occurring) for word in pattern]])
        document_masks = [[False] * len(document) for document in documents]
        for document, is_matched in zip(documents, document_masks):
            for _, start, end in matcher(document):
                is_matched[start:end] = [True] * (end - start)
        matched.append(document_masks)
    return matched


def _without_expressions(word: dict[str, Any], occurring: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, Any]:
    """A word of a pattern with the values that occur in place of regular expressions, which spaCy would not stop."""
    known = dict(word)
    for name, value in word.items():
        if isinstance(value, dict) and "REGEX" in value:
            fits = [text for text in occurring[name, value["REGEX"]] if "IN" not in value or text in value["IN"]]
            known[name] = {operator: part for operator, part in value.items() if operator != "REGEX"} | {"IN": fits}
    return known


def _found_values(words: Sequence[dict[str, Any]], documents: Sequence[Any]) -> dict[tuple[str, str], list[str]]:
    """The values that occur of an attribute, in which an expression is found, for each of these two that words of
    patterns name. Each value is searched once, and all of them within SECONDS of a processor."""
    asked = dict.fromkeys(
        (name, value["REGEX"])
        for word in words
        for name, value in word.items()
        if isinstance(value, dict) and "REGEX" in value
    )
    values: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for name, _ in asked):
        attribute = {"ORTH": "text", "TEXT": "text"}.get(name, f"{name.lower()}_")
        values[name] = list(dict.fromkeys(getattr(token, attribute) for document in documents for token in document))
    longest = max((len(text) for texts in values.values() for text in texts), default=0)
    if longest > LONGEST_WORD:
        raise AnalysisError(
            f"There is a word of {longest:,} characters, and regular expressions are searched for in words of at most "
            f"{LONGEST_WORD:,}. Divide it by spaces, or write the role without a regular expression."
        )
    is_found, spent = dict[tuple[str, str], bool](), 0.0
    for name, expression in asked:
        compiled, began = _expression(expression, "The pattern"), time.thread_time()
        for text in values[name]:
            if (expression, text) not in is_found:
                left = SECONDS - spent - (time.thread_time() - began)
                is_found[expression, text] = _is_found(compiled, text, left)
        spent += time.thread_time() - began
    return {(name, expression): [v for v in values[name] if is_found[expression, v]] for name, expression in asked}


def _is_found(compiled: Any, value: str, seconds: float) -> bool:
    try:
        if seconds > 0:
            return compiled.search(value, timeout=seconds) is not None
    except TimeoutError:
        pass
    raise AnalysisError(
        f"The regular expressions of the roles take more than {SECONDS:g} s over the words that are parsed at once; "
        f"{quoted(compiled.pattern)} was not done. Write it without a repetition inside a repetition."
    )
