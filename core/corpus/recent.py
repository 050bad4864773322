"""Recently created or opened results folders, to be offered on a page."""

import json
from pathlib import Path
from typing import Final

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.commands import write_whole
from attention_sieve.core.corpus.manifest import STATISTICS
from attention_sieve.core.json_values import typed_json

MOST: Final = 8
"""Maximum number of remembered folders."""
FILE: Final = "results.json"


def recent_results() -> list[Path]:
    """The folders that still exist, the latest first."""
    try:
        paths: tuple[str, ...] = typed_json((program_folder() / FILE).read_bytes(), tuple[str, ...])
    except (OSError, ValueError):
        return []
    return [folder for folder in map(Path, paths) if (folder / STATISTICS).is_file()]


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
