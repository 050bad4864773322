"""The table of truth of a carried program."""

from typing import Final

from benchmarks.planted.rasp.checks import effects_of, task_of
from benchmarks.planted.rasp.compiled import ProgramHead
from benchmarks.planted.rasp.hosts import Carried
from benchmarks.planted.truth import Head, HeadTruth, Truth

NEEDED: Final = 0.1
"""Nats per scored token: without a head of the program the loss rises by more."""
NOT_NEEDED: Final = 1e-6
"""Nats per scored token: without any other head it changes by less."""


def truth_of(carried: Carried) -> Truth:
    """What is known about a carried program.

    Args:
        carried: The model.

    Raises:
        ValueError: A head that the program uses is not needed, or another one is.
    """
    program, task = carried.program, task_of(carried)
    effects = effects_of(carried, task)
    used = {(head.layer, carried.heads.places[head.layer][head.head]): head for head in program.heads}
    for layer, rises in enumerate(effects.single):
        for head, rise in enumerate(rises):
            if (rise <= NEEDED) if (layer, head) in used else (abs(rise) >= NOT_NEEDED):
                found = f"Without L{layer} H{head} of {program.name} the loss rises by {rise:.3g}"
                raise ValueError(f"{found}, against its design.")
    places = [(layer, head) for layer in range(len(program.layers)) for head in range(carried.heads.number)]
    return Truth(
        name=f"{carried.host}-rasp-{program.name}",
        seed=program.seed,
        host=carried.host,
        family=f"rasp {program.name}",
        noise="none",
        heads=tuple(_head(place, used.get(place)) for place in places),
        task=task,
        needed=tuple(place for place in places if place in used),
        harmful=(),
        redundant_sets=(),
        backups=(),
        effects=effects,
    )


def _head(place: Head, facts: ProgramHead | None) -> HeadTruth:
    layer, head = place
    if facts is None:
        return HeadTruth(layer, head, "uniform", 0, "nothing", False, "no weights")
    return HeadTruth(layer, head, facts.looks_at, facts.offset, facts.writes, True, facts.description)
