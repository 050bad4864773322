"""Example texts, written for this project, so that the first page has something to show."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.parsers import LANGUAGES, parsed_by
from attention_sieve.core.texts.text import Text, read_file

if TYPE_CHECKING:
    from attention_sieve.core.coreference.mentions import MentionText

EXAMPLE = Text(("The old baker quietly closed her small shop because customers had slowly left.",))
"""The text on screen before a reader types one: it has a subject, an object, adjectives and adverbs."""

PAIR = Text(
    (
        "Why did the old baker quietly close her small shop?",
        "She had slowly lost her best customers to the new market.",
    )
)
"""The text on screen at first where a decoder reads a source and a target."""

REVIEW = Text(("The plot is thin, but the ending is lovely.",))
"""The text on screen at first where a checkpoint has learnt to judge movie reviews: it praises and blames."""

MENTIONS: Final = Path(__file__).with_name("coreference.jsonl")
"""Texts with mentions and what they refer to, in the form that `attention_sieve.core.coreference.files` documents."""

MARKED_PAIRS: Final = Path(__file__).with_name("marked_pairs.jsonl")
"""Short functions with their brackets and the definitions of their names, as the command `pairs` writes them."""

VARIED: Final = "varied"
"""The sample of questions, quotes, lists, letters, notes, and long, nested and colloquial sentences. It is not part of
"both", so that the first grid is drawn as soon as before: on it what is found in the others is judged."""

FILES = {
    "pairs": ("pairs.tsv",),
    "texts": ("texts.txt",),
    "both": ("pairs.tsv", "texts.txt"),
    VARIED: ("varied.txt",),
    "French": ("textes.txt",),
}


@cache
def read_sample(name: str) -> tuple[Text, ...]:
    """Texts of one sample: "pairs", "texts", "both" with the pairs first, VARIED, or those of a language other than
    English.

    Raises: TextError for another name; AnalysisError where no parser of the language is installed.
    """
    if name not in FILES:
        raise TextError(f'There is no sample "{name}". Choose one of {", ".join(FILES)}.')
    here = Path(__file__).parent
    texts = (text for file in FILES[name] for text in read_file(file, (here / file).read_bytes()))
    return parsed_by(texts, name if name in LANGUAGES.values() else None)


@cache
def mention_sample() -> "tuple[MentionText, ...]":
    """The texts of MENTIONS."""
    from attention_sieve.core.coreference.files import read_mentions  # which most pages do without

    return read_mentions(MENTIONS.read_bytes())
