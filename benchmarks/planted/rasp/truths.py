"""The table of truth of a carried program."""

import numpy as np

from benchmarks.planted.measured import effects
from benchmarks.planted.rasp.carrying import Carried, host_ids
from benchmarks.planted.rasp.compiled import NO_TARGET, ProgramHead
from benchmarks.planted.statements import faults
from benchmarks.planted.truth import Head, HeadTruth, Task, Truth


def task_of(carried: Carried) -> Task:
    """The last examples; each token with an output is scored at its own position.

    Args:
        carried: The model whose ids are used.
    """
    examples, ids = carried.program.examples[-1], np.array(carried.at.output_ids)
    scored = [np.flatnonzero(targets != NO_TARGET) for targets in examples.targets]
    targets = [ids[of_text[positions]] for of_text, positions in zip(examples.targets, scored, strict=True)]
    return Task(
        kind="next token" if carried.program.causal else "masked",
        tokens=tuple(map(tuple, host_ids(examples.tokens, carried.at).tolist())),
        scored=tuple(tuple(positions.tolist()) for positions in scored),
        targets=tuple(tuple(of_text.tolist()) for of_text in targets),
    )


def truth_of(carried: Carried) -> Truth:
    """What is known about a carried program.

    Args:
        carried: The model.

    Raises:
        ValueError: A head that the program uses is not needed, or another one is.
    """
    program, at, task = carried.program, carried.at, task_of(carried)
    used = {at.place(head.layer, head.head): head for head in program.heads}
    places = [(layer, head) for layer in range(len(program.layers)) for head in range(at.n_heads)]
    truth = Truth(
        name=f"{at.host}-rasp-{program.name}",
        seed=program.seed,
        host=at.host,
        family=f"rasp {program.name}",
        noise="none",
        heads=tuple(_head(place, used.get(place)) for place in places),
        task=task,
        needed=tuple(place for place in places if place in used),
        harmful=(),
        redundant_sets=(),
        backups=(),
        effects=effects(carried.model, task, ()),
    )
    if found := faults(truth):
        raise ValueError(f"{truth.name}: {'; '.join(found)}.")
    return truth


def _head(place: Head, used: ProgramHead | None) -> HeadTruth:
    if used is None:
        return HeadTruth(*place, "uniform", 0, "nothing", needed=False, description="all tokens: it has no weights")
    return HeadTruth(*place, used.looks_at, used.offset, used.writes, needed=True, description=used.description)
