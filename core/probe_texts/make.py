"""Makes texts that show what heads of decoders do, as ids of a tokenizer, so that repeats are exact."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import Annotated, Any, Final, Literal

import numpy as np
from jaxtyping import Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids
from attention_sieve.core.texts.tokens import SPECIAL, tokenize

ProbeKind = Literal["repeats", "fixed-repeats", "needles", "names"]
MOST_TOKENS: Final = 100_000
COPIES: Final = 4
"""How often a block of random tokens stands in a text of repeats."""
MIDDLE: Final = (0.2, 0.8)
"""Part of the vocabulary from which random tokens are drawn: neither the commonest nor the rarest."""
DEPTHS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Where in its filler a needle stands, from the beginning to the end."""
LENGTHS: Final = (128, 256, 512)
"""Tokens of a text with a needle, about."""

NAMES: Final = ("Anna", "Peter", "Maria", "Thomas", "Laura", "Martin", "Julia", "Simon", "Sarah", "Daniel")
ADJECTIVES: Final = ("small", "red", "heavy", "old", "bright", "wooden", "empty", "broken", "green", "round")
THINGS: Final = ("box", "lamp", "bottle", "clock", "chair", "basket", "candle", "mirror", "hammer", "drum")
PLACES: Final = ("station", "garden", "market", "school", "church", "bridge", "harbour", "library", "mill", "tower")
FILLER: Final = (
    "The weather was calm for most of the week.", "A bus stopped at the corner and drove on.",
    "Most shops close early on Sundays.", "The river is wide and slow in this valley.",
    "Two people were talking about the price of bread.", "Rain is rare here between May and August.",
    "The meeting began late and nobody complained.", "Trains to the coast run every hour.",
    "Someone had left a newspaper on the bench.", "The hills behind the town are covered with trees.",
    "Children learn to swim before they learn to ski.", "It takes an hour to walk around the lake.",
    "The road was repaired during the summer.", "Few visitors know the way to the old fort.",
    "A letter from abroad can take three weeks.", "The cook added salt and tasted the soup again.",
)  # fmt: skip
ORDINALS: Final = (
    ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    ("A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L"),
)


@dataclass(frozen=True)
class ProbeTextSettings:
    """Settings of probe texts.

    Raises: AnalysisError for numbers out of their range.
    """

    kind: Annotated[ProbeKind, "what the texts hold"] = "repeats"
    number: Annotated[int, "number of texts"] = 10
    block: Annotated[int, "repeats: number of different random tokens that are repeated"] = 25
    seed: Annotated[int, "random seed"] = 0

    def __post_init__(self) -> None:
        for name, value, most in (("number", self.number, 5_000), ("block", self.block, MOST_TOKENS // (2 * COPIES))):
            if not 2 <= value <= most:
                raise AnalysisError(f"{name} is {value:,}. Choose a whole number from 2 to {most:,}.")
        if self.seed < 0:
            raise AnalysisError(f"seed is {self.seed:,}. Choose a whole number from 0.")


def probe_texts(tokenizer: Any, settings: ProbeTextSettings) -> tuple[Text, ...]:
    """Texts that begin with the token that begins a text for a model, if its tokenizer has one; ids and seed decide.

    Repeats are random tokens from the middle of the vocabulary, COPIES times the same block. Between two copies stand
    new random tokens, of which the number is drawn, so that a head that always looks at one distance finds no copy;
    the control with a fixed period has the same blocks and none between them, as in the literature, and cannot tell the
    two apart. Needles
    are a sentence at five depths in three lengths of filler, whose end copies it. Names are sentences that end in the
    name that was said once, for one in three texts sequences such as days and numbers.

    Raises: AnalysisError for a vocabulary that is too small.
    Source: Olsson et al. 2022 (repeats; 25 tokens, four times); Wu et al. 2024 (needles); Wang et al. 2022 (names);
        Gould et al. 2023 (ordinals).
    """
    kind = "repeats" if settings.kind == "fixed-repeats" else settings.kind  # which repeats the same blocks
    random = np.random.default_rng([settings.seed, list(MAKERS).index(kind)])
    return tuple(map(text_of_ids, MAKERS[settings.kind](tokenizer, settings, random)))


def fitting_block(tokenizer: Any, max_tokens: int | None = None) -> int:
    """Number of tokens of a block of repeats: the usual one, or the largest for which the vocabulary has enough tokens
    and the longest text is not too long for the model, which reads `max_tokens`, or what the tokenizer says.

    Raises: AnalysisError if there is none.
    """
    longest = int(max_tokens or tokenizer.model_max_length) - len(_beginning(tokenizer))
    # After the first copy, each is preceded by at most as many other tokens.
    block = min(ProbeTextSettings.block, len(_drawable(tokenizer)) // COPIES, longest // (2 * COPIES - 1))
    if block < 2:
        raise AnalysisError(
            f"Texts of repeats need {2 * COPIES} tokens in the middle of the vocabulary and {2 * (2 * COPIES - 1)} in "
            "a text, and this checkpoint has fewer. Choose another checkpoint."
        )
    return block


def _drawable(tokenizer: Any) -> Int[np.ndarray, " token"]:
    low, high = (int(part * tokenizer.vocab_size) for part in MIDDLE)
    return np.setdiff1d(np.arange(low, high), tokenizer.all_special_ids)


def _repeats(
    tokenizer: Any, settings: ProbeTextSettings, random: np.random.Generator, *, has_gaps: bool
) -> Iterator[GivenTokens]:
    drawable = _drawable(tokenizer)
    if len(drawable) < COPIES * settings.block:
        raise AnalysisError(
            f"The middle of the vocabulary has {len(drawable):,} tokens, and texts of repeats draw up to "
            f"{COPIES * settings.block:,}. Choose a smaller block."
        )
    for _ in range(settings.number):
        drawn = random.permutation(drawable)[: COPIES * settings.block].tolist()
        block, others = drawn[: settings.block], drawn[settings.block :]
        ids: list[int] = [*_beginning(tokenizer), *block]
        for _ in range(COPIES - 1):
            gap = int(random.integers(1, settings.block + 1))
            ids += [*others[: gap if has_gaps else 0], *block]
            others = others[gap:]
        yield GivenTokens(tuple(ids))


def _needles(tokenizer: Any, settings: ProbeTextSettings, random: np.random.Generator) -> Iterator[GivenTokens]:
    cases = list(product(LENGTHS, DEPTHS))
    for row in range(settings.number):
        # Lengths and depths are spread evenly, however few texts are asked for.
        length, depth = cases[row * len(cases) // settings.number if settings.number < len(cases) else row % len(cases)]
        (name,), (place,) = _drawn(NAMES, 1, random), _drawn(PLACES, 1, random)
        adjectives, things = _drawn(ADJECTIVES, 2, random), _drawn(THINGS, 2, random)
        hidden = "the {} {} behind the {} {} near the {}.".format(*chain(*zip(adjectives, things)), place)
        needle, asked = f"{name} hid {hidden}", f"Where was it? As was said before, {name} hid"
        filler = _filler(tokenizer, length - _n_tokens(tokenizer, f"{needle} {asked} {hidden}"), random)
        before = round(depth * len(filler))
        start = " ".join([*filler[:before], ""])
        question = " ".join([start + needle, *filler[before:], asked])
        text = f"{question} {hidden}"
        marks = (len(start) + len(name) + 5, len(start + needle)), (len(question) + 1, len(text))
        yield _marked(tokenizer, text, *marks)


def _names(tokenizer: Any, settings: ProbeTextSettings, random: np.random.Generator) -> Iterator[GivenTokens]:
    for row in range(settings.number):
        if row % 3 == 2:
            words = ORDINALS[int(random.integers(len(ORDINALS)))]
            at = int(random.integers(len(words) - 5))
            yield _marked(tokenizer, " ".join(words[at : at + 6]))
            continue
        (first, other), (adjective,) = _drawn(NAMES, 2, random), _drawn(ADJECTIVES, 1, random)
        (thing,), (place,) = _drawn(THINGS, 1, random), _drawn(PLACES, 1, random)
        start, middle = f"When {first}", f" and {other} met at the {place}, {other} gave the {adjective} {thing} to "
        text = f"{start}{middle}{first}"
        yield _marked(tokenizer, text, (5, len(start)), (len(start + middle), len(text)))


MAKERS: Final[dict[str, Callable[[Any, ProbeTextSettings, np.random.Generator], Iterator[GivenTokens]]]] = {
    "repeats": partial(_repeats, has_gaps=True),
    "fixed-repeats": partial(_repeats, has_gaps=False),
    "needles": _needles,
    "names": _names,
}
"""How the texts of each kind are made."""


def _drawn(words: Sequence[str], n_words: int, random: np.random.Generator) -> list[str]:
    return [words[index] for index in random.permutation(len(words))[:n_words]]


def _filler(tokenizer: Any, n_tokens: int, random: np.random.Generator) -> list[str]:
    """Sentences of about so many tokens, in random order; each comes again only when all have been."""
    sentences = list[str]()
    while n_tokens > 0:
        for sentence in _drawn(FILLER, len(FILLER), random):
            sentences.append(sentence)
            n_tokens -= _n_tokens(tokenizer, f" {sentence}")
            if n_tokens <= 0:
                break
    return sentences


def _n_tokens(tokenizer: Any, text: str) -> int:
    return len(tokenize(Text((text,)), tokenizer, MOST_TOKENS).ids)


def _marked(
    tokenizer: Any, text: str, needle: tuple[int, int] | None = None, answer: tuple[int, int] | None = None
) -> GivenTokens:
    """The tokens of a text, with those of two spans of characters marked."""
    tokens = tokenize(Text((text,)), tokenizer, MOST_TOKENS)
    is_kept = np.flatnonzero(tokens.segments != SPECIAL)
    ids, beginning = tokens.ids[is_kept].tolist(), _beginning(tokenizer)
    spans = tokens.spans[is_kept]

    def place(characters: tuple[int, int]) -> tuple[int, int]:
        inside = np.flatnonzero((spans[:, 0] < characters[1]) & (characters[0] < spans[:, 1])) + len(beginning)
        return int(inside[0]), int(inside[-1]) + 1

    return GivenTokens((*beginning, *ids), needle and place(needle), answer and place(answer))


def _beginning(tokenizer: Any) -> Sequence[int]:
    """The token that begins a text, as a list; empty for a tokenizer without any."""
    candidates = (tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.eos_token_id)
    return [number for number in candidates if number is not None][:1]
