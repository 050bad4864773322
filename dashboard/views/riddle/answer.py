"""What the riddle says about a guess: computed from the attention of the sentence, for any checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.word_links.on_text import words_on
from attention_sieve.core.word_links.pronouns import PronounLink
from attention_sieve.dashboard.views.riddle import wording
from attention_sieve.dashboard.views.text.simple_patterns import resting_places, simple_pattern
from attention_sieve.dashboard.views.text.stories import LEAST_SHARE

MOST_OTHERS: Final = 2
"""Other words that are named where a guess looks at the antecedent from them as well."""

Verdict = Literal["right", "also right", "close", "wrong"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    headline: str
    sentences: tuple[str, ...]
    """About the head that is the answer, and about the guess."""
    heads: tuple[Head, ...]
    """The answer, then the guess if it is another head."""
    pin: str
    """Pinned token, as in `attention_sieve.dashboard.components.arcs.look.ArcSettings`: the antecedent, or for a guess
    that does not look at it, the pronoun."""


def answer(here: PronounLink, text_attention: TextAttention, head: Head, guess: Head) -> Answer:
    """Compare a guess with the head that is the answer, which follows the pronoun."""
    verdict = verdict_of(here, head, guess)
    name, guess_name = head_name(*head), head_name(*guess)
    headline = {
        "right": wording.right(name),
        "also right": wording.also_right(guess_name, name),
        "close": wording.close(name),
        "wrong": wording.wrong(name),
    }[verdict]
    is_other = guess != head
    side, word = ("from", here.pronoun) if verdict == "wrong" else ("to", here.antecedent)
    return Answer(
        headline=headline,
        sentences=(_of_follower(here, head), *([_of_guess(here, text_attention, guess, verdict)] if is_other else [])),
        heads=(head, *([guess] if is_other else [])),
        pin=f"{side}-{here.words.words[word].tokens[0]}",
    )


def verdict_of(here: PronounLink, head: Head, guess: Head) -> Verdict:
    if guess == head:
        return "right"
    if here.follows[guess]:
        return "also right"
    return "close" if here.attention[guess] >= LEAST_SHARE else "wrong"


def elsewhere(head: Head, links: Sequence[PronounLink]) -> str:
    following = [(link.sentence, float(link.attention[head])) for link in links if link.follows[head]]
    return wording.elsewhere(following, len(links))


def cell_sentences(here: PronounLink) -> list[list[str]]:
    to_words = np.nan_to_num(here.words.attention[:, :, here.pronoun], nan=0)
    return [
        [
            wording.cell(here.sentence.pronoun, here.words.words[int(shares.argmax())].text, float(shares.max()))
            for shares in of_layer
        ]
        for of_layer in to_words
    ]


def _of_follower(here: PronounLink, head: Head) -> str:
    greatest = float(here.from_others[head].max())
    return wording.of_head(head_name(*head), here.sentence, float(here.attention[head]), greatest)


def _of_guess(here: PronounLink, text_attention: TextAttention, guess: Head, verdict: Verdict) -> str:
    if verdict == "also right":
        return _of_follower(here, guess)
    share = float(here.attention[guess])
    if verdict == "wrong":
        return wording.of_other(head_name(*guess), share, _does(here, text_attention, guess))
    from_others = here.from_others[guess]
    order = np.argsort(-from_others, kind="stable")[:MOST_OTHERS]
    n_others = int((here.words.even[guess[0], :, here.antecedent] > 0).sum()) - 1
    return wording.of_column(
        head_name(*guess),
        here.sentence.antecedent,
        share,
        [(here.words.words[index].text, float(from_others[index])) for index in order],
        is_everywhere=bool(share * n_others < LEAST_TIMES * from_others.sum()),
    )


def _does(here: PronounLink, text_attention: TextAttention, head: Head) -> str:
    """What a head mostly does in the sentence, or else where it looks from the pronoun."""
    text = text_attention.text.queries
    if (does := simple_pattern(text_attention, head)) is not None:
        signs = [token for token, rests in zip(text.tokens, resting_places(text)) if rests]
        return wording.mostly(*does, signs)
    attention = text_attention.attention[head]
    to_words = [
        (
            word.text,
            float(attention[list(here.words.words[here.pronoun].tokens)][:, list(word.tokens)].sum(axis=1).mean()),
        )
        for word in words_on(text, (0, len(text.ids)))
    ]
    return wording.instead(here.sentence.pronoun, *max(to_words, key=lambda each: each[1]))
