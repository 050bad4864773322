"""Plans of planted models: which head does what, and what follows from it for the task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from benchmarks.planted.circuits import PERIOD, Circuit
from benchmarks.planted.functions import Function
from benchmarks.planted.truth import Backup, Head, Host


@dataclass(frozen=True)
class Design:
    """Heads by the step at which they stand, before places are drawn, and what follows from them; heads by index."""

    steps: tuple[tuple[Function, ...], ...]
    """Functions of each step; each stands in a later layer than those of the step before."""
    needed: tuple[int, ...] = ()
    """Indices into all functions, step by step."""
    harmful: tuple[int, ...] = ()
    redundant: tuple[int, ...] = ()
    backup: tuple[int, int] | None = None
    """Main head and its backup."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Further pairs whose removal together is measured."""


@dataclass(frozen=True)
class Plan:
    """What each head of a model does."""

    grid: tuple[tuple[Function, ...], ...]
    """Layers of heads."""
    needed: tuple[Head, ...]
    harmful: tuple[Head, ...]
    redundant_sets: tuple[tuple[Head, ...], ...]
    backups: tuple[Backup, ...]
    measured_sets: tuple[tuple[Head, ...], ...]
    """Sets of heads whose removal together is measured."""


def single(circuit: Circuit, random: np.random.Generator) -> Design:
    """All heads of the circuit are needed; one that looks like the last writes nothing."""
    mute = replace(circuit.final, writes="nothing", strength=1.0)
    return _design(circuit, (circuit.final, mute), needed_finals=(0,))


def suppressed(circuit: Circuit, random: np.random.Generator) -> Design:
    """A head that looks like the last writes the opposite of what it writes, and so much that it harms."""
    final = replace(circuit.final, strength=0.6 * circuit.final.strength)
    suppressor = replace(final, strength=-0.35 * circuit.final.strength)
    design = _design(circuit, (final, suppressor), needed_finals=(0,))
    return replace(design, harmful=(len(circuit.feeders) + 1,))


def cancelling(circuit: Circuit, random: np.random.Generator) -> Design:
    """Two more heads write the opposite of each other: without the one that cancels, the other misleads."""
    # No text has what is predicted at either distance, but where the circuit looks there itself.
    offset = 10 if circuit.final.offset != 10 else 11
    misleading = Function("ruler", offset, "token", 1.6)
    design = _design(circuit, (circuit.final, misleading, replace(misleading, strength=-1.6)), needed_finals=(0, 2))
    first = len(circuit.feeders)
    return replace(design, pairs=((first + 1, first + 2),))


def copied(circuit: Circuit, n_copies: int) -> Design:
    """Several heads do the same, and each alone would do."""
    design = _design(circuit, (circuit.final,) * n_copies, needed_finals=())
    first = len(circuit.feeders)
    return replace(design, redundant=tuple(range(first, first + n_copies)))


def two_copies(circuit: Circuit, random: np.random.Generator) -> Design:
    """Two heads do the same, and each alone would do."""
    return copied(circuit, 2)


def four_copies(circuit: Circuit, random: np.random.Generator) -> Design:
    """Four heads do the same, and each alone would do."""
    return copied(circuit, 4)


def two_writers(circuit: Circuit, random: np.random.Generator) -> Design:
    """The head that prepares for the last one is there twice."""
    *feeders, last = circuit.feeders
    steps = (*((feeder,) for feeder in feeders), (last, last), (circuit.final,))
    n = len(feeders)
    return Design(steps, needed=(*range(n), n + 2), redundant=(n, n + 1))


def backed_up(circuit: Circuit, random: np.random.Generator) -> Design:
    """A later head does what the last one does, and only where that one has not marked the query as filled."""
    main = replace(circuit.final, says_when_found=True)
    backup = replace(circuit.final, backs_up=True)
    steps = (*((feeder,) for feeder in circuit.feeders), (main,), (backup,))
    n = len(circuit.feeders)
    return Design(steps, needed=tuple(range(n)), redundant=(n, n + 1), backup=(n, n + 1))


def split(circuit: Circuit, random: np.random.Generator) -> Design:
    """Two heads write half of what it takes to win against another word, which the first token always proposes."""
    half = "half induction" if circuit.final.looks_at == "induction" else circuit.final.looks_at
    part = replace(circuit.final, looks_at=half, strength=0.5 * circuit.final.strength)
    competitor = Function("sink", 0, "competitor", 0.75)
    design = _design(circuit, (part, part, competitor), needed_finals=(0, 1))
    first = len(circuit.feeders)
    return replace(design, pairs=((first, first + 1),))


def _design(circuit: Circuit, finals: Sequence[Function], needed_finals: tuple[int, ...]) -> Design:
    n = len(circuit.feeders)
    steps = (*((feeder,) for feeder in circuit.feeders), tuple(finals))
    return Design(steps, needed=(*range(n), *(n + final for final in needed_finals)))


ARRANGEMENTS: Final[dict[str, Callable[[Circuit, np.random.Generator], Design]]] = {
    "single": single,
    "suppressed": suppressed,
    "cancelling": cancelling,
    "two copies": two_copies,
    "four copies": four_copies,
    "two writers": two_writers,
    "backup": backed_up,
    "split": split,
}


def fits(arrangement: str, circuit: Circuit) -> bool:
    """Whether an arrangement of a circuit's heads has the effect that it is named for."""
    if arrangement in ("suppressed", "cancelling", "split", "backup"):
        return circuit.is_sharp and circuit.final.writes == "token"
    return arrangement != "two writers" or (bool(circuit.feeders) and circuit.feeders[-1].looks_at == "previous")


def plan(design: Design, host: Host, random: np.random.Generator) -> Plan:
    """Draws the places of all heads, and what the other heads do, which does not touch the task.

    Args:
        design: Heads that do something for the task.
        host: Decides what other heads can do.
        random: Decides the rest.
    """
    n_layers = len(design.steps) + int(random.integers(0 if len(design.steps) > 1 else 1, 2))
    widest = max(map(len, design.steps))
    n_heads = int(random.choice([number for number in ((4, 6) if host == "llama" else (4, 5, 6)) if number >= widest]))
    layers = np.sort(random.choice(n_layers, len(design.steps), replace=False)).tolist()
    places = list[Head]()
    grid: list[list[Function | None]] = [[None] * n_heads for _ in range(n_layers)]
    for layer, functions in zip(layers, design.steps):
        for function, head in zip(functions, random.permutation(n_heads).tolist()):
            grid[layer][head] = function
            places.append((layer, head))
    written = {function.writes: layer for layer, functions in zip(layers, design.steps) for function in functions}
    idle = _idle(host, random)
    filled = []
    for layer, row in enumerate(grid):
        can_match = written.get("previous token", n_layers) < layer
        filled.append(tuple(function or idle(can_match) for function in row))
    return _placed(design, places, tuple(filled))


def _placed(design: Design, places: Sequence[Head], grid: tuple[tuple[Function, ...], ...]) -> Plan:
    redundant = tuple(places[index] for index in design.redundant)
    subsets = [part for size in range(2, len(redundant) + 1) for part in combinations(redundant, size)]
    pairs = [(places[first], places[second]) for first, second in design.pairs]
    return Plan(
        grid,
        tuple(sorted(places[index] for index in design.needed)),
        tuple(places[index] for index in design.harmful),
        (redundant,) if redundant else (),
        (Backup(*(places[index] for index in design.backup)),) if design.backup else (),
        tuple(dict.fromkeys([*subsets, *pairs])),
    )


def _idle(host: Host, random: np.random.Generator) -> Callable[[bool], Function]:
    """Draws functions that do nothing for a task: they write nothing, or noise."""
    offsets = (PERIOD - 1, 24, *range(2, 10))

    def drawn(can_match: bool) -> Function:
        names = ["ruler", "ruler", "previous", "duplicate", "sink", "uniform", "nothing", "delimiter"]
        names += ["next", "own segment"] if host == "bert" else ["syntactic"]
        names += ["induction", "induction"] if can_match and host != "bert" else []
        name = str(random.choice(names))
        if name == "nothing":
            return Function(name, writes="noise")
        offset = {"previous": 1, "next": -1}.get(name, 0)
        if name == "ruler":
            offset = int(random.choice(offsets)) * (int(random.choice([-1, 1])) if host == "bert" else 1)
        return Function(name, offset)

    return drawn
