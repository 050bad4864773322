"""A corrupted text for each clean one of a planted task."""

import random
from typing import Any

from planted_folder import NotRunnable


def corrupted_texts(planted: dict[str, Any], most: int) -> tuple[list[list[int]], str]:
    """The first texts of the task, at most `most`, with their deciding tokens changed, and how.

    Where every target stands before the first scored position, those tokens decide, and each becomes another token
    that decides somewhere in the task. Otherwise the next text of the same length takes the text's place.

    Raises:
        NotRunnable: no other text has the length of one.
    """
    task = planted["task"]
    texts = list(zip(task["tokens"], task["scored"], task["targets"]))[:most]
    places = [earlier_targets(*text) for text in texts]
    if all(places):
        return with_others(task["tokens"], places, planted["seed"]), "earlier copies of the targets are other tokens"
    others = [next_of_its_length(task["tokens"], index) for index in range(len(texts))]
    return others, "another text of the task"


def earlier_targets(tokens: list[int], scored: list[int], targets: list[int]) -> list[int]:
    """Where the targets stand before the first scored position; nowhere unless all of them do."""
    earlier = [position for position in range(min(scored)) if tokens[position] in targets]
    return earlier if {tokens[position] for position in earlier} == set(targets) else []


def with_others(texts: list[list[int]], places: list[list[int]], seed: int) -> list[list[int]]:
    """Each text with a random other token at its places, of those that stand at places of any text."""
    drawn = random.Random(seed)
    words = sorted({text[place] for text, at in zip(texts, places) for place in at})
    if len(words) < 2:
        raise NotRunnable("All deciding tokens of the task are the same.")
    return [
        [
            drawn.choice([word for word in words if word != token]) if place in at else token
            for place, token in enumerate(text)
        ]
        for text, at in zip(texts, places)
    ]


def next_of_its_length(texts: list[list[int]], index: int) -> list[int]:
    """The first text after one, from the start again after the last, that is as long and another."""
    for other in texts[index + 1 :] + texts[:index]:
        if len(other) == len(texts[index]) and other != texts[index]:
            return other
    raise NotRunnable("The targets are not copied, and no other text of the task has the same length.")
