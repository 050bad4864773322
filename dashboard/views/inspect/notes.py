"""How the numbers of the page Inspect are computed: roles, sentences of heads, and links between words."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from attention_sieve.dashboard.views import frame, word_links
from attention_sieve.dashboard.views.role_grid import notes as roles
from attention_sieve.dashboard.views.word_links import wording

_LINKS: Final = frame.read_notes(Path(word_links.__file__).parent, wording.NUMBERS)
NOTES: Final = replace(roles.NOTES, method=f"{roles.NOTES.method}\n{_LINKS.method}", paper="")
