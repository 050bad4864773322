"""Every sentence of the page Heads as parsers that stands above its sections or in several of them, once."""

from typing import Final

from core.texts.words import FromWord

SEE: Final = (
    "Which attention heads find a word's syntactic head, which find what a mention refers to, and how much syntax can "
    "be read off all heads together. No head was trained for any of this."
)
RELATIONS: Final = "Relations"
COREFERENCE: Final = "Coreference"
PROBES: Final = "Probes"
CROSS: Final = (
    "Cross-attention links the words of two texts, but a dependency tree joins words of one. Choose encoder or decoder "
    "under Attention in the sidebar."
)
FROM_WORD: Final = "Attention from a word with several pieces"
FROM_MEAN: Final = "mean of its pieces"
FROM_FIRST: Final = "its first piece"
FROM_WORDS: Final[dict[str, FromWord]] = {FROM_MEAN: "mean", FROM_FIRST: "first"}
FROM_WORD_HELP: Final = (
    "The paper uses the mean over a word's pieces, its code for relations the first piece. Attention to a word is "
    "always the sum over its pieces."
)
RANDOM_WEIGHTS: Final = "Compare with random weights"
