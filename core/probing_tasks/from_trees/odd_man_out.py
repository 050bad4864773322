"""The task odd man out: whether one noun or verb of a sentence was replaced by another."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from random import Random
from typing import Final

from core.probing_tasks.from_trees.rows import Candidate
from core.probing_tasks.from_trees.sentences import Sentence
from core.probing_tasks.from_trees.syntax import ORIGINAL
from core.probing_tasks.parts import split_units

REPLACED: Final = "C"
"""SentEval's label for a sentence with a replaced word."""
OPEN_TAGS: Final = frozenset(["NN", "NNS", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ"])
FREQUENCIES: Final = range(5, 401)
"""Occurrences in the corpus of a word that is replaced, or replaces."""
FARTHEST: Final = 1.0
"""Difference between the frequencies of two pairs of words, each plus 1, as a power of 2."""
TRIES: Final = 100
"""Words that are tried in the place of one."""

_Bigram = tuple[str, str]


@dataclass(frozen=True)
class _Corpus:
    """What is counted once for all sentences."""

    words: Counter[str]
    """In lower case."""
    bigrams: Counter[_Bigram]
    part_of_document: dict[str, str]
    substitutes: dict[tuple[str, str, int], list[str]]
    """Words by tag, part, and frequency as a power of 2."""


def odd_man_out(sentences: Sequence[Sentence], chance: Random) -> list[Candidate]:
    """Whether one noun or verb was replaced by another (C) or not (O).

    The two words have the same tag and are in lower case; both occur 5 to 400 times in the corpus, with the same whole
    power of 2; and with either neighbour the new word stands side by side about as often as the old one does elsewhere
    (at most a power of 2 apart, each number plus 1). A new word comes into one part only. Sentences in which no word
    could be replaced are left out of both classes.
    Source: Conneau et al. 2018, SOMO: words that occur 40 to 400 times, pairs of similar frequency in log scale. In a
    small corpus most pairs occur once, so the control of pairs is weak, and some changed sentences stay sensible.
    """
    corpus = _counted(sentences, chance)
    candidates: list[Candidate] = []
    for row in chance.sample(range(len(sentences)), len(sentences)):
        sentence = sentences[row]
        part = corpus.part_of_document[sentence.document]
        changed = next(_changed(sentence, part, corpus, chance), None)
        if changed is not None:
            label = (ORIGINAL, REPLACED)[len(candidates) % 2]
            words = sentence.words if label == ORIGINAL else changed
            candidates.append(Candidate(words, label, sentence.document, part=part))
    return candidates


def _counted(sentences: Sequence[Sentence], chance: Random) -> _Corpus:
    words = Counter(word.lower() for sentence in sentences for word in sentence.words)
    bigrams = Counter(pair for sentence in sentences for pair in _bigrams(sentence.words))
    documents = Counter(sentence.document for sentence in sentences)
    part_of_document = split_units({name: {("", ""): rows} for name, rows in documents.items()}, chance)
    tags: dict[str, set[str]] = defaultdict(set)
    for sentence in sentences:
        for word, tag in zip(sentence.words, sentence.tags):
            if _is_open(word, tag, words):
                tags[word].add(tag)
    part_of_word = split_units({word: {(tag, ""): 1 for tag in sorted(found)} for word, found in tags.items()}, chance)
    substitutes: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    for word in sorted(tags):
        for tag in tags[word]:
            substitutes[tag, part_of_word[word], _power(words[word])].append(word)
    return _Corpus(words, bigrams, part_of_document, substitutes)


def _changed(sentence: Sentence, part: str, corpus: _Corpus, chance: Random) -> Iterator[tuple[str, ...]]:
    """The sentence with a word replaced, for each word and substitute that will do, in an order by chance."""
    words = sentence.words
    present = {word.lower() for word in words}
    places = [place for place in range(1, len(words)) if _is_open(words[place], sentence.tags[place], corpus.words)]
    for place in chance.sample(places, len(places)):
        key = sentence.tags[place], part, _power(corpus.words[words[place]])
        options = corpus.substitutes.get(key, [])
        for new in chance.sample(options, min(TRIES, len(options))):
            if new not in present and _fits(words, place, new, corpus.bigrams):
                yield (*words[:place], new, *words[place + 1 :])


def _fits(words: Sequence[str], place: int, new: str, bigrams: Counter[_Bigram]) -> bool:
    """Whether a new word stands beside its neighbours about as often as the old one does in other places."""
    lowered = [word.lower() for word in words[max(place - 1, 0) : place + 2]]
    changed = [*lowered]
    changed[1] = new
    pairs = zip(pairwise(lowered), pairwise(changed))
    return all(abs(log2(bigrams[old]) - log2(bigrams[other] + 1)) <= FARTHEST for old, other in pairs)


def _bigrams(words: Sequence[str]) -> Iterator[_Bigram]:
    lowered = [word.lower() for word in words]
    return pairwise(lowered)


def _is_open(word: str, tag: str, frequencies: Counter[str]) -> bool:
    return tag in OPEN_TAGS and word.isalpha() and frequencies[word] in FREQUENCIES  # words in upper case have none


def _power(frequency: int) -> int:
    """Frequency as a whole power of 2."""
    return frequency.bit_length() - 1
