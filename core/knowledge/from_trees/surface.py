"""Surface tasks: the length of a sentence, and which word it contains."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from attention_sieve.core.knowledge.from_trees.rows import Candidate
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence

BINS: Final = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))
"""First and last length of each class of the length task, in words and punctuation marks."""
MOST_WORDS: Final = 1_000
"""Maximum number of classes of the word content task."""
LEAST_LETTERS: Final = 4
SENTENCES_OF_A_WORD: Final = 30
"""Minimum number of sentences for each word in which it is the only selected word."""
STARTS: Final = 100
"""Number of frequency ranks, evenly spaced, at which a run of words may begin."""


def length(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """How many words and punctuation marks a sentence has, in six bins.

    Bins 0 to 5: 5-8, 9-12, 13-16, 17-20, 21-25 and 26-28; if one of them has no sentences, there is no task.
    Source: Conneau et al. 2018, SentLen; the same bins.
    """
    candidates = [Candidate(sentence.words, _bin(len(sentence.words)), sentence.document) for sentence in sentences]
    return candidates if len({candidate.label for candidate in candidates}) == len(BINS) else []


def _bin(n_words: int) -> str:
    return next(str(number) for number, (first, last) in enumerate(BINS) if first <= n_words <= last)


def word_content(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Which one of a list of words a sentence contains.

    The list is a run of words of at least four letters in the order of their frequency in the corpus; a sentence counts
    if it contains exactly one of them, once, in upper or lower case.
    Source: Conneau et al. 2018, WC. They take 1,000 words, from rank 2,001 of a very large corpus. Here the run is the
    longest, up to 1,000 words, in which each word has 30 sentences; of runs of the same length, the one with the most
    frequent words. In a large corpus only a hundred starting points are tried.
    """
    words = _longest_run(sentences)
    candidates = []
    for sentence in sentences:
        matches = [word for word in map(str.lower, sentence.words) if word in words]
        if len(matches) == 1:
            candidates.append(Candidate(sentence.words, matches[0], sentence.document))
    return candidates


def _longest_run(sentences: Sequence[ParsedSentence]) -> frozenset[str]:
    """The longest run of words in order of rank, each with enough sentences in which it is the only one."""
    times_in = _times(sentences)
    ranked = sorted(times_in, key=lambda word: (-sum(times_in[word].values()), word))
    ranked = [word for word in ranked if len(times_in[word]) >= SENTENCES_OF_A_WORD]
    best: list[str] = []
    for first in range(0, len(ranked), max(1, len(ranked) // STARTS)):
        run = _run_from(ranked[first : first + MOST_WORDS], times_in)
        best = run if len(run) > len(best) else best
    return frozenset(best)


def _run_from(ranked: Sequence[str], times_in: Mapping[str, Mapping[int, int]]) -> list[str]:
    """The longest prefix of the ranked words in which each has enough sentences."""
    n_matches: Counter[int] = Counter()
    only_word: dict[int, str] = {}
    n_alone: Counter[str] = Counter()
    for n_words, word in enumerate(ranked):
        affected = {word}
        for row, times in times_in[word].items():
            if n_matches[row] == 1:
                n_alone[only_word[row]] -= 1
                affected.add(only_word[row])
            if not n_matches[row] and times == 1:
                only_word[row] = word
                n_alone[word] += 1
            n_matches[row] += times
        if any(n_alone[affected_word] < SENTENCES_OF_A_WORD for affected_word in affected):
            return list(ranked[:n_words])
    return list(ranked)


def _times(sentences: Sequence[ParsedSentence]) -> dict[str, dict[int, int]]:
    """How often each word of enough letters occurs in each sentence."""
    times: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row, sentence in enumerate(sentences):
        for word in map(str.lower, sentence.words):
            if len(word) >= LEAST_LETTERS and word.isalpha():
                times[word][row] += 1
    return times
