"""Texts in which a head attends most to special tokens and similar targets, and the words that do so most and least."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.descriptions.examples import N_EXAMPLES
from attention_sieve.core.descriptions.facts import RESTS, HeadDescription, ShareFact, Target
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.surface.key_kinds import key_kinds
from attention_sieve.core.surface.per_text import KEY_KINDS, SHARES, TextSurface
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import FIRST_WORD, Words, word_map

MOST_TOKENS: Final = 48
"""Of a text that can be read at a glance."""
N_WORDS: Final = 3
"""Number of words that give most, and of words that give least."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rests:
    """How much attention the words of a text give to a target."""

    shares: Float[np.ndarray, " word"]
    """Mean over the tokens of each word, 0 to 1; NaN for a word without tokens."""
    most: tuple[int, ...]
    """The words that give the largest shares, in descending order."""
    least: tuple[int, ...]
    """The words that give the smallest shares, in ascending order."""


def resting(description: HeadDescription) -> ShareFact | None:
    """The first fact about a target that links between words cannot show; None without one."""
    shares = (fact for fact in description.facts if isinstance(fact, ShareFact) and fact.target in RESTS)
    return next(shares, None)


def telling_texts(
    target: Target,
    head: Head,
    surface: Sequence[TextSurface],
    first_token: Float[np.ndarray, "text layer head"] | None = None,
) -> tuple[int, ...]:
    """Indices of the texts of at most MOST_TOKENS keys in which a head attends most to a target.

    Args:
        target: one of RESTS.
        head: layer and head.
        surface: of each text.
        first_token: share of the first token above chance; needed for the target "first".
    """
    if target != "first":
        shares = np.array([text.shares[SHARES.index(target)][*head] for text in surface])
    elif first_token is not None:
        shares = first_token[:, *head]
    else:
        return ()
    is_short = np.array([len(text.key_words) <= MOST_TOKENS for text in surface])
    order = np.argsort(np.where(is_short & np.isfinite(shares), -shares, np.inf), kind="stable")
    # Equal texts share one result; show only one of them.
    first_of_equal = {id(surface[index]): index for index in order[::-1].tolist() if is_short[index]}
    return tuple(index for index in order.tolist() if first_of_equal.get(id(surface[index])) == index)[:N_EXAMPLES]


def rests(target: Target, head: Head, text_attention: TextAttention, text: Text, words: Words) -> Rests | None:
    """The words that attend most to a target, and least; only words with a letter or digit count.

    Args:
        target: one of RESTS.
        head: layer and head.
        text_attention: attention of a whole text.
        text: the text of its queries.
        words: of that text.

    Returns: None for a text with fewer than two words to compare, or without the target.
    """
    is_target = _targets(target, text_attention.text)
    if not is_target.any():
        return None
    share_of_token = (text_attention.attention[*head].astype(np.float64) * is_target).sum(axis=1)
    belongs = (
        word_map(words, text_attention.text.queries).of_token[:, None] == np.arange(len(words.segments)) + FIRST_WORD
    )
    n_tokens = belongs.sum(axis=0)
    shares = np.where(n_tokens > 0, share_of_token @ belongs / np.maximum(n_tokens, 1), np.nan)
    is_word = [n_tokens[word] and any(map(str.isalnum, spelling)) for word, spelling in enumerate(words.shown(text))]
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
