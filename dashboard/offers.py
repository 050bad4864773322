"""Checkpoints, hub downloads and results folders that this server offers: all, or on a public server those that its
owner names.

`streamlit run dashboard/server.py -- --results FOLDER` names a results folder, which a first visit then shows. The
environment variable `ATTENTION_SIEVE_RESULTS` names some, several separated as in PATH. Folders that were made or
opened lately are offered beside them, but not on a public server, where folders named by a visitor are never opened.
Checkpoints of the hub are downloaded only after the reader confirms, as a link may name any of them.
"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import streamlit as st

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.examples import (
    EXAMPLES,
    SAMPLE_DECODER,
    SAMPLE_FINE_TUNING,
    has_sample_decoder,
)
from attention_sieve.core.checkpoints.find import BUNDLED, NETWORK_SHARE, find_checkpoint
from attention_sieve.core.checkpoints.folders import CONFIGS, checkpoints_folder, holds_checkpoint
from attention_sieve.core.checkpoints.hub import bytes_to_fetch, has_copy, is_offline
from attention_sieve.core.checkpoints.saved_runs import SavedRun, list_runs, run_and_step
from attention_sieve.core.errors import AnalysisError, CheckpointError, FetchNeeded
from attention_sieve.core.running import read_progress
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.public import CHECKPOINTS, OWN_EXAMPLES, is_public

if TYPE_CHECKING:
    from attention_sieve.core.corpus.results import Results

DEPTH: Final = 2
"""Maximum depth of a checkpoint below a named folder: a run and its saved steps."""
RESULTS: Final = "ATTENTION_SIEVE_RESULTS"
"""Variable that names results folders."""
OPTION: Final = "--results"
"""Option of the server that names one."""
_CONFIRMED: Final = "hub ids to fetch"
_IS_SILENT: Final = "hub does not answer"


def checkpoint_names() -> tuple[str, ...]:
    return tuple(_offered_sources())


def has_decoder() -> bool:
    """Whether the small decoder is on this machine, or on a public server among what it offers."""
    return SAMPLE_DECODER in checkpoint_names() if is_public() else has_sample_decoder()


def offered_checkpoint(name: str) -> CheckpointFiles:
    """One of the offered checkpoints under its public name; visitors do not see the path of its files.

    Raises: CheckpointError for any other name.
    """
    source = _offered_sources().get(name)
    if source is None:
        raise CheckpointError(
            f"This server offers these checkpoints: {', '.join(checkpoint_names())}. Choose one of them."
        )
    try:
        files = find_checkpoint(source)
        base = files.base and replace(files.base, name=Path(files.base.name).name)
        return replace(files, name=name, base=base)
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(source, name)) from None


def runs_here(checkpoint: str = "") -> tuple[SavedRun, ...]:
    """Fine-tuning runs of this machine, and the run of the laboratory that a checkpoint is a step of; none on a public
    server, where others would see their names."""
    own, _ = run_and_step(checkpoint)
    return () if is_public() else tuple(run for run in list_runs() if run.is_fine_tuning or run.name == own)


def laboratory_runs() -> tuple[SavedRun, ...]:
    """Runs of the laboratory with a saved step: those of this machine, or on a public server those that it offers."""
    return tuple(run for run in _trainings() if not run.is_fine_tuning and run.progress.saved)


def fine_tuned_from(checkpoint: str) -> str | None:
    """Name of a checkpoint that was fine-tuned from another one, to the end: the sample one if it is there."""
    runs = (run for run in _trainings() if run.is_fine_tuning and run.progress.checkpoint == checkpoint)
    names = [run.name for run in runs if run.progress.state == "finished"]
    return SAMPLE_FINE_TUNING if SAMPLE_FINE_TUNING in names else next(iter(names), None)


def _trainings() -> tuple[SavedRun, ...]:
    """Runs of training of this machine, or on a public server those that it offers."""
    if not is_public():
        return list_runs()
    folders = ((name, Path(folder)) for name, folder in _offered_sources().items())
    read = ((name, folder, read_progress(folder)) for name, folder in folders)
    return tuple(SavedRun(name, folder, progress) for name, folder, progress in read if progress is not None)


def _offered_sources() -> MappingProxyType[str, str]:
    """Folder or hub id of each checkpoint that a public server offers, by public name."""
    made = tuple(str(folder) for name in EXAMPLES if holds_checkpoint(folder := checkpoints_folder() / name))
    return _checkpoint_sources(os.environ.get(CHECKPOINTS) or BUNDLED, made)


@lru_cache(maxsize=4)
def _checkpoint_sources(setting: str, examples: tuple[str, ...]) -> MappingProxyType[str, str]:
    """The same for a setting, and the folders of the examples that are finished."""
    sources = {
        name: source
        for entry in setting.split(os.pathsep)
        if entry.strip()
        for place in (examples if entry.strip() == OWN_EXAMPLES else (entry.strip(),))
        for name, source in _checkpoints_of(place)
    }
    return MappingProxyType(sources)


def _checkpoints_of(entry: str) -> Iterator[tuple[str, str]]:
    folder = Path(os.path.expanduser(entry))
    if entry == BUNDLED or not folder.is_dir():
        yield entry, entry  # a hub id
        return
    folder = folder.resolve()
    for depth in range(DEPTH + 1):
        patterns = ["/".join((*["*"] * depth, config)) for config in CONFIGS]
        for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
            # A link could lead out of the folder that the owner named.
            if path.parent.resolve().is_relative_to(folder):
                yield str(path.parent.relative_to(folder.parent)), str(path.parent)


def check_confirmed(name: str) -> None:
    """Raise unless a hub id is on this machine, or the reader has confirmed its download in this session.

    Raises: FetchNeeded for any other; CheckpointError if the hub reports an error.
    """
    if name not in st.session_state.get(_CONFIRMED, ()) and (n_bytes := _bytes_to_fetch(name)):
        raise FetchNeeded(name, n_bytes)


def note_silence() -> None:
    """Remember that the hub does not respond."""
    st.session_state[_IS_SILENT] = True


def out_of_reach(names: Sequence[str]) -> tuple[str, list[str]] | None:
    """Hub ids that can neither be downloaded nor read from a local copy, and why. Makes no request to the hub.

    Returns: the reason and the ids; None if all may be available.
    """
    reason = wording.OFFLINE if is_offline() else wording.NO_ANSWER if st.session_state.get(_IS_SILENT) else None
    missing = [name for name in names if not has_copy(name)] if reason else []
    return (reason, missing) if reason and missing else None


def ask_to_fetch(error: FetchNeeded) -> None:
    """Draw the button that confirms a download."""
    st.button(
        wording.FETCH, key=f"fetch {error.name}", icon=":material/download:", on_click=_confirm, args=(error.name,)
    )


def _confirm(name: str) -> None:
    st.session_state[_CONFIRMED] = {*st.session_state.get(_CONFIRMED, ()), name}


@st.cache_resource(ttl=60, max_entries=64, show_spinner=False)
def _bytes_to_fetch(name: str) -> int:
    """Ask the hub at most once a minute, not on every click."""
    return bytes_to_fetch(name)


def results_on_command_line() -> list[Path]:
    """The folders that the server was started with."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(OPTION, dest="folders", action="append", default=[], nargs="?")
    return [_folder(entry) for entry in parser.parse_known_args(sys.argv[1:])[0].folders if entry]


def named_results() -> list[Path]:
    """The folders that the owner of the server named, those of the command line first."""
    from_environment = [entry for entry in (os.environ.get(RESULTS) or "").split(os.pathsep) if entry.strip()]
    return [*results_on_command_line(), *map(_folder, from_environment)]


def _folder(entry: str) -> Path:
    return Path(os.path.expanduser(entry)).resolve()


def offered_results() -> dict[str, Path]:
    """Folders by displayed name: the folder name, or the whole path if two have the same name."""
    from attention_sieve.core.corpus.results import recent_results  # imports pandas, which would delay a first visit

    folders = list(dict.fromkeys([*named_results(), *([] if is_public() else recent_results())]))
    names = [folder.name for folder in folders]
    if is_public():
        return {folder.name: folder for folder in reversed(folders)}
    return {folder.name if names.count(folder.name) == 1 else str(folder): folder for folder in folders}


def results_folder(name: str) -> Path:
    """An offered results folder, or on a private server any folder.

    Raises: AnalysisError for a folder that is missing, a name that several folders have, and on a public server a
        folder that is not offered.
    """
    folders = offered_results()
    if name not in folders and (is_public() or NETWORK_SHARE.match(name)):
        raise AnalysisError(f"These results folders are offered: {', '.join(folders) or 'none'}. Choose one of them.")
    folder = folders.get(name) or Path(os.path.expanduser(name))
    if name not in folders:
        if namesakes := [str(offer) for offer in folders.values() if offer.name == name]:
            raise AnalysisError(
                f"{len(namesakes)} results folders are named {name}: {', '.join(namesakes)}. Choose one."
            )
        if not folder.is_dir():
            raise AnalysisError(f"There is no results folder {name} here. Choose another one, or type its path.")
    return folder


def open_offered_results(name: str) -> "Results":
    """Open such a folder.

    Raises: AnalysisError as `results_folder`, and for a folder without results.
    """
    from attention_sieve.core.corpus.results import open_results, remember_results

    results = open_results(results_folder(name))
    if not is_public() and results.folder.resolve() not in offered_results().values():
        remember_results(results.folder)
    return results
