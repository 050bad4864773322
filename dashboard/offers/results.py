"""Results folders offered as a corpus: those of the command line, and recently made or opened ones.

`streamlit run dashboard/server.py -- --results FOLDER` names one, which a first visit then shows. The environment
variable `ATTENTION_SIEVE_RESULTS` offers some, several separated as in PATH. On a public server only these are offered;
folders named by a visitor are never opened.
"""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attention_sieve.core.checkpoints.find import NETWORK_SHARE
from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard.public import is_public

if TYPE_CHECKING:
    from attention_sieve.core.corpus.results import Results

RESULTS: Final = "ATTENTION_SIEVE_RESULTS"
OPTION: Final = "--results"


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


def open_results(name: str) -> "Results":
    """Open an offered folder, or on a private server any folder.

    Raises: AnalysisError for a folder that is missing or has no results, a name that several folders have, and on a
        public server a folder that is not offered.
    """
    from attention_sieve.core.corpus.results import open_results, remember_results

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
    results = open_results(folder)
    if not is_public() and results.folder.resolve() not in folders.values():
        remember_results(results.folder)
    return results
