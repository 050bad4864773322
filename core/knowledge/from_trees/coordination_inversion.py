"""The task coordination inversion: whether two coordinated main clauses were swapped."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from attention_sieve.core.knowledge.from_trees.rows import Candidate
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence, is_punctuation
from attention_sieve.core.knowledge.from_trees.syntax import ORIGINAL, by_turns

SUBJECTS: Final = ("nsubj", "nsubjpass", "csubj", "csubjpass", "expl")
LEAST_WORDS: Final = 2
"""Minimum length of a clause."""
QUOTES_AND_BRACKETS: Final = frozenset("\"'`“”‘’()[]{}") | {"''", "``"}
NAMES: Final = frozenset(("NNP", "NNPS"))
LONGER, SHORTER, EQUAL = "longer", "shorter", "equal"
"""Length of the first clause, in the order of the row, relative to the second."""


@dataclass(frozen=True)
class _Clauses:
    first: tuple[str, ...]
    between: tuple[str, ...]
    """The conjunction, with the comma before it if there is one."""
    second: tuple[str, ...]
    end: tuple[str, ...]
    """Final punctuation."""
    keeps_case: bool
    """Whether the first word keeps its case when it is not at the beginning."""


def coordination_inversion(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether two main clauses, joined by one conjunction, were swapped (I) or not (O).

    The root has one clause coordinated with it (conj), both have a subject, one conjunction (CC) joins them, and each
    is contiguous and has at least two words; sentences with quotation marks or brackets are left out. The comma before
    the conjunction and the punctuation at the end stay where they are, and upper case moves to the new first word, so
    that neither gives the answer away. In each class the same number of sentences have the longer clause first. No
    sentence is in both classes.
    Source: Conneau et al. 2018, CoordInv, from constituency trees; balanced by length like theirs.
    """
    eligible = [(sentence, clauses) for sentence in sentences if (clauses := _clauses(sentence)) is not None]
    return [
        _candidate(sentence, clauses if label == ORIGINAL else _inverted(clauses), label)
        for label, (sentence, clauses) in zip(by_turns(len(eligible), rng), eligible)
    ]


def _candidate(sentence: ParsedSentence, clauses: _Clauses, label: str) -> Candidate:
    n_first, n_second = len(clauses.first), len(clauses.second)
    stratum = LONGER if n_first > n_second else SHORTER if n_first < n_second else EQUAL
    words = clauses.first + clauses.between + clauses.second + clauses.end
    return Candidate(words, label, sentence.document, stratum)


def _clauses(sentence: ParsedSentence) -> _Clauses | None:
    root, words = sentence.root, sentence.words
    conjuncts = sentence.children_by(root, "conj")
    if len(conjuncts) != 1 or is_punctuation(words[0]) or not QUOTES_AND_BRACKETS.isdisjoint(words):
        return None
    conjunctions = [*sentence.children_by(root, "cc"), *sentence.children_by(conjuncts[0], "cc")]
    has_subjects = all(sentence.children_by(verb, *SUBJECTS) for verb in (root, conjuncts[0]))
    if len(conjunctions) != 1 or sentence.tags[conjunctions[0]] != "CC" or not has_subjects:
        return None
    conjunction = conjunctions[0]
    start = conjunction - (words[conjunction - 1] == ",")
    end = len(words)
    while is_punctuation(words[end - 1]):
        end -= 1
    first, second = range(start), range(conjunction + 1, end)
    second_subtree = sentence.subtree(conjuncts[0])
    if (
        second_subtree.intersection(first)
        or not second_subtree.issuperset(second)
        or min(len(first), len(second)) < LEAST_WORDS
    ):
        return None
    return _Clauses(
        words[:start],
        words[start : conjunction + 1],
        words[conjunction + 1 : end],
        words[end:],
        sentence.tags[0] in NAMES or not words[0].istitle() or words[0] == "I",
    )


def _inverted(clauses: _Clauses) -> _Clauses:
    """The clauses in reverse order; the sentence begins with upper case if it did before."""
    first, second = list(clauses.second), list(clauses.first)
    if clauses.first[0][0].isupper():
        first[0] = first[0][0].upper() + first[0][1:]
    if not clauses.keeps_case:
        second[0] = second[0].lower()
    return _Clauses(tuple(first), clauses.between, tuple(second), clauses.end, clauses.keeps_case)
