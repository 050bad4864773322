"""Heads that look from a pronoun to the word that it stands for, and from no other word of the sentence as much.

Without the second, heads win that look at one noun from everywhere. One sentence shows no more than that a head can do
this; how often it does so, a few sentences say.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.core.word_links.habits import FUNCTION_WORDS, WordAttention, word_attention

LEAST_EXCESS: Final = 0.3
"""Least excess of a head that follows a pronoun. `benchmarks.findings.pronouns` prints how often some head reaches it
between two words of shuffled sentences, and between words that no pronoun joins."""


_THIRD_PERSONS: Final = "he him his himself she her hers herself it its itself they them their theirs themselves"
THIRD_PERSONS: Final = frozenset(_THIRD_PERSONS.split())
"""English pronouns that stand for another word of a text, in lower case."""


@dataclass(frozen=True)
class PronounSentence:
    """A sentence with one pronoun, and the word that it stands for. Each of the two occurs once."""

    sentence: str
    pronoun: str
    antecedent: str

    @property
    def text(self) -> Text:
        """The sentence as a text of one segment."""
        return Text((self.sentence,))


PRONOUNS: Final = (
    PronounSentence("My brother broke his new phone.", "his", "brother"),
    PronounSentence("The girl said that she was tired.", "she", "girl"),
    PronounSentence("The old man lost his keys.", "his", "man"),
    PronounSentence("Maria smiled because she had won.", "she", "Maria"),
    PronounSentence("The teacher forgot her bag.", "her", "teacher"),
    PronounSentence("The boy cried because he was hungry.", "he", "boy"),
    PronounSentence("The king lost his crown.", "his", "king"),
    PronounSentence("My aunt painted her kitchen.", "her", "aunt"),
    PronounSentence("The pilot said that he was late.", "he", "pilot"),
)
"""Written for this project, and kept whether or not a head of the bundled checkpoint follows their pronouns."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PronounLink:
    """Where all heads look in a sentence with a pronoun."""

    sentence: PronounSentence
    words: WordAttention
    pronoun: int
    """Index among the words."""
    antecedent: int
    """Index among the words."""

    @property
    def attention(self) -> Float[np.ndarray, "layer head"]:
        """From the pronoun to its antecedent, 0 to 1; NaN for a removed head."""
        return self.words.attention[:, :, self.pronoun, self.antecedent]

    @property
    def from_others(self) -> Float[np.ndarray, "layer head word"]:
        """To the antecedent from each other word and itself; 0 from the pronoun, and where a word cannot see it."""
        is_other = np.arange(len(self.words.words)) != self.pronoun
        seen = (self.words.even[:, :, self.antecedent] > 0) & is_other
        return np.where(seen[:, None], self.words.attention[:, :, :, self.antecedent], 0)

    @property
    def excess(self) -> Float[np.ndarray, "layer head"]:
        """Attention from the pronoun minus the greatest from another word; NaN for a removed head."""
        return self.attention - self.from_others.max(axis=-1)

    @property
    def follows(self) -> Bool[np.ndarray, "layer head"]:
        """Whether the excess is at least LEAST_EXCESS."""
        return self.excess >= LEAST_EXCESS


def pronoun_link(sentence: PronounSentence, text_attention: TextAttention) -> PronounLink | None:
    """Where all heads look in a sentence.

    Returns: None where the text was cut before one of the two words, or where the pronoun cannot attend to the other.
    """
    text = text_attention.text
    if text.queries is not text.keys:
        return None
    words = word_attention(text_attention)
    pronoun, antecedent = (
        _index(words, text.queries.spans, sentence.sentence, word) for word in (sentence.pronoun, sentence.antecedent)
    )
    if pronoun is None or antecedent is None or not (words.even[:, pronoun, antecedent] > 0).any():
        return None
    return PronounLink(sentence=sentence, words=words, pronoun=pronoun, antecedent=antecedent)


def found_before(text_attention: TextAttention, head: Head) -> tuple[PronounLink, ...]:
    """For each pronoun of any text, the link to the earlier content word to which a head gives most of it.

    Which word a pronoun stands for is not known, so `follows` says only that the head joins it with this one.

    Returns: none for pronouns without a content word before them, and for part of a long text.
    """
    text = text_attention.text
    if text.queries is not text.keys or text_attention.overview is not None:
        return ()
    words = word_attention(text_attention)
    links = []
    for pronoun, word in enumerate(words.words):
        before = [
            key
            for key, other in enumerate(words.words[:pronoun])
            if other.text.casefold() not in FUNCTION_WORDS | THIRD_PERSONS and words.even[head[0], pronoun, key] > 0
        ]
        if word.text.casefold() in THIRD_PERSONS and before:
            antecedent = max(before, key=lambda key: float(words.attention[*head, pronoun, key]))
            sentence = PronounSentence("", word.text, words.words[antecedent].text)
            links.append(PronounLink(sentence=sentence, words=words, pronoun=pronoun, antecedent=antecedent))
    return tuple(links)


def _index(words: WordAttention, spans: Int[np.ndarray, "token 2"], sentence: str, word: str) -> int | None:
    """Index of a word of a sentence among the words of its text; None if the text was cut before it."""
    match = re.search(rf"\b{re.escape(word)}\b", sentence)
    assert match is not None, f"{word!r} is a word of {sentence!r}"
    for index, candidate in enumerate(words.words):
        starts, ends = spans[list(candidate.tokens)].T
        if ((starts < match.end()) & (ends > match.start())).all():
            return index
    return None


def follower(here: PronounLink, elsewhere: Sequence[PronounLink]) -> Head | None:
    """The head that follows the pronoun of a sentence with the greatest excess; None where no head follows it.

    Heads that follow the pronoun in most of the other sentences come first.
    """
    follows = here.follows
    if not follows.any():
        return None
    if elsewhere:
        in_most = 2 * np.sum([link.follows for link in elsewhere], axis=0) > len(elsewhere)
        follows = follows & in_most if (follows & in_most).any() else follows
    return highest_head(np.where(follows, here.excess, np.nan))
