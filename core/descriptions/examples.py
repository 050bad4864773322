"""The texts that show most clearly what a head does: links between words, and words that attend to a target."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.descriptions.accuracies import (
    RESTS,
    Fact,
    HeadDescription,
    MentionFact,
    ReadMentions,
    RelationFact,
    ShareFact,
    Target,
)
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.relations.cases import TextPredictions
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.surface.per_text import KEY_KINDS, SHARES, TextSurface, key_kinds
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import FIRST_WORD, Words, word_map

N_EXAMPLES: Final = 3
MOST_LINKS: Final = 3
"""Of one example; with more, nearly every word would be marked."""
OFFSETS: Final[dict[Target, int]] = {"previous": -1, "next": 1}
"""Targets that links between words can show, with the offset of the attended word."""

MOST_TOKENS: Final = 48
"""Of a text that can be read at a glance."""
N_WORDS: Final = 3
"""Number of words that give most, and of words that give least."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A word and the word that it attends to."""

    query: int
    key: int


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadExample:
    """A text in which a head does something clearly."""

    text: Text
    words: Words
    links: tuple[Link, ...]
    """Words that show it."""


def examples(
    description: HeadDescription,
    texts: Sequence[Text],
    surface: Sequence[TextSurface],
    predictions: Sequence[TextPredictions] | None,
    mentions: ReadMentions | None = None,
) -> tuple[Fact | None, tuple[HeadExample, ...]]:
    """The fact that links between words can show, and the texts that show it most clearly, the clearest first.

    Relations and mentions are shown by the texts with most right predictions minus wrong ones; the previous or next
    token by the texts in which it gets the most attention. A word is linked only to its most attended other word (for
    mentions: earlier mention). Of equally clear texts the shorter one comes first.

    Args:
        description: of the head.
        texts, surface: texts of the description, and their statistics.
        predictions: of each of these texts; None if they are not available.
        mentions: texts with mentions that were also used for the description.

    Returns: None and no example if no fact can be shown by links.
    """
    for fact in description.facts:
        if isinstance(fact, MentionFact) and mentions is not None:
            return fact, _clearest(_mention_examples(mentions, description.head))
        if predictions is None:
            continue
        if isinstance(fact, RelationFact):
            clearness_and_links = [_relation_links(text, fact, description.head) for text in predictions]
        elif isinstance(fact, ShareFact) and fact.target in OFFSETS:
            clearness_and_links = [
                _offset_links(text, text_surface, fact.target, description.head)
                for text, text_surface in zip(predictions, surface, strict=True)
            ]
        else:
            continue
        words = [prediction.dependencies.words for prediction in predictions]
        return fact, _clearest(
            [
                (clearness, HeadExample(text=text, words=text_words, links=links))
                for text, text_words, (clearness, links) in zip(texts, words, clearness_and_links, strict=True)
            ]
        )
    return None, ()


def _clearest(scored: Sequence[tuple[float, HeadExample]]) -> tuple[HeadExample, ...]:
    ordered = sorted(scored, key=lambda pair: (-pair[0], len(pair[1].words.segments)))
    # Show only one of several equal texts.
    first_of_equal = {example.text.segments: example for _, example in reversed(ordered) if example.links}
    clearest = [example for _, example in ordered if first_of_equal.get(example.text.segments) is example][:N_EXAMPLES]
    return tuple(replace(example, links=example.links[:MOST_LINKS]) for example in clearest)


def _mention_examples(mentions: ReadMentions, head: Head) -> list[tuple[float, HeadExample]]:
    """Number of right minus wrong predictions of mentions, and the links of the right ones, nearest first."""
    scored = []
    for text, choices in zip(mentions.texts, mentions.choices, strict=True):
        cases = [
            (
                mention.head,
                int(choices.mentions[*head, index]),
                [text.mentions[antecedent].head for antecedent in antecedents],
            )
            for index, (mention, antecedents) in enumerate(zip(text.mentions, text.antecedents))
            if antecedents and choices.is_read[index]
        ]
        right = sorted(
            ((query, choice) for query, choice, antecedents in cases if choice in antecedents),
            key=lambda pair: pair[0] - pair[1],
        )
        links = _links(np.array(right, int).reshape(-1, 2))
        scored.append((2.0 * len(right) - len(cases), HeadExample(text=text.text, words=text.words, links=links)))
    return scored


def _relation_links(text: TextPredictions, fact: RelationFact, head: Head) -> tuple[float, tuple[Link, ...]]:
    """Number of right minus wrong predictions of a relation, and the links of the right ones."""
    tree = text.dependencies
    dependents = np.flatnonzero(np.array([name == fact.relation for name in tree.relations], bool))
    predicted = text.predicted[DIRECTIONS.index(fact.direction)][*head][dependents]
    right = dependents[predicted == tree.heads[dependents]]
    pairs = np.stack([right, tree.heads[right]], axis=1)
    return 2.0 * len(right) - len(dependents), _links(pairs if fact.direction == DIRECTIONS[0] else pairs[:, ::-1])


def _offset_links(
    text: TextPredictions, surface: TextSurface, target: Target, head: Head
) -> tuple[float, tuple[Link, ...]]:
    """The attention to a neighbouring token, and the words whose most attended other word is at that offset."""
    predicted = text.predicted[0][*head]
    words = np.arange(len(predicted))
    at_offset = words[(predicted >= 0) & (predicted == words + OFFSETS[target])]
    share = float(surface.shares[SHARES.index(target)][*head])
    return share if np.isfinite(share) else 0.0, _links(np.stack([at_offset, predicted[at_offset]], axis=1))


def _links(pairs: Int[np.ndarray, "link 2"]) -> tuple[Link, ...]:
    """Links that share no word, so that each marked word has one meaning."""
    links: list[Link] = []
    linked: set[int] = set()
    for query, key in pairs.tolist():
        if not linked & {query, key}:
            linked |= {query, key}
            links.append(Link(query=query, key=key))
    return tuple(links)


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
        text_attention: attention of a whole text.
        text: the text of its queries.
        words: of that text.

    Returns: None for a text with fewer than two words to compare, or without the target.
    """
    is_target = targets(target, text_attention.text)
    if not is_target.any():
        return None
    share_of_token = (text_attention.attention[*head].astype(np.float64) * is_target).sum(axis=1)
    belongs = (
        word_map(words, text_attention.text.queries).word_numbers[:, None]
        == np.arange(len(words.segments)) + FIRST_WORD
    )
    n_tokens = belongs.sum(axis=0)
    shares = np.where(n_tokens > 0, share_of_token @ belongs / np.maximum(n_tokens, 1), np.nan)
    is_word = [n_tokens[word] and any(map(str.isalnum, spelling)) for word, spelling in enumerate(words.shown(text))]
    order = [word for word in np.argsort(-shares, kind="stable").tolist() if is_word[word]]
    n_words = min(N_WORDS, len(order) // 2)
    if not n_words:
        return None
    return Rests(shares=shares, most=tuple(order[:n_words]), least=tuple(order[: -n_words - 1 : -1]))


def targets(target: Target, text: PassText) -> Bool[np.ndarray, "query key"]:
    """Which keys are the target of each query."""
    n_queries, n_keys = len(text.queries.ids), len(text.keys.ids)
    if target == "self":
        return np.eye(n_queries, n_keys, dtype=bool)
    is_key = np.arange(n_keys) == 0 if target == "first" else key_kinds(text.keys)[:, KEY_KINDS.index(target)]
    return np.broadcast_to(is_key, (n_queries, n_keys))
