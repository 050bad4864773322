"""The sentences of the lessons: English in every language of their texts, as the bundled checkpoint is."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.texts.tokens import TokenizedText
from attention_sieve.dashboard.views.text.stories import SENTENCE, tokens_of


@dataclass(frozen=True)
class VerbAndObject:
    """A sentence, and two words of it that occur once: a verb and its object."""

    sentence: str
    verb: str
    object: str

    def links(self, text: TokenizedText, causal: bool) -> Bool[np.ndarray, "query key"]:
        """Links from the verb to its object, or in causal models from whichever comes later."""
        verb, its_object = (tokens_of(text, self.sentence, word) for word in (self.verb, self.object))
        links = verb[:, None] & its_object
        return np.tril(links | links.T) if causal else links


NEAR: Final = VerbAndObject(SENTENCE, "closed", "shop")
"""The object follows three words after its verb."""
FAR: Final = VerbAndObject("The tired girl opened a heavy and very old door.", "opened", "door")
"""The object follows six words after its verb: whoever looks three words ahead misses it."""
SHORT: Final = "She left early."
LONG: Final = (
    "When the old baker closed her small shop because customers had slowly left the town, her sister opened a new one "
    "in the village, where many people still bought their bread every morning and talked about the weather."
)
"""Two texts of which the one has few tokens and the other many: how many heads rest hangs on that."""
SIMILAR: Final = (
    "A bakery went out of business when people stopped buying bread.",
    "The football club quietly closed its stadium because fans had slowly left.",
    "The young teacher opened a new school in the village.",
    "It will rain all day tomorrow.",
    "My brother broke his new phone.",
)
"""Sentences that are ranked by similarity: one about the same thing in other words, one with the same words about
another thing, and three others."""
FIRST_EVIDENCE: Final = (
    "The old baker closed her small shop.",
    "Customers had slowly left the town.",
    "A young pilot repaired the heavy door.",
)
"""Initial texts of the reader's own corpus."""
MORE_EVIDENCE: Final = (
    "The young farmer sold his old horse.",
    "A tall waiter dropped the hot soup.",
    "My aunt wrote a long letter to the king.",
    "The children quickly ate their cold dinner.",
    "An angry customer called the new manager.",
    "The doctor gave the sick boy some water.",
    "Two students carefully read the difficult book.",
    "Her brother painted the wooden fence yesterday.",
    "The noisy dogs chased a frightened cat.",
    "Our teacher explained the hard problem again.",
)
"""Prepared sentences to add, one for each digit."""
