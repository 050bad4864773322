"""Paths of this machine, which a public server keeps from its visitors and writes to its owner's log."""

import logging
import re
from pathlib import PureWindowsPath
from typing import Final

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.dashboard.offers.results import named
from attention_sieve.dashboard.public import is_public

_PATH: Final = re.compile(r"(?<![\w./:])(?:[A-Za-z]:\\|~?/(?=[^\s/]))[^\s\"'“”,;()]*")
_log: Final = logging.getLogger(__name__)


def for_visitors(message: str) -> str:
    """A message as the page shows it: on a public server, each path is shortened to its last name.

    The owner finds the whole message in the log of the server.
    """
    if not is_public():
        return message
    without = message
    for folder in (*named(), program_folder()):  # these may hold spaces, at which any other path would end
        without = without.replace(str(folder), folder.name)
    without = _PATH.sub(_last_name, without)
    if without != message:
        _log.warning("%s", message)
    return without


def _last_name(path: re.Match[str]) -> str:
    """The last name of a path, with the full stop of the sentence that it ends."""
    return PureWindowsPath(path[0].rstrip(".")).name + "." * path[0].endswith(".")
