"""The held-out movie snippets under the sample checkpoint; answers are cached in the store, so that an interrupted run
continues."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.answering import Item, Question, Result
from attention_sieve.core.attention.settings import Head, PassSettings
from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.checkpoints.folders import checkpoints_folder, program_folder
from attention_sieve.core.finetuning.command import sample_checkpoint
from attention_sieve.core.finetuning.data import TrainingData, read_training_data
from attention_sieve.core.finetuning.journal import open_run, plan_of
from attention_sieve.core.finetuning.movie_reviews import COLUMNS, movie_reviews
from attention_sieve.core.importance.effects import halves
from attention_sieve.core.importance.gates.settings import GateSettings, TrainedGates
from attention_sieve.core.importance.labels import class_indices
from attention_sieve.core.importance.measures import (
    Measure,
    attributions,
    confidence,
    damage,
    gradient_measures,
    output_measures,
    relevance,
)
from attention_sieve.core.importance.metrics import Score, TextOutcomes, label_score
from attention_sieve.core.importance.per_text import LabelledText, OutputWeights
from attention_sieve.core.importance.pruning.curves import gatings, removal_order
from attention_sieve.core.importance.question import (
    HEAD_OUTPUTS,
    ablation_question,
    gated_question,
    relevance_question,
    slopes_question,
)
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.running import read_progress, saved_checkpoints
from attention_sieve.core.surface.analysis import surface_question
from attention_sieve.core.surface.per_text import USUAL_ROWS
from attention_sieve.core.texts.text import Text

STEPS: Final = (0.1, 0.25, 0.5, 0.75)
"""Shares of heads removed along a curve, between none and all."""
FEW: Final = 30
"""Texts of each half on which the greedy order, which takes a sweep per step, and the single heads to keep are
determined."""
GATE_EPOCHS: Final = 2.0
Order = tuple[str, int]
"""Name and number of a draw."""
Importance = Float[np.ndarray, "layer head"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reviews:
    """Labelled snippets and a checkpoint's results for them."""

    inference: Inference
    engine: Engine
    training: TrainingData
    """With which the checkpoint was fine-tuned."""
    texts: tuple[Text, ...]
    """Held out."""
    labels: Float[np.ndarray, " text"]
    shape: tuple[int, int]
    """Numbers of layers and heads."""

    @property
    def n_heads(self) -> int:
        """Of all layers."""
        return self.shape[0] * self.shape[1]

    @property
    def counts(self) -> Int[np.ndarray, " step"]:
        """Heads removed at each step of a curve, from none to all."""
        return np.array([0, *(round(share * self.n_heads) for share in STEPS), self.n_heads])

    @property
    def half(self) -> Int[np.ndarray, " text"]:
        """Half of each text, 0 or 1."""
        return halves([None] * len(self.texts))

    def score(self, name: str, places: Sequence[int] | None = None) -> Score:
        """Accuracy or loss of some of the texts, or of all."""
        labels = self.labels if places is None else self.labels[list(places)]
        return label_score("loss" if name == "loss" else "accuracy", labels, 2)

    def asked(
        self, question: Question[Item, Result], places: Sequence[int] | None = None, off: Sequence[Head] = ()
    ) -> list[Result]:
        """A question's results for some of the texts, or for all."""
        places = range(len(self.texts)) if places is None else places
        takes_labels = question.name.startswith("importance, slopes")
        items = [
            LabelledText(self.texts[place], float(self.labels[place])) if takes_labels else self.texts[place]
            for place in places
        ]
        return list(self.inference.ask(self.engine, question, items, PassSettings(off=tuple(sorted(off)))).results)


def read_reviews(n_texts: int | None) -> Reviews:
    """The sample checkpoint, which is created if it does not exist, and its held-out snippets: the first of them, or
    all."""
    progress = read_progress(checkpoints_folder() / SAMPLE_FINE_TUNING)
    if progress is None or progress.state != "finished":
        sample_checkpoint(argparse.Namespace(device="cpu"))
    paths = movie_reviews(program_folder() / "downloads")
    training, held_out = (read_training_data(path.name, path.read_bytes(), COLUMNS[:1], COLUMNS[1]) for path in paths)
    inference, engine = Inference(Store()), Engine(find_checkpoint(SAMPLE_FINE_TUNING), "cpu")
    checkpoint = inference.checkpoint(engine)
    indices = class_indices(SAMPLE_FINE_TUNING, checkpoint.full_model.config.id2label, held_out)
    attention = checkpoint.attentions["self"]
    return Reviews(
        inference=inference,
        engine=engine,
        training=training,
        texts=held_out.texts[:n_texts],
        labels=np.array([indices[int(label)] for label in held_out.labels], float)[:n_texts],
        shape=(attention.n_layers, attention.n_heads),
    )


def ablated(reviews: Reviews, places: Sequence[int] | None = None, off: Sequence[Head] = ()) -> list[TextOutcomes]:
    """Outcomes of each text with each head ablated in turn."""
    return reviews.asked(ablation_question("labels"), places, off)


def cheap_measures(reviews: Reviews, places: Sequence[int] | None = None) -> list[Measure]:
    """Every measure except ablation."""
    from attention_sieve.core.importance.passes.head_outputs import output_projections

    slopes = reviews.asked(slopes_question("labels"), places)
    outputs = reviews.asked(HEAD_OUTPUTS, places)
    surfaces = reviews.asked(surface_question(USUAL_ROWS), places)
    checkpoint = reviews.inference.checkpoint(reviews.engine)
    shortest = prepare(checkpoint, min(reviews.texts, key=lambda text: len(text.segments[0])), PassSettings())
    return [
        *gradient_measures(slopes),
        *attributions(slopes, outputs),
        *output_measures(outputs, OutputWeights.of(output_projections(checkpoint, shortest))),
        confidence(np.stack([of_text.confidence for of_text in surfaces])),
        relevance(reviews.asked(relevance_question("labels"), places)),
    ]


def importances(reviews: Reviews, places: Sequence[int], n_random: int) -> dict[Order, Importance]:
    """The importance by which each order of removal sorts the heads, measured on some of the texts."""
    n_texts, outcomes = len(places), ablated(reviews, places)
    loss, accuracy = (damage(outcomes, reviews.score(name, places)).values(n_texts) for name in ("loss", "accuracy"))
    found: dict[Order, Importance] = {("ablation, by loss", 0): loss}
    found |= {("random", draw): np.random.default_rng(draw).random(reviews.shape) for draw in range(n_random)}
    found |= {(measure.name, 0): measure.values(n_texts) for measure in cheap_measures(reviews, places)}
    return found | {("ablation, by accuracy", 0): accuracy, ("reverse of ablation", 0): -loss}


def of_few_texts(reviews: Reviews, places: Sequence[int]) -> dict[Order, Importance]:
    """The greedy order, determined on a few of the texts, and that of ablation on the same texts."""
    few = places[:FEW]
    once = damage(ablated(reviews, few), reviews.score("loss", few)).values(len(few))
    return {
        (f"greedy, by loss of {len(few)} snippets", 0): greedy(reviews, few, once),
        (f"ablation, by loss of {len(few)} snippets", 0): once,
    }


def greedy(reviews: Reviews, places: Sequence[int], importance: Importance) -> Importance:
    """Importance by the step at which a head is removed, with ablations repeated at each step of a curve."""
    rank = np.full(reviews.shape, np.inf)
    for start, stop in zip(reviews.counts[:-1].tolist(), reviews.counts[1:].tolist()):
        gone = [(int(layer), int(head)) for layer, head in np.argwhere(np.isfinite(rank))]
        if start:
            outcomes = ablated(reviews, places, gone)
            importance = damage(outcomes, reviews.score("loss", places)).values(len(places))
        order = [head for head in removal_order(importance).tolist() if tuple(head) not in gone]
        for place, (layer, head) in enumerate(order[: stop - start]):
            rank[layer, head] = start + place
    return rank


def curve_outcomes(
    reviews: Reviews, orders: tuple[Importance, Importance], full: Float[np.ndarray, "text part"]
) -> Float[np.ndarray, "text step part"]:
    """Outcomes of each text at each step of a curve, by the order of the half that it is not in.

    Args:
        reviews: the texts.
        orders: importance that gives each half's order.
        full: outcomes with all heads on, which is the first step.
    """
    counts = reviews.counts
    none = np.stack(reviews.asked(gated_question("labels", np.zeros((1, *reviews.shape)))))
    outcomes = np.zeros((len(full), len(counts), full.shape[1]))
    outcomes[:, 0], outcomes[:, -1] = full, none[:, 0]
    for side, importance in enumerate(orders):
        places = np.flatnonzero(reviews.half != side)
        gates = gatings(removal_order(importance), counts[1:-1], *reviews.shape)
        outcomes[places, 1:-1] = np.stack(reviews.asked(gated_question("labels", gates), places.tolist()))
    return outcomes


def alone_by_half(reviews: Reviews) -> Int[np.ndarray, "half layer"]:
    """The best single head of each layer, by the loss of a few texts of each half."""
    best = []
    for side in (0, 1):
        few = np.flatnonzero(reviews.half == side)[:FEW].tolist()
        outcomes = np.stack(
            [of_text.without for of_text in reviews.asked(ablation_question("labels", alone=True), few)]
        )
        best.append(reviews.score("loss", few).of(outcomes).argmin(axis=-1))
    return np.stack(best)


def judged_alone(reviews: Reviews, best: Int[np.ndarray, "half layer"]) -> Float[np.ndarray, "text layer part"]:
    """Outcomes of each text with one head alone in each layer in turn, the one that the other half has chosen."""
    found: dict[int, np.ndarray] = {}
    for side in (0, 1):
        gates = np.ones((reviews.shape[0], *reviews.shape))
        for layer, head in enumerate(best[1 - side]):
            gates[layer, layer] = 0
            gates[layer, layer, head] = 1
        places = np.flatnonzero(reviews.half == side).tolist()
        found |= dict(zip(places, reviews.asked(gated_question("labels", gates), places), strict=True))
    return np.stack([found[place] for place in range(len(reviews.texts))])


def trained(reviews: Reviews, penalty: float) -> TrainedGates:
    """Gates trained on the training snippets with the weights as they are; kept in the program's folder."""
    from attention_sieve.core.importance.gates.training import train_gates, trained_gates

    folder = program_folder() / f"{SAMPLE_FINE_TUNING}-gates" / f"penalty-{penalty:g}"
    settings = GateSettings(penalty=penalty, epochs=GATE_EPOCHS, save_steps=50)
    files, progress = reviews.engine.files, read_progress(folder)
    if progress is None or progress.state != "finished":
        plan = plan_of(files, reviews.training, None, settings)
        with open_run(folder, plan, resume=progress is not None) as journal:
            train_gates(files, reviews.training, settings, journal, device="cpu")
    return trained_gates(_last(folder))


def _last(folder: Path) -> Path:
    return saved_checkpoints(folder)[-1]
