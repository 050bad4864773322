"""The task odd man out: whether one noun or verb of a sentence was replaced by another."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from random import Random
from typing import Final

from attention_sieve.core.knowledge.from_trees.rows import Candidate
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence
from attention_sieve.core.knowledge.from_trees.syntax import ORIGINAL
from attention_sieve.core.knowledge.parts import split_units

REPLACED: Final = "C"
"""SentEval's label for a sentence with a replaced word."""
OPEN_TAGS: Final = frozenset(["NN", "NNS", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ"])
FREQUENCIES: Final = range(5, 401)
"""Occurrences in the corpus of a word that can be replaced, or serve as a replacement."""
FARTHEST: Final = 1.0
"""Maximum difference between the frequencies of two bigrams, each plus 1, on a log2 scale."""
TRIES: Final = 100
"""Maximum number of replacements tried for a word."""

_Bigram = tuple[str, str]


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
