"""Gives a file that is made when it is asked for one address in all runs of a page, and keeps what was made.

Streamlit 1.67 gives it another address in each run and forgets the old one, so that a click on a page that is just
being drawn again brings nothing; and it deletes what was made once two runs have ended, of whatever reader, also where
the browser has not fetched it yet. Where another version works otherwise, Streamlit's own ways stay.
"""

import hashlib
import itertools
import secrets
from functools import wraps
from pathlib import PurePosixPath
from typing import Any, Final

from streamlit.runtime.media_file_manager import MediaFileManager

_SECRET: Final = secrets.token_hex()
_own: Final = MediaFileManager.add_deferred
_own_execute: Final = MediaFileManager.execute_deferred
MADE: Final = "files just made"
"""In place of a session: what refers to the files that were made last."""
_places: Final = itertools.cycle(map(str, range(32)))
"""More than a class asks for at once. One that is made takes the place of the 32nd before it."""


@wraps(_own)
def _add_deferred(self: MediaFileManager, *arguments: Any, element_id: str = "", **more: Any) -> str:
    name = _own(self, *arguments, element_id=element_id, **more)
    entries, by_session = (getattr(self, part, {}) for part in ("_deferred_callables", "_deferred_ids_by_session"))
    places = getattr(self, "_files_by_session_and_coord", {})
    entry = entries.get(name)
    if not element_id or entry is None or not {"session_id", "coordinates"} <= set(entry):
        return name
    session, place = entry["session_id"], entry["coordinates"]
    kept = hashlib.sha256(f"{_SECRET} {session} {element_id}".encode()).hexdigest()[: len(name)]
    with self._lock:
        entries[kept] = entries.pop(name)
        by_session[session] = {each for each in by_session[session] if each != name} | {kept}
        places[session][place] = kept
    return kept


@wraps(_own_execute)
def _execute_deferred(self: MediaFileManager, file_id: str) -> str:
    url = _own_execute(self, file_id)
    with self._lock:
        getattr(self, "_files_by_session_and_coord", {}).setdefault(MADE, {})[next(_places)] = PurePosixPath(url).stem
    return url


def keep_downloads() -> None:
    """From now on, in every session of this server."""
    MediaFileManager.add_deferred = _add_deferred  # type: ignore[method-assign]
    MediaFileManager.execute_deferred = _execute_deferred  # type: ignore[method-assign]
