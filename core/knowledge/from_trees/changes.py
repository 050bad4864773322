"""Tasks about a change of a sentence: two words or clauses that were swapped, or one word that was replaced."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from random import Random
from typing import Final

from attention_sieve.core.knowledge.from_trees.rows import Candidate
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence, is_punctuation
from attention_sieve.core.knowledge.task import split_units

ORIGINAL, CHANGED = "O", "I"
"""SentEval's labels for original sentences, and for those with swapped words or clauses."""
REPLACED: Final = "C"
"""SentEval's label for a sentence with a replaced word."""
OPEN_TAGS: Final = frozenset(["NN", "NNS", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ"])
FREQUENCIES: Final = range(5, 401)
"""Occurrences in the corpus of a word that can be replaced, or serve as a replacement."""
FARTHEST: Final = 1.0
"""Maximum difference between the frequencies of two bigrams, each plus 1, on a log2 scale."""
TRIES: Final = 100
SUBJECTS: Final = ("nsubj", "nsubjpass", "csubj", "csubjpass", "expl")
LEAST_WORDS: Final = 2
"""Minimum length of a clause."""
QUOTES_AND_BRACKETS: Final = frozenset("\"'`“”‘’()[]{}") | {"''", "``"}
NAMES: Final = frozenset(("NNP", "NNPS"))
LONGER, SHORTER, EQUAL = "longer", "shorter", "equal"
"""Length of the first clause, in the order of the row, relative to the second."""
_Bigram = tuple[str, str]


def bigram_shift(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether two adjacent words, chosen at random, were swapped (I) or not (O).

    The first word stays, and so do punctuation and quotation marks; the two words differ, also in lower case.
    Source: Conneau et al. 2018, BShift; the same rules. Sentences without two such words are left out of both classes.
    """
    candidates = []
    eligible = [(sentence, indices) for sentence in sentences if (indices := _shiftable(sentence.words))]
    for label, (sentence, indices) in zip(by_turns(len(eligible), rng), eligible):
        index = rng.choice(indices)
        words = list(sentence.words)
        if label == CHANGED:
            words[index], words[index + 1] = words[index + 1], words[index]
        candidates.append(Candidate(tuple(words), label, sentence.document))
    return candidates


def _shiftable(words: Sequence[str]) -> list[int]:
    return [
        index
        for index in range(1, len(words) - 1)
        if not is_punctuation(words[index])
        and not is_punctuation(words[index + 1])
        and words[index].lower() != words[index + 1].lower()
    ]


def by_turns(n_rows: int, rng: Random) -> list[str]:
    """Labels O and I for rows, equally often, in random order."""
    labels = [(ORIGINAL, CHANGED)[row % 2] for row in range(n_rows)]
    rng.shuffle(labels)
    return labels


@dataclass(frozen=True)
class _Corpus:
    words: Counter[str]
    """Frequency of each word, in lower case."""
    bigrams: Counter[_Bigram]
    part_of_document: dict[str, str]
    substitutes: dict[tuple[str, str, int], list[str]]
    """Words by tag, part, and frequency as a power of 2."""


def odd_man_out(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether one noun or verb was replaced by another (C) or not (O).

    The two words have the same tag and are in lower case; both occur 5 to 400 times in the corpus, with the same whole
    power of 2; and the new word occurs beside either neighbour about as often as the old one does elsewhere in the
    corpus (at most a factor of 2 apart, with 1 added to each count). A new word occurs in one part only. Sentences in
    which no word could be replaced are left out of both classes.
    Source: Conneau et al. 2018, SOMO: words that occur 40 to 400 times, pairs of similar frequency in log scale. In a
    small corpus most pairs occur once, so the control for pairs is weak, and some changed sentences still make sense.
    """
    corpus = _counted(sentences, rng)
    candidates: list[Candidate] = []
    for row in rng.sample(range(len(sentences)), len(sentences)):
        sentence = sentences[row]
        part = corpus.part_of_document[sentence.document]
        changed_words = next(_changed(sentence, part, corpus, rng), None)
        if changed_words is not None:
            label = (ORIGINAL, REPLACED)[len(candidates) % 2]
            words = sentence.words if label == ORIGINAL else changed_words
            candidates.append(Candidate(words, label, sentence.document, part=part))
    return candidates


def _counted(sentences: Sequence[ParsedSentence], rng: Random) -> _Corpus:
    words = Counter(word.lower() for sentence in sentences for word in sentence.words)
    bigrams = Counter(pair for sentence in sentences for pair in _bigrams(sentence.words))
    documents = Counter(sentence.document for sentence in sentences)
    part_of_document = split_units({name: {("", ""): rows} for name, rows in documents.items()}, rng)
    tags: dict[str, set[str]] = defaultdict(set)
    for sentence in sentences:
        for word, tag in zip(sentence.words, sentence.tags):
            if _is_open(word, tag, words):
                tags[word].add(tag)
    part_of_word = split_units(
        {word: {(tag, ""): 1 for tag in sorted(word_tags)} for word, word_tags in tags.items()}, rng
    )
    substitutes: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    for word in sorted(tags):
        for tag in tags[word]:
            substitutes[tag, part_of_word[word], _power(words[word])].append(word)
    return _Corpus(words, bigrams, part_of_document, substitutes)


def _changed(sentence: ParsedSentence, part: str, corpus: _Corpus, rng: Random) -> Iterator[tuple[str, ...]]:
    """The sentence with one word replaced, for each suitable word and substitute, in random order."""
    words = sentence.words
    present = {word.lower() for word in words}
    indices = [index for index in range(1, len(words)) if _is_open(words[index], sentence.tags[index], corpus.words)]
    for index in rng.sample(indices, len(indices)):
        key = sentence.tags[index], part, _power(corpus.words[words[index]])
        options = corpus.substitutes.get(key, [])
        for new in rng.sample(options, min(TRIES, len(options))):
            if new not in present and _fits(words, index, new, corpus.bigrams):
                yield (*words[:index], new, *words[index + 1 :])


def _fits(words: Sequence[str], index: int, new: str, bigrams: Counter[_Bigram]) -> bool:
    """Whether a new word occurs next to its neighbours about as often as the old one does elsewhere."""
    original = [word.lower() for word in words[max(index - 1, 0) : index + 2]]
    changed = [*original]
    changed[1] = new
    pairs = zip(pairwise(original), pairwise(changed))
    return all(abs(log2(bigrams[old_pair]) - log2(bigrams[new_pair] + 1)) <= FARTHEST for old_pair, new_pair in pairs)


def _bigrams(words: Sequence[str]) -> Iterator[_Bigram]:
    lowered = [word.lower() for word in words]
    return pairwise(lowered)


def _is_open(word: str, tag: str, frequencies: Counter[str]) -> bool:
    return tag in OPEN_TAGS and word.isalpha() and frequencies[word] in FREQUENCIES  # counts are of lower-case words


def _power(frequency: int) -> int:
    """Floor of log2 of the frequency."""
    return frequency.bit_length() - 1


@dataclass(frozen=True)
class _Clauses:
    first: tuple[str, ...]
    between: tuple[str, ...]
    """The conjunction, with the comma before it if there is one."""
    second: tuple[str, ...]
    end: tuple[str, ...]
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
    candidates = []
    for label, (sentence, original) in zip(by_turns(len(eligible), rng), eligible):
        clauses = original if label == ORIGINAL else _inverted(original)
        n_first, n_second = len(clauses.first), len(clauses.second)
        stratum = LONGER if n_first > n_second else SHORTER if n_first < n_second else EQUAL
        words = clauses.first + clauses.between + clauses.second + clauses.end
        candidates.append(Candidate(words, label, sentence.document, stratum))
    return candidates


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
