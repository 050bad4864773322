"""Texts on which a planted model's function is needed, and what is to be predicted where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.planted.truth import Host, Task
from benchmarks.planted.vocabulary import AGAIN, ASK, AUXILIARIES, NAMES, NOUNS, STOP, VERBS, token_id

N_TEXTS: Final = 8
N_WORDS: Final = 60
"""Of each text, without special tokens."""
ORDINARY: Final = (*VERBS, *NOUNS)
"""Words that no text of another kind gives a meaning of its own."""


@dataclass(frozen=True)
class Words:
    """A text of words, and those among them that are predicted."""

    words: tuple[str, ...]
    predicted: tuple[int, ...]
    """Indices of words that can be predicted from others, by the function that the text is made for."""
    second: int | None = None
    """Index of the first word of the second segment."""


def task(host: Host, texts: Sequence[Words]) -> Task:
    """The task of a host: to predict words from those before them, or in place of the mask.

    Args:
        host: BERT gets a mask at each predicted word, and segments; the others predict from the token before.
        texts: As many words in each.
    """
    ids = [tuple(token_id(host, word) for word in text.words) for text in texts]
    targets = tuple(tuple(row[at] for at in text.predicted) for row, text in zip(ids, texts))
    if host != "bert":
        tokens = tuple((token_id(host, "<s>"), *row) for row in ids)
        return Task("next token", tokens, tuple(text.predicted for text in texts), targets)
    rows = [_masked(row, text) for row, text in zip(ids, texts)]
    scored = tuple(
        tuple(1 + at + (text.second is not None and at >= text.second) for at in text.predicted) for text in texts
    )
    segments = tuple(
        tuple(int(text.second is not None and at > text.second + 1) for at in range(len(row)))
        for row, text in zip(rows, texts)
    )
    return Task("masked", tuple(rows), scored, targets, segments)


def _masked(ids: Sequence[int], text: Words) -> tuple[int, ...]:
    begin, end, mask = (token_id("bert", token) for token in ("[CLS]", "[SEP]", "[MASK]"))
    row = [mask if at in text.predicted else number for at, number in enumerate(ids)]
    middle = [] if text.second is None else [end]
    second = len(row) if text.second is None else text.second
    return (begin, *row[:second], *middle, *row[second:], end)


def lagged(random: np.random.Generator, lag: int) -> Words:
    """Different words, of which some are that so many before them; a negative lag: after them.

    Args:
        random: Decides the words.
        lag: From the predicted word.
    """
    words = random.permutation(ORDINARY)[:N_WORDS].tolist()
    places, gap = [], abs(lag)
    for at in random.permutation(np.arange(gap + 1, N_WORDS - gap - 1)).tolist():
        # Nothing that is predicted, or predicted from, is predicted from anything else.
        if all(abs(at - other) > 1 and abs(at - other) != gap for other in places) and len(places) < 8:
            places.append(at)
    for at in sorted(places):
        words[at] = words[at - lag]
    return Words(tuple(words), tuple(sorted(places)))


def repeated(random: np.random.Generator) -> Words:
    """Different words, and some of them again after a gap of drawn length: each is predicted but the first."""
    n_block, gap = int(random.integers(12, 16)), int(random.integers(1, 16))
    words = random.permutation(ORDINARY)[: N_WORDS - n_block].tolist()
    first = N_WORDS - 2 * n_block - gap
    words = [*words, *words[first : first + n_block]]
    return Words(tuple(words), tuple(range(N_WORDS - n_block + 1, N_WORDS)))


def repeated_at(random: np.random.Generator, period: int) -> Words:
    """Different words, and the same again after a fixed number of tokens, as in probe texts without gaps."""
    words = random.permutation(ORDINARY)[:period].tolist() * (N_WORDS // period + 1)
    return Words(tuple(words[:N_WORDS]), tuple(range(period + 1, N_WORDS)))


def told_again(random: np.random.Generator) -> Words:
    """Different words; where one comes a second time, *again* follows."""
    words = random.permutation(ORDINARY)[:N_WORDS].tolist()
    places = np.sort(random.choice(np.arange(8, N_WORDS // 3), 6, replace=False)) * 3
    for at in places.tolist():
        words[at], words[at + 1] = words[int(random.integers(20))], AGAIN
    return Words(tuple(words), tuple(at + 1 for at in places.tolist()))


def always(random: np.random.Generator) -> Words:
    """Different words, and *again* in drawn places."""
    words = random.permutation(ORDINARY)[:N_WORDS].tolist()
    places = sorted(random.choice(np.arange(2, N_WORDS), 8, replace=False).tolist())
    for at in places:
        words[at] = AGAIN
    return Words(tuple(words), tuple(places))


def commonest(random: np.random.Generator, n_segments: int) -> Words:
    """One word in about half of the places, different ones in the others; in two segments another one in each."""
    words, predicted, length = [], [], N_WORDS // n_segments
    drawn = random.permutation(ORDINARY).tolist()
    for segment in range(n_segments):
        is_common = np.zeros(length, bool)
        is_common[random.permutation(length)[: length * 3 // 5]] = True
        is_common[:2] = True
        common = drawn.pop()
        words += [common if is_here else drawn.pop() for is_here in is_common]
        late = np.flatnonzero(is_common)
        late = late[late > length // 2]
        predicted += [segment * length + at for at in np.sort(random.permutation(late)[:4]).tolist()]
    return Words(tuple(words), tuple(predicted), length if n_segments == 2 else None)


def after_stops(random: np.random.Generator, host: Host) -> Words:
    """Different words; one of them stands before each stop, and is predicted in drawn places after the first."""
    words = random.permutation(ORDINARY)[:N_WORDS].tolist()
    topic = words[0]
    if host == "bert":
        words[-1] = topic  # before [SEP]
        places = sorted(random.choice(np.arange(5, N_WORDS - 5), 8, replace=False).tolist())
    else:
        for at in (8, 9 + int(random.integers(8, 18))):
            words[at], words[at + 1] = topic, STOP
        places = sorted(random.choice(np.arange(30, N_WORDS), 8, replace=False).tolist())
    for at in places:
        words[at] = topic
    return Words(tuple(words), tuple(places))


def sentences(random: np.random.Generator) -> Words:
    """Sentences of a small grammar: noun, verb, up to six nouns, the auxiliary of the verb's class, the verb again.

    Two sentences that overlap have verbs of different classes: an auxiliary finds its verb by the class alone.
    """
    classes, nouns = random.permutation(len(AUXILIARIES)).tolist(), random.permutation(NOUNS).tolist()
    words, predicted = list[str](), []
    for number in classes[:5]:
        verb = VERBS[number * 8 + int(random.integers(8))]
        words += [
            nouns.pop(),
            verb,
            *(nouns.pop() for _ in range(int(random.integers(1, 6)))),
            AUXILIARIES[number],
            verb,
        ]
        predicted.append(len(words) - 1)
    filler = random.choice(NOUNS, N_WORDS).tolist()
    return Words(tuple([*words, *filler][:N_WORDS]), tuple(predicted))


def asked(random: np.random.Generator) -> Words:
    """Different words, among them one name in a drawn place; after each question mark the name is said again."""
    words = random.permutation(ORDINARY)[:N_WORDS].tolist()
    name = str(random.choice(NAMES))
    words[int(random.integers(1, N_WORDS // 3))] = name
    places = np.sort(random.choice(np.arange(N_WORDS // 6 + 1, N_WORDS // 3), 6, replace=False)) * 3
    for at in places.tolist():
        words[at], words[at + 1] = ASK, name
    return Words(tuple(words), tuple(at + 1 for at in places.tolist()))
