"""Results folders that were made or opened last, so that a page can offer them."""

import json
from pathlib import Path
from typing import Final

from core.checkpoints.folders import program_folder
from core.commands import write_whole
from core.corpus.manifest import STATISTICS

MOST: Final = 8
"""Folders that are remembered."""
FILE: Final = "results.json"


def recent_results() -> list[Path]:
    """The folders, the latest first, as far as they are still there."""
    try:
        told = json.loads((program_folder() / FILE).read_text(encoding="utf-8"))
        folders = [Path(str(each)) for each in told]
    except (OSError, ValueError, TypeError):
        return []
    return [folder for folder in folders if (folder / STATISTICS).is_file()]


def remember_results(folder: Path) -> None:
    """Put a folder first; where that cannot be written, it is offered no more than before."""
    whole = folder.resolve()
    folders = [whole, *(each for each in recent_results() if each != whole)][:MOST]
    written = json.dumps([str(each) for each in folders])
    try:
        program_folder().mkdir(parents=True, exist_ok=True)
        write_whole(program_folder() / FILE, lambda part: part.write_text(written, encoding="utf-8"))
    except OSError:
        return
