"""The kinds of run, a value each: what such a run is in words, where pages keep it, on which page it is shown, and what
becomes of it when it is stopped.

They are a table of the dashboard, not of core, because a page, its address and its words are known here alone. What a
run is, its journal and how it goes on, is `attention_sieve.core.running`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.running import Progress

Parameters = Mapping[str, str]
"""Query parameters of a page."""
A_RESULTS_FOLDER: Final = "a results folder"
"""The choice of the sidebar's corpora that shows the results of a corpus."""


def _of_checkpoint(folder: Path, progress: Progress) -> Parameters:
    return {"checkpoint": progress.checkpoint} if progress.checkpoint else {}


def _of_nothing(folder: Path, progress: Progress) -> Parameters:
    return {}


@dataclass(frozen=True, kw_only=True)
class RunKind:
    """A kind of run."""

    title: str
    """What such a run is, in words."""
    page: str
    """Name of the page that shows it."""
    stop_help: str
    """What becomes of the work when it is stopped."""
    stopping: str = "Stopping …"
    """Said while it ends."""
    place: str = ""
    """Folder of the run that pages begin, or a pattern of such folders, in the program's folder."""
    parameters: Callable[[Path, Progress], Parameters] = _of_checkpoint
    """Query parameters of the page that shows the run in a folder, where nothing else says them."""
    resume: tuple[str, ...] = ()
    """What its command needs besides to go on."""
    is_training: bool = False
    """One training at a time is begun on this machine."""

    def folder(self) -> Path:
        """Folder of the one run of this kind that pages begin; it may not exist yet."""
        return program_folder() / self.place


SAVED: Final = "Ends after the current step and saves it."
SAVING: Final = "Stopping after the current step, which is saved ..."
KEPT: Final = "What was computed is kept, and Continue goes on from there."
KEEPING: Final = "Stopping; what was computed is kept ..."

KINDS: Final[Mapping[str, RunKind]] = {
    "finetune": RunKind(
        title="Fine-tuning",
        page="finetune",
        stop_help=SAVED,
        stopping=SAVING,
        place="checkpoints/*",
        resume=("--resume",),
        parameters=_of_nothing,
        is_training=True,
    ),
    "sample-checkpoint": RunKind(
        title="Fine-tuning on film reviews",
        page="finetune",
        stop_help=SAVED,
        stopping=SAVING,
        parameters=_of_nothing,
        is_training=True,
    ),
    "laboratory": RunKind(
        title="Training in the laboratory",
        page="laboratory",
        stop_help=SAVED,
        stopping=SAVING,
        parameters=lambda folder, _: {"model": folder.name},
        resume=("--resume",),
        is_training=True,
    ),
    "gates": RunKind(
        title="Gates",
        page="importance",
        stop_help="Ends after the current step and saves it; Resume continues from there and leads to exactly the same "
        "gates.",
        stopping=SAVING,
        place="gates/*",
        resume=("--resume",),
        is_training=True,
    ),
    "prune": RunKind(title="Pruning curves", page="importance", stop_help=KEPT, stopping=KEEPING),
    "curves": RunKind(
        title="How many heads can go?", page="importance", stop_help=KEPT, stopping=KEEPING, place="runs/curves-*"
    ),
    "step curves": RunKind(
        title="How many heads can go, over training",
        page="importance",
        stop_help=KEPT,
        stopping=KEEPING,
        place="runs/step curves-*",
    ),
    "tree-probes": RunKind(
        title="Probes for syntactic heads",
        page="grammar",
        stop_help="The probe is tested and shown as trained so far.",
        stopping="Stopping; the probe is tested as trained so far ...",
        place="runs/tree-probes-*",
        parameters=lambda folder, progress: {"grammar section": "Probes", **_of_checkpoint(folder, progress)},
    ),
    "trials": RunKind(
        title="Probing of tasks",
        page="knowledge",
        stop_help="The current step is lost. Earlier results are kept, and the run can be continued.",
        place="probing",
    ),
    "erase": RunKind(
        title="Erasure of what heads know",
        page="knowledge",
        stop_help="The current head is lost. Earlier ones are kept, and the same button goes on.",
        place="erasure run",
    ),
    "sample-tasks": RunKind(
        title="Making the sample tasks",
        page="knowledge",
        stop_help="Nothing is kept of it; the downloaded reviews stay on the disk.",
        place="sample tasks run",
    ),
    "corpus": RunKind(
        title="Corpus",
        page="roles",
        stop_help="The shards that are being scored are lost. The others are kept, and the same command continues.",
        parameters=lambda folder, _: {"corpus": A_RESULTS_FOLDER, "results": str(folder)},
    ),
}
"""By the name of the command that does it, or in the names of the folders of what this program does itself."""
