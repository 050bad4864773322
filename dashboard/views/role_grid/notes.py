"""Notes on how roles are computed and what the paper found, for the pages Roles and Inspect."""

from pathlib import Path
from typing import Final

from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.role_grid import wording

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
