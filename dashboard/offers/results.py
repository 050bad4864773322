"""Results folders that the page offers as a corpus: those of the command line, and those that were made or opened last.

`streamlit run dashboard/server.py -- --results FOLDER` names one, as does the environment variable
`ATTENTION_SIEVE_RESULTS`, which separates several as in PATH. On a public server only these are offered; folders that a
visitor names are never opened.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.checkpoints.find import NETWORK_SHARE
from core.errors import AnalysisError
from dashboard.public import is_public

if TYPE_CHECKING:
    from core.corpus.results import Results

RESULTS: Final = "ATTENTION_SIEVE_RESULTS"
OPTION: Final = "--results"


def named() -> list[Path]:
    """The folders that the owner of the server named."""
    arguments = sys.argv
    told = [arguments[place + 1] for place, each in enumerate(arguments[:-1]) if each == OPTION]
    listed = [each for each in (os.environ.get(RESULTS) or "").split(os.pathsep) if each.strip()]
    return [Path(os.path.expanduser(each)).resolve() for each in (*told, *listed)]


def offered() -> dict[str, Path]:
    """Folders by the name that a reader sees: their own, or where two have the same the whole path."""
    from core.corpus.recent import recent_results  # brings pandas, which a first visit need not wait for

    folders = list(dict.fromkeys([*named(), *([] if is_public() else recent_results())]))
    names = [folder.name for folder in folders]
    if is_public():
        return {folder.name: folder for folder in reversed(folders)}
    return {folder.name if names.count(folder.name) == 1 else str(folder): folder for folder in folders}


def open_offered(name: str) -> "Results":
    """Open one of these, or on a server of one's own any folder.

    Raises: AnalysisError for a folder that holds no results, and on a public server for one that is not offered.
    """
    from core.corpus.recent import remember_results
    from core.corpus.results import open_results

    known = offered()
    if name not in known and (is_public() or NETWORK_SHARE.match(name)):
        raise AnalysisError(f"Results are offered of: {', '.join(known) or 'no corpus'}. Choose one of them.")
    results = open_results(known.get(name) or Path(os.path.expanduser(name)))
    if not is_public() and results.folder.resolve() not in known.values():
        remember_results(results.folder)
    return results
