"""How well a checkpoint does with the gates of each penalty, on the texts that no gate was trained on."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from cache.engine import Engine
from core.finetuning.data import held_out_texts
from core.importance.effects import Draws
from core.importance.gates.settings import TrainedGates
from core.importance.pruning.curves import Curve, curve
from core.importance.question import gated_question
from core.texts.text import Text
from dashboard import controls
from dashboard.views.asking import ask
from dashboard.views.finetune.labelled import Labelled
from dashboard.views.importance.gates.sweeps import Sweep
from dashboard.views.importance.material import Material


@dataclass(frozen=True, eq=False, kw_only=True)
class Judged:
    """Scores with the gates of the finished runs of a sweep."""

    penalties: tuple[float, ...]
    curve: Curve
    """Its first step has all heads on and no gates; then one step for each penalty."""
    n_heads: int
    places: tuple[int, ...]
    """Of the texts that were judged, among those of the page."""


def gates_after(sweep: Sweep, penalty: float, engine: Engine) -> TrainedGates | None:
    """The gates at the end of a run; None where they were not written down."""
    from core.importance.gates.hard_concrete import gates_of

    history = sweep.history(penalty, engine.files.removed_of(sweep.settings.kind))
    return None if history is None else gates_of(history.log_alpha[-1])


def judged(material: Material, sweep: Sweep) -> Judged | None:
    """Scores of the finished runs of a sweep; None where the reader has to do something first, or none is finished.

    The gates stand in front of the weights as they were; where these were trained, too, the run's own checkpoint is
    asked, which has its gates in its weights.

    Raises: AnalysisError of any stage.
    """
    trained = {penalty: gates_after(sweep, penalty, material.visit.engine) for penalty in sweep.finished}
    gates = {penalty: found for penalty, found in trained.items() if found is not None}
    if not gates or material.table is None:
        return None
    places = held_out_places(material, material.table, sweep)
    texts = [material.visit.texts[place] for place in places]
    shape = next(iter(gates.values())).gate.shape
    full = _outcomes(material, None, np.ones(shape), texts)
    found = [_outcomes(material, *_what_to_ask(sweep, penalty, of), texts) for penalty, of in gates.items()]
    if full is None or any(each is None for each in found):
        return None
    positions, of_full = full
    read = tuple(int(places[position]) for position in positions)
    every = np.stack([of_full, *(each[1] for each in found if each is not None)], axis=1)
    removed = np.array([0, *(int((of.gate == 0).sum()) for of in gates.values())])
    of_runs = curve("gates", 0, removed, every, material.score(read), Draws(material.documents(read)))
    n_heads = int((~np.isnan(next(iter(gates.values())).gate)).sum())
    return Judged(penalties=tuple(gates), curve=of_runs, n_heads=n_heads, places=read)


def held_out_places(material: Material, table: Labelled, sweep: Sweep) -> Int[np.ndarray, " text"]:
    """Places of the texts that a sweep does not train on: the run splits them off by the same rule."""
    labels = () if material.labels is None else tuple(material.labels.tolist())
    data = replace(table.data, labels=labels, task="classes" if material.n_classes else "regression")
    return np.flatnonzero(held_out_texts(data, sweep.settings.held_out, sweep.settings.seed))


def _what_to_ask(
    sweep: Sweep, penalty: float, gates: TrainedGates
) -> tuple[str | None, Float[np.ndarray, "layer head"]]:
    """The checkpoint, None for the one before training, and the gates in front of it."""
    if sweep.settings.with_weights:
        return str(sweep.run_folder(penalty)), np.ones(gates.gate.shape)
    return None, np.nan_to_num(gates.gate, nan=1.0)


def _outcomes(
    material: Material, checkpoint: str | None, gates: Float[np.ndarray, "layer head"], texts: list[Text]
) -> tuple[tuple[int, ...], Float[np.ndarray, "text part"]] | None:
    """Positions of the texts that were read, and what becomes of them."""
    visit = material.visit
    if checkpoint is not None:
        visit = replace(visit, engine=controls.other_engine(visit.chosen, checkpoint))
    answers = ask(visit, gated_question("labels", gates[None]), texts)
    return None if answers is None else (answers.positions, np.stack([of_text[0] for of_text in answers.results]))
