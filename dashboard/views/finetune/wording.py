"""Sentences of the page Fine-tune."""

from typing import Final

from attention_sieve.core.finetuning.chance import ALPHA
from attention_sieve.core.finetuning.data import Task
from attention_sieve.core.finetuning.settings import (
    FEW_BATCH_SIZE,
    LEAST_HELD_OUT,
    LEAST_STEPS,
    MOST_HELD_OUT,
    WARM_UP,
    WEIGHT_DECAY,
)
from attention_sieve.core.running import Progress
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.views.training.wording import result, short

NUMBERS: Final = {
    "warm_up": percent(WARM_UP),
    "weight_decay": f"{WEIGHT_DECAY:g}",
    "level": percent(1 - ALPHA),
    "least_held_out": f"{LEAST_HELD_OUT} texts",
    "most_held_out": percent(MOST_HELD_OUT),
    "least_steps": str(LEAST_STEPS),
    "few_batch_size": str(FEW_BATCH_SIZE),
}
"""Numbers in `method.md`."""
SEE: Final = (
    "Train the model chosen in the sidebar on your labelled texts, on this machine, and see what its heads do before "
    "and after."
)
FORM: Final = "Data and settings"
NAME: Final = "Name of the new checkpoint"
NAME_HELP: Final = "Letters, digits, - _ and . only. Use this name wherever a checkpoint is chosen."
TRAINING_SETTINGS: Final = "Training settings"
SETTINGS: Final[dict[str, tuple[str, float]]] = {
    "epochs": ("Epochs", 0.5),
    "learning_rate": ("Learning rate", 1e-5),
    "batch_size": ("Batch size", 1),
    "max_length": ("Maximum length", 1),
    "held_out": ("Validation split", 0.05),
    "seed": ("Seed", 1),
    "save_steps": ("Save every … steps", 1),
}
"""Label and step of each number of TrainingSettings."""
SETTINGS_NOTE: Final = (
    "Epochs, batch size and validation split follow the number of texts until you choose them. The page Compare shows "
    "checkpoints that were saved on the way, in order."
)
OFF: Final = "off"
MADE_HERE: Final = "Fine-tuned here"
AT: Final = "Heads at step"
AT_HELP: Final = (
    "The roles of the heads over the texts of the sidebar: at 0 those of the checkpoint from which the run began, then "
    "at each step that it saved."
)


def start(checkpoint: str) -> str:
    return f"Start from {short(checkpoint)}"


def last_run(name: str, start: str, n_steps: int) -> str:
    """The run that ended last; names are escaped already."""
    return f"**{name}** was fine-tuned from {start} for {counted(n_steps, 'step')}."


def where(folder: str) -> str:
    return f"They are in {folder}."


def made(name: str, start: str, task: Task | None, data: str, n_texts: int | None) -> str:
    """One fine-tuned checkpoint and its training data; names are escaped already."""
    texts = "" if n_texts is None else f", {counted(n_texts, 'text')}"
    training = "" if task is None else f" with {data} ({'values' if task == 'regression' else 'classes'}{texts})"
    return f"**{name}**, from {start}{training}"


def made_state(progress: Progress, n_bytes: int) -> str:
    at_step = f"at step {progress.step:,} of {progress.steps:,}" if progress.steps else "before the first step"
    steps = {
        "running": "running: see above",  # where the step is up to date
        "finished": f"{counted(progress.step, 'step')}",
        "stopped": f"stopped {at_step}",
        "failed": f"failed {at_step}",
        "left": f"interrupted {at_step}",
    }[progress.state]
    figure, saved = result(progress), progress.saved
    steps_saved = f"{counted(len(saved), 'saved step')}" if saved else ""
    parts = (steps, figure, steps_saved, f"{n_bytes / 1e6:,.0f} MB")
    sentence = "; ".join(part for part in parts if part)
    return f"{sentence[0].upper()}{sentence[1:]}."
