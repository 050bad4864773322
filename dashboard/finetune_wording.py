"""Every sentence of the page Fine-tune, once."""

from collections.abc import Mapping
from typing import Final

from core.training import Progress
from core.training_data import Task
from dashboard.figures.figure import counted

SEE: Final = (
    "Teach the checkpoint of the sidebar a task with labelled texts of your own, here on this machine, and compare "
    "what its heads do before and after."
)
FORM: Final = "Data and settings"
UPLOAD: Final = "Labelled texts"
UPLOAD_HELP: Final = (
    "A table with a header and one labelled text a row: .csv (commas, semicolons or tabs) or .tsv, also packed as "
    ".gz. One column holds the text, or two hold the segments of a pair; another holds the label."
)
STAYS_HERE: Final = "The file stays on this machine: a copy is kept beside the checkpoints. It is not part of the link."
WAIT: Final = "Upload a table of labelled texts to see what is in it."
TEXT_COLUMN: Final = "Column with the text"
SECOND_COLUMN: Final = "Column with the second segment"
LABEL_COLUMN: Final = "Column with the label"
NO_SECOND: Final = "none (single texts)"
PICK_COLUMNS: Final = "Pick the columns with the text and with the label."
TASK: Final = "Labels are"
TASKS: Final[dict[str, Task | None]] = {"as they look": None, "classes": "classes", "values": "regression"}
TASK_HELP: Final = (
    "Classes are named; the checkpoint learns to tell which. Values are numbers; it learns to predict them "
    "(regression). As they look: numbers that are not few and whole are values, all else are classes."
)
NAMED_CLASSES: Final = 8
BUTTON_CHARACTERS: Final = 24
"""Of a checkpoint's name."""
FIRST_ROWS: Final = "The first rows of the table"
SHOWN_TEXT: Final = "text"
SHOWN_SECOND: Final = "second segment"
SHOWN_LABEL: Final = "label"

NAME: Final = "Name of the new checkpoint"
NAME_HELP: Final = "Letters, digits, - _ and . only. Choose it by this name wherever a checkpoint is chosen."
SETTINGS: Final[dict[str, tuple[str, str, float]]] = {
    "epochs": ("Epochs", "How often every text is seen.", 0.5),
    "learning_rate": ("Learning rate", "Size of a step at its largest; 2e-5 to 1e-4 suits most checkpoints.", 1e-5),
    "batch_size": ("Texts a step", "The weights move once a step, by the mean over so many texts (batch size).", 1),
    "max_length": ("Tokens of a text", "Longer texts are cut. Short ones train faster.", 1),
    "held_out": ("Share held out", "Texts that are not learned from, to measure on.", 0.05),
    "seed": ("Seed", "Of the new head, of the order of texts, and of which are held out.", 1),
    "save_steps": (
        "Steps between saves",
        "Empty: only the end is saved. With a number, a checkpoint is kept every so many steps, and the page Compare "
        "goes through them in order. Each takes as much disk as the checkpoint itself.",
        1,
    ),
}
"""Label, help and step of each number of TrainingSettings."""
OFF: Final = "off"

STOP: Final = "Stop"
STOP_HELP: Final = "Ends after the present step and saves it."
STOPPING: Final = "Stopping after the present step, which is saved ..."
CLOSE: Final = "Close"
LOOKING: Final = "Getting ready ..."
"""Before the program of a run has said what it does."""

CURVE: Final = "Loss and held-out accuracy over training steps, so far; the latest figures stand above."

MADE_HERE: Final = "Fine-tuned here"
NONE_YET: Final = "None yet. Upload labelled texts and press Start."

HOW: Final = "How it is computed"
METHOD: Final = r"""
A new head on the checkpoint's summary of the text gives a number for each class, or the one value. All weights, those
of the head and of the checkpoint, then move against the gradient of the **loss** on a few texts at a time: for classes
the mean of $-\log p$, with $p$ the probability given to the right class (nats); for values the mean squared error. The
learning rate rises over the first tenth of the steps and then falls to 0 (AdamW, weight decay 0.01).

Texts **held out** are never learned from. The lower curve shows the share of them that is classified rightly
(accuracy), or Pearson's correlation with the labels. With few texts held out it moves by chance: with $n$ of them, an
accuracy $a$ has a standard error of $\sqrt{a(1-a)/n}$.

The result is an ordinary checkpoint: safetensors weights, configuration with the names of the classes, tokenizer. All
settings, and the SHA-256 of the data, lie beside it in `training.json`.

Source: Devlin et al., *BERT*, NAACL 2019, section 3.2; Loshchilov and Hutter, *Decoupled Weight Decay Regularization*,
ICLR 2019.
"""


def one_at_a_time(name: str) -> str:
    """A run is on."""
    return f"{name} is being fine-tuned now, and one checkpoint is made at a time. Start when it has ended, or stop it."


def bad_name(name: str, longest: int) -> str:
    """A name that is no folder's."""
    if not name:
        return "The new checkpoint has no name. Give it one."
    if len(name) > longest:
        return f"The name has {len(name)} characters and at most {longest} are allowed. Shorten it."
    return (
        f'"{name}" cannot be a checkpoint\'s name. Use letters, digits, - _ and . only, and begin with a letter, a '
        "digit or _."
    )


def name_taken(name: str, folder: str) -> str:
    """There is a checkpoint of this name."""
    return f"There is already a checkpoint {name} in {folder}. Choose another name."


def not_written(folder: str, reason: str) -> str:
    """The data cannot be kept."""
    return f"The data cannot be written to {folder} ({reason}). Make room there, or set ATTENTION_SIEVE_CACHE."


def not_started(reason: str) -> str:
    """The program of a run cannot be started."""
    return f"The program that fine-tunes cannot be started ({reason}). Close other programs and try again."


def ended_badly(code: int, last: str) -> str:
    """The program of a run ended with an error that is no sentence."""
    said = f' Its last words: "{last}".' if last else ""
    return f"The program that fine-tunes ended with exit status {code}.{said}"


def comma_in_column(name: str) -> str:
    """A column whose name would be read as two."""
    return f'The column "{name}" has a comma in its name. Rename it in the file, or pick another.'


def data_summary(n_texts: int, are_pairs: bool, labels: str) -> str:
    """What a table holds."""
    noun = "pair of segments" if are_pairs else "text"
    texts = f"{n_texts:,} pairs of segments" if are_pairs and n_texts != 1 else counted(n_texts, noun)
    return f"**{texts}**, {labels}."


def classes(counts: Mapping[str, int]) -> str:
    """Classes with how many texts each has; the most frequent first, the first few by name."""
    ordered = sorted(counts.items(), key=lambda each: -each[1])
    named = ", ".join(f"{name} ({number:,})" for name, number in ordered[:NAMED_CLASSES])
    more = f" and {len(ordered) - NAMED_CLASSES:,} more" if len(ordered) > NAMED_CLASSES else ""
    return f"{len(counts):,} classes: {named}{more}"


def values(lowest: float, highest: float, mean: float) -> str:
    """Range of the values of a regression."""
    return f"values from {lowest:g} to {highest:g}, mean {mean:.3g}"


def head(name: str, start: str) -> str:
    """Which run is shown."""
    return f"**{name}**" + (f", fine-tuned from {start}" if start else "")


def running(progress: Progress) -> str:
    """How far a run is."""
    if not progress.steps:
        return progress.message or LOOKING
    left = "" if progress.seconds_left is None else f", {_time(progress.seconds_left)} left"
    return f"Step {progress.step:,} of {progress.steps:,}{left}"


def measured(progress: Progress) -> str:
    """The latest figures of a run."""
    parts = []
    if progress.losses:
        parts.append(f"Loss {progress.losses[-1][1]:.3f} at step {progress.losses[-1][0]:,}")
    if progress.held_out:
        parts.append(f"{held_out(progress)} at step {progress.held_out[-1].step:,}")
    return "; ".join(parts) + "." if parts else ""


def held_out(progress: Progress) -> str:
    """The last figure on texts held out; empty where nothing was measured."""
    if not progress.held_out:
        return ""
    last = progress.held_out[-1]
    if last.accuracy is not None:
        return f"held-out accuracy {last.accuracy:.3f}"
    if last.correlation is not None:
        return f"held-out correlation {last.correlation:.3f}"
    return f"held-out loss {last.loss:.3f}"


def finished(progress: Progress, folder: str) -> str:
    """A run has done all its steps."""
    figure = held_out(progress)
    return f"Finished after {counted(progress.step, 'step')}{f': {figure}' if figure else ''}. It lies in {folder}."


def stopped(progress: Progress) -> str:
    """A run was stopped."""
    return f"Stopped at step {progress.step:,} of {progress.steps:,}. {_kept(progress)}"


def left(progress: Progress) -> str:
    """The program of a run has gone without a word."""
    where = f" at step {progress.step:,} of {progress.steps:,}" if progress.steps else ""
    return f"The program that fine-tuned it has gone{where}. {_kept(progress)}"


def _kept(progress: Progress) -> str:
    if not progress.saved:
        return "No step was saved; Resume begins anew."
    return f"Step {progress.saved[-1]:,} is saved; Resume goes on from it."


def _time(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"


def compare_with(start: str) -> str:
    """The link to the page Compare."""
    return f"Compare with {_short(start)}"


def _short(checkpoint: str) -> str:
    """The last part of a path or a hub id, as far as a button has room for it."""
    last = checkpoint.rstrip("/").rsplit("/", 1)[-1]
    return last if len(last) <= BUTTON_CHARACTERS else f"{last[: BUTTON_CHARACTERS - 1]}…"


def start(checkpoint: str) -> str:
    """The button that begins a run."""
    return f"Start from {_short(checkpoint)}"


def resume(name: str) -> str:
    """The button that goes on with a run."""
    return f"Resume {name}"


def where(folder: str) -> str:
    """Where fine-tuned checkpoints lie."""
    return f"They lie in {folder}; remove a folder there to delete its checkpoint."


def made(name: str, start: str, task: Task | None, data: str, n_texts: int | None) -> str:
    """One fine-tuned checkpoint and what it learned from; names come as they are to be shown."""
    texts = "" if n_texts is None else f", {counted(n_texts, 'text')}"
    learned = "" if task is None else f" with {data} ({'values' if task == 'regression' else 'classes'}{texts})"
    return f"**{name}**, from {start}{learned}"


def made_state(progress: Progress, n_bytes: int) -> str:
    """How far it got, how well it does, and what it takes."""
    where = f"at step {progress.step:,} of {progress.steps:,}" if progress.steps else "before the first step"
    steps = {
        "running": f"running, {where}",
        "finished": f"{counted(progress.step, 'step')}",
        "stopped": f"stopped {where}",
        "failed": f"failed {where}",
        "left": f"broken off {where}",
    }[progress.state]
    figure, saved = held_out(progress), progress.saved
    kept = f"{counted(len(saved), 'saved step')}" if saved else ""
    parts = (steps, figure, kept, f"{n_bytes / 1e6:,.0f} MB")
    said = "; ".join(part for part in parts if part)
    return f"{said[0].upper()}{said[1:]}."
