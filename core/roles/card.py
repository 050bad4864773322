"""Which heads have which roles, as a section of a model card."""

from collections.abc import Mapping
from typing import Final

import pandas as pd

from attention_sieve import __version__
from attention_sieve.core.attention.settings import head_names
from attention_sieve.core.roles.roles import BY_NAME

MARKDOWN: Final = ".md"


def role_card(table: pd.DataFrame, facts: Mapping[str, str]) -> str:
    """A section in Markdown: how many and which heads have each role by a table of tests, and how that was computed."""
    lines = [
        "## Attention heads",
        "",
        "Heads with a role, by the sieve bias score over texts (Pande et al. 2021). A role says where a head looks, "
        "not what the model needs it for; `attention-sieve controls` says how many heads have it by chance.",
        "",
        "| role | looks at | heads | of | which |",
        "|---|---|---:|---:|---|",
    ]
    for role, rows in table.groupby("role", sort=False):
        held = rows[rows["holds"].astype(bool)]
        tested, name = int((rows["texts"] > 0).sum()), str(role)
        which = head_names(zip(held["layer"], held["head"], strict=True)) if tested else "not tested"
        expects = BY_NAME[name].expects if name in BY_NAME else ""
        lines.append(_row(name, expects, str(len(held)), str(tested), which))
    lines += ["", "| computed from | |", "|---|---|"]
    texts = {} if "corpus texts" in facts else {"texts": str(int(table["texts"].max()))}
    known = {"program": f"Attention Sieve {__version__}", **facts, **texts}
    lines += [_row(name, value) for name, value in known.items() if value]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    """A row of a table; what is written by a reader is text, not Markdown."""
    escaped = (" ".join(cell.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for cell in cells)
    return f"| {' | '.join(escaped)} |"
