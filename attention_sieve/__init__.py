"""Attention Sieve: what each attention head of a transformer looks at, and which roles it has.

`core` analyses, `cache` stores what was computed and serves it to several readers, `dashboard` shows it. The three are
folders of the project, to which this one links, so that nothing but `attention_sieve` has a name of its own for Python.
"""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
"""The folder from which Python imports this package; of a clone, the project's."""
