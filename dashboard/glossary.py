"""Terms with a short explanation: marked where they first occur in a sentence, and listed on the page Lessons."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from attention_sieve.core.roles.roles import RECORDS
from attention_sieve.core.statistics.cases import LEAST_TIMES

TERMS: Final = {
    "layer": "One of the steps in which a model computes, with heads of its own. Layers and heads are counted from 0.",
    "segment": "One of the one or two parts of a text, such as a question and its answer.",
    "pass": "One computation of the model for a text, while its attention is observed.",
    "alpha": "The significance level of a test: how often it may find something where there is nothing.",
    "share above chance": (
        "A score that does not grow with the length of the text: 0 is an even spread, 1 all attention on the tokens "
        "that a role expects."
    ),
    "evidence": (
        "The odds at which betting on a role has paid so far. Unlike a p-value it stays valid while texts are added."
    ),
    "stability": "The share of corpora, resampled from the texts, in which a head's label for a role stays the same.",
    "entropy": (
        "How evenly a token's attention is spread, in nats: 0 if it all goes to one token, ln n if n tokens get equal "
        "shares."
    ),
    "confidence": "The largest share of its attention that a token gives to one token, special tokens left out.",
    "positional head": "A head for which most tokens look most at the token at one distance, such as the next one.",
    "looks there from everywhere": (
        "A head that gives a word nearly as much attention from other words as from the word that a relation joins to "
        f"it; a head that follows the relation gives it at least {LEAST_TIMES:g} times as much."
    ),
    "best fixed offset": (
        "A baseline for grammar: always guess the word at one distance, the one that is most often right for the "
        "relation."
    ),
    "UAS": "Unlabelled attachment score: the share of words, without punctuation, whose syntactic head is predicted.",
    "probe": "A simple classifier trained on vectors of a model, which itself stays as it is.",
    "control task": "The labels of a task on other sentences: what a probe can learn by heart.",
    "selectivity": "The accuracy of a probe minus its accuracy on the control task.",
    "code length": "The bits that tell the labels to somebody who has the vectors; fewer if a probe finds them easily.",
    "reference": "The checkpoint of the sidebar (a), with which others (b) are compared: a difference is b - a.",
    "divergence": (
        "How differently a head attends to the same text under two checkpoints, or two heads under one "
        "(Jensen-Shannon divergence, in nats): 0 if equal, at most ln 2 = 0.693."
    ),
    "fingerprint": "A hash of a checkpoint's weights, configuration and tokenizer.",
    "head": (
        "A part of the model that decides, for every token, how much attention it pays to each token. Every layer has "
        "several."
    ),
    "token": "A piece of a text as the model reads it: a word, a part of a word, or a sign.",
    "role": (
        "What a head does: it gives some kind of token, such as its neighbours, clearly more attention than an even "
        "spread over all tokens would."
    ),
    **{role.name: role.meaning for role in RECORDS if role.meaning},
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
"""Explanation by term; those of roles are their names in `attention_sieve.core.roles.roles`. Only the terms of
_IN_SENTENCES are marked in sentences."""

# A word's syntactic head is not an attention head. The names of roles are marked in legends only: in a sentence they
# have their everyday meaning.
_IN_SENTENCES: Final = re.compile(
    r"(?<!syntactic )\b(?:(?P<head>heads?)|(?P<token>tokens?)|(?P<role>roles?)|(?P<sieve>sieves?)|(?P<score>scores?)"
    r"|(?P<tau>tau)|(?P<corpus>corpus)|(?P<query>query|queries)|(?P<key>keys?)|(?P<checkpoint>checkpoints?))\b"
)
_EMPHASIS: Final = re.compile(r"(\*\*.+?\*\*|\*.+?\*)")


@dataclass(frozen=True)
class Piece:
    text: str
    style: Literal["plain", "strong", "emphasis"] = "plain"
    means: str | None = None
    """Explanation of a term; None where the part is not a term."""


def pieces(sentence: str) -> list[Piece]:
    """Split a sentence at the first occurrence of each term, and at `**strong**` and `*emphasised*` words."""
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
