"""What a call returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import pandas as pd

SHOWN_TABLE: Final = {"max_rows": 20, "float_format": "{:.4g}".format, "na_rep": ""}
"""How a table is shown where a finding is: some rows, numbers of four digits, nothing where there is none."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Finding:
    """What an analysis found about the heads of a checkpoint."""

    analysis: str
    """Name of the analysis."""
    table: pd.DataFrame
    """As the command of the analysis writes it; `attrs` are the facts."""
    columns: Mapping[str, str]
    """What each column of the table holds."""
    facts: Mapping[str, str]
    """Checkpoint, texts and settings, as in files."""
    result: Any
    """What the table was made of: the arrays that the analysis found."""

    def __post_init__(self) -> None:
        self.table.attrs = dict(self.facts)

    @property
    def title(self) -> str:
        """What was found, of what, in one line."""
        names = [self.facts[name] for name in ("checkpoint", "checkpoint a", "checkpoint b") if name in self.facts]
        return f"{self.analysis} of {' and '.join(names)}: {len(self.table):,} rows"

    def __repr__(self) -> str:
        return f"{self.title}\n{self.table.to_string(**SHOWN_TABLE, show_dimensions=False)}"

    def _repr_html_(self) -> str:
        """For notebooks. Texts, tokens and names are data, which are escaped."""
        return f"<p>{escape(self.title)}</p>{self.table.to_html(**SHOWN_TABLE, escape=True, border=0)}"
