"""The texts in which a head gives most to special tokens and the like, and the words that give these most and least."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from core.attention.settings import Head
from core.descriptions.examples import N_EXAMPLES
from core.descriptions.facts import HeadDescription, ShareFact, Target
from core.passes.texts import PassText, TextAttention
from core.surface.key_kinds import key_kinds
from core.surface.per_text import KEY_KINDS, SHARES, TextSurface
from core.texts.text import Text
from core.texts.words import FIRST_WORD, Words, word_map

RESTS: Final[tuple[Target, ...]] = ("cls", "sep", "punctuation", "first", "self")
"""Targets that no link between two words shows."""
MOST_TOKENS: Final = 48
"""Of a text that is read at a glance."""
N_WORDS: Final = 3
"""That give most, and as many that give least."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rests:
    """How much the words of a text give to what a head rests on."""

    shares: Float[np.ndarray, " word"]
    """Mean over the tokens of each word, 0 to 1; NaN for a word without tokens."""
    most: tuple[int, ...]
    """The words that give most of their attention, beginning with the one that gives most."""
    least: tuple[int, ...]
    """Those that give least, beginning with the one that gives least."""


def resting(description: HeadDescription) -> ShareFact | None:
    """What a head rests on, or else what it gives most to that no link between two words shows."""
    shares = (fact for fact in description.facts if isinstance(fact, ShareFact) and fact.target in RESTS)
    return next(shares, None)


def telling_texts(
    target: Target,
    head: Head,
    surface: Sequence[TextSurface],
    first_token: Float[np.ndarray, "text layer head"] | None = None,
) -> tuple[int, ...]:
    """The texts of at most MOST_TOKENS keys in which a head gives most to a target, by their places.

    Args:
        target: one of RESTS.
        head: layer and head.
        surface: of each text.
        first_token: share of the first token, above chance; needed for that target.
    """
    if target != "first":
        of_texts = np.array([text.shares[SHARES.index(target)][*head] for text in surface])
    elif first_token is not None:
        of_texts = first_token[:, *head]
    else:
        return ()
    is_short = np.array([len(text.key_words) <= MOST_TOKENS for text in surface])
    order = np.argsort(np.where(is_short & np.isfinite(of_texts), -of_texts, np.inf), kind="stable")
    # Equal texts share one result, and one of them is enough.
    once = {id(surface[place]): place for place in order[::-1].tolist() if is_short[place]}
    return tuple(place for place in order.tolist() if once.get(id(surface[place])) == place)[:N_EXAMPLES]


def rests(target: Target, head: Head, looked: TextAttention, text: Text, words: Words) -> Rests | None:
    """The words that give most to a target, and least; what has no letter and no digit is no word here.

    Args:
        target: one of RESTS.
        head: layer and head.
        looked: attention of a whole text.
        text: what its queries read.
        words: of that text.

    Returns: None for a text with fewer than two words to compare, or without the target.
    """
    is_target = _targets(target, looked.text)
    if not is_target.any():
        return None
    of_token = (looked.attention[*head].astype(np.float64) * is_target).sum(axis=1)
    belongs = word_map(words, looked.text.queries).of_token[:, None] == np.arange(len(words.segments)) + FIRST_WORD
    n_tokens = belongs.sum(axis=0)
    shares = np.where(n_tokens > 0, of_token @ belongs / np.maximum(n_tokens, 1), np.nan)
    is_word = [n_tokens[word] and any(map(str.isalnum, shown)) for word, shown in enumerate(words.shown(text))]
    order = [word for word in np.argsort(-shares, kind="stable").tolist() if is_word[word]]
    n_words = min(N_WORDS, len(order) // 2)
    if not n_words:
        return None
    return Rests(shares=shares, most=tuple(order[:n_words]), least=tuple(order[: -n_words - 1 : -1]))


def _targets(target: Target, text: PassText) -> Bool[np.ndarray, "query key"]:
    """Which keys are the target of each query."""
    n_queries, n_keys = len(text.queries.ids), len(text.keys.ids)
    if target == "self":
        return np.eye(n_queries, n_keys, dtype=bool)
    is_key = np.arange(n_keys) == 0 if target == "first" else key_kinds(text.keys)[:, KEY_KINDS.index(target)]
    return np.broadcast_to(is_key, (n_queries, n_keys))
