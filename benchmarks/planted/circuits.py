"""Circuits of heads that solve a task: heads that prepare, and one that predicts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.planted import tasks
from benchmarks.planted.functions import Function
from benchmarks.planted.tasks import Words
from benchmarks.planted.truth import Host

PREVIOUS = Function("previous", 1, "previous token")
PERIOD = 18
"""Tokens of a block in the product's probe texts for a model of 128 positions; without gaps they have this period."""


@dataclass(frozen=True)
class Circuit:
    """Heads in the order of their layers, and the texts whose prediction needs all of them."""

    feeders: tuple[Function, ...]
    final: Function
    text: Callable[[np.random.Generator], Words]
    is_sharp: bool = True
    """What is predicted stands in one token that the final head looks at."""


def circuit(name: str, host: Host, random: np.random.Generator) -> Circuit:
    """The circuit of a name in a host.

    Args:
        name: One of `circuit_names`.
        host: In BERT the word at a mask is predicted, in the others the next one.
        random: Decides distances.
    """
    if name in ("previous", "next", "ruler"):
        return _ruler(name, host, random)
    if host == "bert":
        return ENCODER[name]
    return DECODER[name]


def circuit_names(host: Host) -> tuple[str, ...]:
    """The names of a host's circuits."""
    if host == "bert":
        return "previous", "next", "ruler", *ENCODER
    return "previous", "ruler", *(name for name in DECODER if host == "gpt2" or name != "pointer induction")


def _ruler(name: str, host: Host, random: np.random.Generator) -> Circuit:
    is_encoder = host == "bert"
    distance = {"previous": 1, "next": -1}.get(name, int(random.integers(2, 15)))
    if name == "ruler" and is_encoder and random.random() < 0.5:
        distance = -distance
    text = partial(tasks.lagged, lag=distance if is_encoder else distance + 1)
    return Circuit((), Function(name, distance, "token"), text)


ENCODER = {
    "duplicate": Circuit(
        (Function("duplicate", 0, "seen"),), Function("previous", 1, "again where seen"), tasks.told_again
    ),
    "sink": Circuit((), Function("sink", 0, "constant"), tasks.always, is_sharp=False),
    "uniform": Circuit(
        (), Function("uniform", 0, "token", 2.0), partial(tasks.commonest, n_segments=1), is_sharp=False
    ),
    "own segment": Circuit(
        (), Function("own segment", 0, "token", 2.0), partial(tasks.commonest, n_segments=2), is_sharp=False
    ),
    "delimiter": Circuit(
        (PREVIOUS,), Function("delimiter", 0, "word before"), partial(tasks.after_stops, host="bert"), is_sharp=False
    ),
    "syntactic": Circuit((Function("previous", 1, "class"),), Function("syntactic", 0, "token"), tasks.sentences),
    "retrieval": Circuit((), Function("retrieval", 0, "token"), tasks.asked),
}
DECODER = {
    "duplicate": Circuit((), Function("duplicate", 0, "again"), tasks.told_again),
    "induction": Circuit((PREVIOUS,), Function("induction", 0, "token"), tasks.repeated),
    "pointer induction": Circuit(
        (Function("duplicate", 0, "position"),), Function("pointed", 0, "token"), tasks.repeated
    ),
    "period": Circuit((), Function("ruler", PERIOD - 1, "token"), partial(tasks.repeated_at, period=PERIOD)),
    "sink": Circuit((), Function("sink", 0, "constant"), tasks.always, is_sharp=False),
    "uniform": ENCODER["uniform"],
    "delimiter": Circuit((PREVIOUS,), Function("delimiter", 0, "word before"), partial(tasks.after_stops, host="gpt2")),
    "syntactic": Circuit((), Function("syntactic", 0, "token"), tasks.sentences),
    "retrieval": Circuit((), Function("retrieval", 0, "token"), tasks.asked),
}
