"""Scores of a checkpoint with the gates of each penalty, on the texts that no gate was trained on."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.answers import Engine
from attention_sieve.core.finetuning.data import held_out_texts
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.gates.settings import TrainedGates
from attention_sieve.core.importance.pruning.curves import Curve, curve
from attention_sieve.core.importance.question import gated_question
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.views.asking import ask
from attention_sieve.dashboard.views.importance.gates.sweeps import PenaltySweep
from attention_sieve.dashboard.views.importance.material import Material


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedGates:
    """Scores with the gates of the finished runs of a sweep."""

    penalties: tuple[float, ...]
    curve: Curve
    """Its first step has all heads on and no gates; then one step for each penalty."""
    n_heads: int
    places: tuple[int, ...]
    """Indices of the scored texts among those of the page."""


def gates_after(sweep: PenaltySweep, penalty: float, engine: Engine) -> TrainedGates | None:
    """The gates at the end of a run; None if they were not saved."""
    from attention_sieve.core.importance.gates.hard_concrete import gates_of

    history = sweep.history(penalty, engine.files.removed_of(sweep.settings.kind))
    return None if history is None else gates_of(history.log_alpha[-1])


def judged(material: Material, sweep: PenaltySweep) -> JudgedGates | None:
    """Scores of the finished runs of a sweep; None where the reader has to do something first, or none is finished.

    The gates are applied to the original weights; if the weights were trained too, the run's own checkpoint is used,
    whose weights contain the gates.

    Raises: AnalysisError of any stage.
    """
    trained = {penalty: gates_after(sweep, penalty, material.visit.engine) for penalty in sweep.finished}
    gates = {penalty: of_run for penalty, of_run in trained.items() if of_run is not None}
    if not gates or material.table is None:
        return None
    labels = tuple(item.label for item in material.inputs if item.label is not None)
    data = replace(material.table.data, labels=labels, task="classes" if material.metric.n_classes else "regression")
    indices = np.flatnonzero(held_out_texts(data, sweep.settings.held_out, sweep.settings.seed))
    texts = [item.text for item in material.at(indices.tolist())]
    shape = next(iter(gates.values())).gate.shape
    full = _outcomes(material, None, np.ones(shape), texts)
    outcomes = [
        _outcomes(material, *_checkpoint_and_gates(sweep, penalty, of_run), texts) for penalty, of_run in gates.items()
    ]
    if full is None or any(of_run is None for of_run in outcomes):
        return None
    positions, full_outcomes = full
    read_indices = tuple(int(indices[position]) for position in positions)
    all_outcomes = np.stack([full_outcomes, *(of_run[1] for of_run in outcomes if of_run is not None)], axis=1)
    removed = np.array([0, *(int((of_run.gate == 0).sum()) for of_run in gates.values())])
    read = material.at(read_indices)
    score, documents = material.metric.score_of(read), [item.text.document for item in read]
    score_curve = curve(("gates", 0), removed, all_outcomes, score, documents, Draws(documents))
    n_heads = int((~np.isnan(next(iter(gates.values())).gate)).sum())
    return JudgedGates(penalties=tuple(gates), curve=score_curve, n_heads=n_heads, places=read_indices)


def _checkpoint_and_gates(
    sweep: PenaltySweep, penalty: float, gates: TrainedGates
) -> tuple[str | None, Float[np.ndarray, "layer head"]]:
    """The checkpoint (None for the original one) and the gates to apply to it."""
    if sweep.settings.with_weights:
        return str(sweep.run_folder(penalty)), np.ones(gates.gate.shape)
    return None, np.nan_to_num(gates.gate, nan=1.0)


def _outcomes(
    material: Material, checkpoint: str | None, gates: Float[np.ndarray, "layer head"], texts: list[Text]
) -> tuple[tuple[int, ...], Float[np.ndarray, "text part"]] | None:
    """Positions of the texts that were read, and their outcomes."""
    visit = material.visit
    if checkpoint is not None:
        visit = replace(visit, engine=controls.other_engine(visit.choice, checkpoint))
    answers = ask(visit, gated_question("labels", gates[None]), texts)
    return None if answers is None else (answers.positions, np.stack([of_text[0] for of_text in answers.results]))
