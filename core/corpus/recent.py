"""Recently created or opened results folders, to be offered on a page."""

import json
from pathlib import Path
from typing import Final

from core.checkpoints.folders import program_folder
from core.commands import write_whole
from core.corpus.manifest import STATISTICS

MOST: Final = 8
"""Maximum number of remembered folders."""
FILE: Final = "results.json"


def recent_results() -> list[Path]:
    """The folders that still exist, the latest first."""
    try:
        paths = json.loads((program_folder() / FILE).read_text(encoding="utf-8"))
        folders = [Path(str(file)) for file in paths]
    except (OSError, ValueError, TypeError):
        return []
    return [folder for folder in folders if (folder / STATISTICS).is_file()]


def remember_results(folder: Path) -> None:
    """Put a folder first; does nothing if the list cannot be written."""
    resolved = folder.resolve()
    folders = [resolved, *(path for path in recent_results() if path != resolved)][:MOST]
    content = json.dumps([str(path) for path in folders])
    try:
        program_folder().mkdir(parents=True, exist_ok=True)
        write_whole(program_folder() / FILE, lambda temporary: temporary.write_text(content, encoding="utf-8"))
    except OSError:
        return
