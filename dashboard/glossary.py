"""Terms with a one-sentence explanation, marked where they first occur in a sentence."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from core.roles.sieves import LOCAL_RADIUS

TERMS: Final = {
    "head": (
        "A part of the model that decides, for every token, how much attention it pays to each token. Every layer has "
        "several."
    ),
    "token": "A piece of a text as the model reads it: a word, a part of a word, or a sign.",
    "role": (
        "What a head does: it gives some kind of token, such as its neighbours, clearly more attention than an even "
        "spread over all tokens would."
    ),
    "local": f"Looks nearby: at the token itself and up to {LOCAL_RADIUS} tokens before and after it.",
    "syntactic": (
        "Looks along grammatical relations: between subjects, objects, adjectives or adverbs and the words that "
        "they belong to."
    ),
    "delimiter": "Looks at the special tokens that mark where a text begins and ends, such as [CLS] and [SEP].",
    "block": "Looks at the tokens of its own segment, in a text that has two.",
    "sieve": "For every token, the tokens that a role expects it to look at.",
    "score": (
        "How much attention falls on the tokens that a role expects, compared with an even spread over all tokens, "
        "which scores 1 (block scores are also weighted)."
    ),
    "tau": "The threshold of a role: the mean score has to be above it.",
    "corpus": "The texts over which roles are tested. Choose them in the sidebar.",
    "query": "The token that looks.",
    "key": "The token that is looked at.",
    "checkpoint": "A saved model, with the weights that it had learned by then. Choose it in the sidebar.",
}
"""Explanation by term; those of roles are their names in `core.roles.roles`."""

# A word's syntactic head is not an attention head. The names of roles are marked in legends only: in a sentence they
# have their everyday meaning.
_IN_SENTENCES: Final = re.compile(
    r"(?<!syntactic )\b(?:(?P<head>heads?)|(?P<token>tokens?)|(?P<role>roles?)|(?P<sieve>sieves?)|(?P<score>scores?)"
    r"|(?P<tau>tau)|(?P<corpus>corpus)|(?P<query>query|queries)|(?P<key>keys?)|(?P<checkpoint>checkpoints?))\b"
)
_EMPHASIS: Final = re.compile(r"(\*\*.+?\*\*|\*.+?\*)")


@dataclass(frozen=True)
class Piece:
    """A part of a sentence."""

    text: str
    style: Literal["plain", "strong", "emphasis"] = "plain"
    means: str | None = None
    """Explanation of a term; None where the part is not a term."""


def pieces(sentence: str) -> list[Piece]:
    """Split a sentence at the first occurrence of each term, and at Markdown emphasis.

    Args:
        sentence: of the project's own wording, with `**strong**` and `*emphasised*` words.
    """
    result: list[Piece] = []
    explained: set[str] = set()
    for part in _EMPHASIS.split(sentence):
        if part.startswith("**"):
            result.append(Piece(part[2:-2], "strong"))
        elif part.startswith("*"):
            result.append(Piece(part[1:-1], "emphasis"))
        else:
            result += _with_terms(part, explained)
    return [piece for piece in result if piece.text]


def _with_terms(text: str, explained: set[str]) -> list[Piece]:
    """Mark the terms of a text that are not in `explained`, and add them to it."""
    result, start = [], 0
    for match in _IN_SENTENCES.finditer(text):
        term = str(match.lastgroup)
        if term not in explained:
            explained.add(term)
            result += [Piece(text[start : match.start()]), Piece(match[0], means=TERMS[term])]
            start = match.end()
    return [*result, Piece(text[start:])]
