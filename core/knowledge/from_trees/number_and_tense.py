"""Tasks about one word of the main clause: tense of its verb, and number of its subject and of its object."""

from collections.abc import Sequence
from random import Random
from typing import Final

from attention_sieve.core.knowledge.from_trees.rows import Candidate, at_most_of_a_unit
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence

TENSES: Final = {"VBD": "PAST", "VBP": "PRES", "VBZ": "PRES"}
NUMBERS: Final = {"NN": "NN", "NNS": "NNS"}
SHARE_OF_A_FORM: Final = 0.05
"""Maximum share of the rows of a class with the same key word."""


def tense(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether the root of the tree is a verb in the past tense (VBD) or in the present (VBP, VBZ).

    Each form of the verb occurs in one part only, and in at most 5% of a class.
    Source: Conneau et al. 2018, Tense, who take verbs that occur 100 to 5,000 times in their corpus; in a small one the
    share replaces these limits. In Universal Dependencies the root of "she was happy" is "happy", so such sentences are
    left out; in spaCy's trees the root is "was", and they are included.
    """
    roots = ((sentence, sentence.root) for sentence in sentences)
    return at_most_of_a_unit(
        [
            Candidate(sentence.words, TENSES[sentence.tags[root]], sentence.words[root].lower())
            for sentence, root in roots
            if sentence.tags[root] in TENSES
        ],
        SHARE_OF_A_FORM,
        rng,
    )


def subject_number(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether the subject of the root is a noun in the singular (NN) or in the plural (NNS).

    Sentences with one subject (nsubj, or nsubjpass in the passive) count, unless it is a pronoun or a name. A form of
    the noun comes into one part only, and is the subject of at most 5% of a class.
    Source: Conneau et al. 2018, SubjNum; their limits of frequency are replaced as in `tense`.
    """
    return _number_of(sentences, ("nsubj", "nsubjpass"), rng)


def object_number(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether the direct object of the root is a noun in the singular (NN) or in the plural (NNS).

    Sentences with one such object (dobj, in Universal Dependencies obj) count. A form of the noun comes into one part
    only, and is the object of at most 5% of a class.
    Source: Conneau et al. 2018, ObjNum; their limits of frequency are replaced as in `tense`.
    """
    return _number_of(sentences, ("dobj",), rng)


def _number_of(sentences: Sequence[ParsedSentence], relations: tuple[str, ...], rng: Random) -> list[Candidate]:
    candidates = []
    for sentence in sentences:
        indices = sentence.children_by(sentence.root, *relations)
        if len(indices) == 1 and (tag := sentence.tags[indices[0]]) in NUMBERS:
            candidates.append(Candidate(sentence.words, NUMBERS[tag], sentence.words[indices[0]].lower()))
    return at_most_of_a_unit(candidates, SHARE_OF_A_FORM, rng)
