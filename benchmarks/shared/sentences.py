"""Generates distinct English sentences of 6 to 30 words; the same seed gives the same sentences."""

import random
from typing import Final

SHORTEST, LONGEST = 6, 30
"""Words of a sentence."""
PEOPLE: Final = ("pilot", "nurse", "farmer", "singer", "judge", "clerk", "tailor", "guard", "poet", "miner", "child")
THINGS: Final = ("letter", "door", "basket", "lamp", "bridge", "map", "violin", "kettle", "ladder", "ticket", "clock")
PLACES: Final = ("market", "harbour", "station", "garden", "library", "valley", "kitchen", "museum", "mill")
QUALITIES: Final = ("tired", "old", "quiet", "green", "heavy", "careful", "broken", "narrow", "clever", "gentle")
DEEDS: Final = ("carried", "repaired", "painted", "found", "sold", "closed", "lifted", "borrowed", "admired")
MANNERS: Final = ("slowly", "quietly", "eagerly", "often", "never", "suddenly", "gladly", "carefully")
JOINTS: Final = ("because", "although", "while", "before", "after", "until", "whenever", "and", "but", "so")
OPENINGS: Final = ("", "", "", "Yesterday ", "In the end ", "As far as I know, ", "Once again ", "Nobody doubts that ")
ENDINGS: Final = (".", ".", ".", "!", "?", " ...")


def sentences(n: int, seed: int = 0) -> list[str]:
    """A number of distinct sentences."""
    chance = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < n:
        sentence = _sentence(chance)
        if SHORTEST <= len(sentence.split()) <= LONGEST:
            made[sentence] = None
    return list(made)


def _sentence(chance: random.Random) -> str:
    clauses = [_clause(chance) for _ in range(chance.choice((1, 1, 2, 2, 3)))]
    joined = clauses[0] + "".join(f" {chance.choice(JOINTS)} {clause}" for clause in clauses[1:])
    whole = chance.choice(OPENINGS) + joined + chance.choice(ENDINGS)
    return whole[0].upper() + whole[1:]


def _clause(chance: random.Random) -> str:
    manner = f" {chance.choice(MANNERS)}" if chance.random() < 0.5 else ""
    place = f" {chance.choice(('in', 'near', 'behind', 'outside'))} the {chance.choice(PLACES)}"
    return (
        f"{_phrase(chance, PEOPLE)}{manner} {chance.choice(DEEDS)} {_phrase(chance, THINGS)}"
        f"{place if chance.random() < 0.6 else ''}"
    )


def _phrase(chance: random.Random, nouns: tuple[str, ...]) -> str:
    qualities = chance.sample(QUALITIES, chance.choice((0, 1, 1, 2)))
    first = chance.choice(("the", "my", "her", "every", "another"))
    return " ".join((first, *qualities, chance.choice(nouns)))
