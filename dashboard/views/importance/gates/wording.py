"""Sentences of the tab on gates."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.importance.gates.settings import GateSettings
from attention_sieve.core.running import Progress
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.views.importance.wording import interval
from attention_sieve.dashboard.wording import duration

TITLE: Final = "Train gates"
SEE: Final = (
    "Training can choose the heads, too. Each head gets a **gate**, a factor from 0 to 1 on its output, and each gate "
    "that is open costs a **penalty**. Gates close where the labels are predicted almost as well without the head. A "
    "larger penalty closes more."
)
NEEDS_LABELS: Final = (
    "Gates are trained for a task. Choose **labelled texts** above, upload a table, and choose a checkpoint that "
    "was fine-tuned to predict such labels. The page Fine-tune makes one."
)
FORM: Final = "Train gates with other settings"
PENALTIES: Final = "Penalties"
PENALTIES_HELP: Final = (
    "The weight of the expected number of open gates in the loss, lambda in the paper. Several numbers give several "
    "runs, one after the other. The more heads a penalty closes, the further to the right its point lies in the "
    "chart."
)
DEFAULT_PENALTIES: Final = (0.01, 0.02, 0.05)
MOST_PENALTIES: Final = 12
WITH_WEIGHTS: Final = "Train the weights, too"
WITH_WEIGHTS_HELP: Final = (
    "As in the paper: the rest of the model can make up for heads that go. If this is off, the weights stay as they "
    "are, which is faster and shows which heads of this very checkpoint are needed."
)
SETTINGS: Final[dict[str, tuple[str, float]]] = {
    "epochs": ("Epochs", 1.0),
    "gate_rate": ("Learning rate of the gates", 0.01),
    "batch_size": ("Batch size", 1),
    "max_length": ("Maximum length", 1),
    "held_out": ("Validation split", 0.05),
    "seed": ("Seed", 1),
    "learning_rate": ("Learning rate of the weights", 1e-5),
}
"""Label and step of each number."""
DEFAULTS: Final = GateSettings(epochs=10.0, held_out=0.5)

PREPARING: Final = "Preparing ..."
RESUME: Final = "Resume"
DELETE: Final = "Delete …"
DELETE_NOW: Final = "Delete"
ONE_AT_A_TIME: Final = "Gates are being trained now, and only one such run is possible at a time. Wait, or stop it."
NOTHING_YET: Final = "No gates of this checkpoint have been trained on this table yet."
WHICH: Final = "Settings"

P_OPEN: Final = "probability that the gate is open"
P_ZERO: Final = "exactly 0 with probability"
P_ONE: Final = "exactly 1 with probability"
GATE: Final = "gate without noise"
CLOSED: Final = "closed"
OPEN: Final = "open"
MARK: Final = "closed after training: the gate without noise is 0"
PENALTY: Final = "Penalty"
STEP: Final = "Training step"
STEP_HELP: Final = "0 is before training, when all gates are open with the same probability."
NO_HEADS: Final = "Click cells to see how the gates of their heads are distributed."
TABLE: Final = "All gates in a table"
SCORES_TABLE: Final = "Scores by penalty"
VOITA_6: Final = "Corresponds to Figure 6 of Voita et al. (2019)."
VOITA_7: Final = "Corresponds to Figure 7 of Voita et al. (2019)."


def start(n_runs: int) -> str:
    return f"Train gates ({counted(n_runs, 'run')})"


def no_penalties(written: str) -> str:
    return f'"{written}" names no penalties. Write numbers from 0 to 100 with commas between, such as 0.01, 0.02.'


def too_many(number: int) -> str:
    return f"These are {number} penalties, and at most {MOST_PENALTIES} are trained at once. Leave some out."


def finetuning_is_on(name: str) -> str:
    return f"{name} is being trained now. Train gates when it has ended, or stop it on the page Fine-tune."


def not_written(folder: str, reason: str) -> str:
    return f"Nothing can be written to {folder} ({reason}). Make room there, or set ATTENTION_SIEVE_CACHE."


def not_deleted(folder: str, reason: str) -> str:
    return f"{folder} cannot be deleted ({reason}). Remove the folder by hand."


def head(checkpoint: str, data: str) -> str:
    """Which sweep is shown; the names must already be escaped for display."""
    return f"**Gates of {checkpoint}**, trained on {data}"


def running(penalty: float, number: int, n_runs: int, progress: Progress | None) -> str:
    prefix = f"Penalty {penalty:g} ({number} of {n_runs}): "
    if progress is None or not progress.steps:
        message = "" if progress is None else progress.message
        return prefix + (message or PREPARING)
    remaining = "" if progress.seconds_left is None else f", {duration(progress.seconds_left)} left of this run"
    return f"{prefix}step {progress.step:,} of {progress.steps:,}{remaining}"


def ended(state: str, n_finished: int, n_runs: int, progress: Progress | None) -> str:
    finished = f"{n_finished} of {counted(n_runs, 'run')} finished."
    reason = "was stopped" if state == "stopped" else "ended unexpectedly"
    if progress is None or not progress.steps:
        return f"Training {reason}. {finished} Resume continues with the others."
    saved_step = (
        f"Step {progress.saved[-1]:,} is saved; Resume continues from it."
        if progress.saved
        else "No step of this run was saved; Resume starts it again."
    )
    return f"Training {reason} at step {progress.step:,} of {progress.steps:,}. {finished} {saved_step}"


def settings(gates: GateSettings, penalties: Sequence[float]) -> str:
    trained = "gates and weights" if gates.with_weights else "gates alone"
    penalty_list = ", ".join(f"{penalty:g}" for penalty in penalties)
    return (
        f"{trained}, {gates.epochs:g} epochs, rate {gates.gate_rate:g}, {percent(gates.held_out)} held out, "
        f"seed {gates.seed}: {penalty_list}"
    )


def found(metric: str, penalty: float, n_open: int, n_heads: int, numbers: tuple[float, ...]) -> str:
    """Result of the run that closes the most heads.

    Args:
        n_open: heads whose gate is above 0.
        numbers: score with all heads on and with the gates, and the 95% interval of the change.
    """
    full, score, low, high = numbers
    return (
        f"Penalty {penalty:g} leaves **{n_open} of {counted(n_heads, 'head')}** open. With these gates the {metric} is "
        f"{score:.3g}, with all heads on {full:.3g}{interval(low, high, '+.2g', ' of the change')}."
    )


def over(n_texts: int, with_weights: bool) -> str:
    note = " The weights were trained along with the gates." if with_weights else ""
    return f"Scores are of {counted(n_texts, 'text')} that no gate was trained on.{note}"


BESIDE: Final = "Beside an order of pruning"
BESIDE_HELP: Final = (
    "What is left of the score on the same texts if heads are switched off in this order instead. No text is judged "
    "by an order that it helped to find."
)
NO_CURVES: Final = (
    "Once the curves in the tab *How many heads can go?* have been drawn, they appear here beside the gates."
)


def about_to_delete(n_runs: int, n_bytes: int) -> str:
    return f"Delete {counted(n_runs, 'run')} with their saved steps ({n_bytes / 1e6:,.0f} MB)? This cannot be undone."


def disk(n_bytes: int, folder: str) -> str:
    return (
        f"Each finished run is a checkpoint with its gates in its weights, which every command takes: a folder "
        f"penalty-… in {folder} ({n_bytes / 1e6:,.0f} MB together)."
    )
