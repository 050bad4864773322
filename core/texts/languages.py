"""Whether a text seems to be in another language than English, by how frequent its words are in each."""

import re
from typing import Final

from attention_sieve.core.texts.parsers import LANGUAGES

CANDIDATES: Final = ("de", "fr", "es", "it", "nl", "pt", "sv", "pl", "ru")
"""Languages of `LANGUAGES` that are recognised: each costs 4 MB once a text does not look English."""
FEWEST_WORDS: Final = 3
CLEARLY: Final = 1.0
"""Difference of mean Zipf frequencies, in powers of ten, from which a language counts as more likely than English.
German, Spanish or Italian sentences stand 2 to 4 above it, an English one with foreign names below 0.6."""
_ENGLISH: Final = re.compile(r"\b(the|and|that|with|they|she|his|this|from|which|when|because)\b", re.IGNORECASE)
"""Frequent words that are frequent in no candidate; a text with one of them is English without a look at the lists."""
_MOST_WORDS: Final = 60
_WORD: Final = re.compile(r"[^\W\d_]+")


def foreign_language(text: str) -> str:
    """Name of the language, of the candidates, in which a text's words are clearly more frequent than in English.

    Returns: empty for English, for a text of fewer than FEWEST_WORDS words, and for a language that is no candidate.
    Source: Speer 2022, wordfreq 3, whose Zipf frequency is the logarithm to base 10 of occurrences per 10^9 words.
    """
    words = [word.lower() for word in _WORD.findall(text)[:_MOST_WORDS]]
    if len(words) < FEWEST_WORDS or _ENGLISH.search(text):
        return ""
    from wordfreq import zipf_frequency

    def mean_frequency(code: str) -> float:
        return sum(zipf_frequency(word, code, wordlist="small") for word in words) / len(words)

    likeliest = max(CANDIDATES, key=mean_frequency)
    return LANGUAGES[likeliest] if mean_frequency(likeliest) > mean_frequency("en") + CLEARLY else ""
