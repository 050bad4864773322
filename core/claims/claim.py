"""Reads a claim about heads: a sentence such as "L16 H19, L11 H15 are retrieval heads", or a paper's scores by head."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.roles.roles import BY_NAME, role_title
from attention_sieve.core.texts.json_files import parsed_json

HEAD: Final = re.compile(
    r"\bL(?:ayer)?\s*(\d{1,9})[\s,.:-]*H(?:ead)?\s*(\d{1,9})\b|(?<![\w.-])(\d{1,9})\s*[-.]\s*(\d{1,9})(?![\w-])",
    re.IGNORECASE | re.ASCII,
)
"""L16 H19, layer 16 head 19, L16H19, 16-19 or 16.19: layer and head, both from 0."""
WORD: Final = re.compile(r"\w+(?::\w+)*")
SAYS_NOTHING: Final = frozenset("a all an and are attention both head heads is role roles the token tokens".split())  # noqa: SIM905
"""Words of a claim that name neither its heads nor its role."""
SPOKEN: Final = {
    "subject": "syntactic:nsubj",
    "nominal subject": "syntactic:nsubj",
    "object": "syntactic:dobj",
    "obj": "syntactic:dobj",
    "direct object": "syntactic:dobj",
    "adjective": "syntactic:amod",
    "adjectival modifier": "syntactic:amod",
    "adverb": "syntactic:advmod",
    "adverbial modifier": "syntactic:advmod",
}
"""What grammatical relations are called in English."""
EXAMPLE: Final = "L16 H19, L11 H15 are retrieval heads"


@dataclass(frozen=True)
class Claim:
    """Some heads are said to have a role."""

    heads: tuple[Head, ...]
    """Each once, in the order of the claim."""
    role: str
    scores: tuple[float, ...] | None = None
    """How strongly each head is said to have it, on any scale; None where the claim only names the heads."""


def claim_of(claimed: str | Mapping[str, Any], role: str | None = None) -> Claim:
    """A claim that is written as a sentence, or as scores by head.

    Args:
        claimed: a sentence; or a number, or a list of numbers whose mean counts, by head: {"16-19": 0.8}, which may be
            JSON.
        role: name of the role; None where the sentence names it.

    Raises: AnalysisError with the place of what is no claim.
    """
    if isinstance(claimed, str):
        if not claimed.lstrip().startswith(("{", "[")):
            return _claim_in_sentence(claimed, role)
        claimed = scores_in(claimed)
    if role is None:
        raise AnalysisError("Scores by head do not say of which role they are. Name the role, too.")
    scores = dict[Head, float]()
    for name, value in claimed.items():
        head = HEAD.fullmatch(name.strip()) if isinstance(name, str) else None
        if head is None:
            raise AnalysisError(f"{quoted(name)} is no head. Name each as layer and head, such as 16-19 or L16 H19.")
        if (named := _head(head)) in scores:
            raise AnalysisError(f"{quoted(name)} is {head_name(*named)}, which has a score already. Leave one out.")
        scores[named] = _score(name, value)
    if not scores:
        raise AnalysisError('There are no scores. Write them by head, such as {"16-19": 0.8}.')
    return Claim(tuple(scores), role, tuple(scores.values()))


def scores_in(written: str) -> Mapping[str, Any]:
    """Scores by head, from JSON.

    Raises: AnalysisError with the line.
    """
    scores = parsed_json(written, first_line=1)
    if not isinstance(scores, dict):
        raise AnalysisError('These are no scores by head. Write them as {"16-19": 0.8}.')
    return scores


def _head(match: re.Match[str]) -> Head:
    layer, head = (int(number) for number in match.groups() if number is not None)
    return layer, head


def _score(name: str, value: Any) -> float:
    """A score, or the mean of a list of scores, as nightdessert/Retrieval_Head publishes them."""
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(
        isinstance(number, int | float | np.number) and not isinstance(number, bool) and np.isfinite(number)
        for number in numbers
    ):
        raise AnalysisError(f"The score of {quoted(name)} is {quoted(value)}. Give a number, or a list of numbers.")
    return float(np.mean(numbers))


def _claim_in_sentence(sentence: str, role: str | None) -> Claim:
    heads = tuple(dict.fromkeys(map(_head, HEAD.finditer(sentence))))
    if not heads:
        raise AnalysisError(f"{quoted(sentence)} names no head. Write a claim such as: {EXAMPLE}.")
    without_heads = HEAD.sub(lambda match: " " * len(match[0]), sentence)
    words = [match for match in WORD.finditer(without_heads) if match[0].lower() not in SAYS_NOTHING]
    named = " ".join(match[0] for match in words)
    spoken = role if role and named in ("", role_title(role)) else _spoken_roles().get(named.lower())
    if spoken is not None and role in (None, spoken):
        return Claim(heads, spoken)
    if not words:
        raise AnalysisError(f"The claim names no role. Write one such as: {EXAMPLE}; or name the role beside it.")
    if spoken is not None:
        raise AnalysisError(f"The claim is about the role {spoken}, and the role beside it is {role_title(str(role))}.")
    if len(several := _roles_among([match[0].lower() for match in words])) > 1:
        raise AnalysisError(
            f"The claim names {len(several)} roles: {' and '.join(several)}. Each has a test of its own: write a claim "
            "for each."
        )
    raise AnalysisError(
        f"{quoted(named)}, at character {words[0].start() + 1:,} of the claim, is no role. The roles are "
        f"{', '.join(BY_NAME)}."
    )


def _roles_among(words: list[str]) -> list[str]:
    """What some words call roles, in their order: of two roles that begin at one word, the longer name."""
    spoken, named, start = _spoken_roles(), dict[str, str](), 0
    longest = max(len(name.split()) for name in spoken)
    while start < len(words):
        forms = (" ".join(words[start : start + n]) for n in range(longest, 0, -1))
        name = next((form for form in forms if form in spoken), None)
        if name is not None:
            named.setdefault(spoken[name], name)
        start += 1 if name is None else len(name.split())
    return list(named.values())


def _spoken_roles() -> dict[str, str]:
    """Role by its name, that in the plural, of a finer role its last part, such as nsubj, and what it is called in
    English."""
    parts = ((said, name) for name in BY_NAME for said in (name, *name.split(":")[1:]))
    return {form: name for said, name in (*parts, *SPOKEN.items()) for form in (said, f"{said}s")}
