"""Whether the model uses what the chosen heads encode: the concept is erased from them in a separate process."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.command_lines import command_line
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.erasure.erasure import FIRST_DRAWS, MOST_TEXTS
from attention_sieve.dashboard import costs
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.run_kinds import KINDS
from attention_sieve.dashboard.runs import options_of
from attention_sieve.dashboard.views.charts import table
from attention_sieve.dashboard.views.knowledge import runs, wording
from attention_sieve.dashboard.views.knowledge.asked import may_begin
from attention_sieve.dashboard.views.knowledge.numbers import Probing, kept_task

FORMAT: Final = 3
"""Version of the tables; those of other versions are computed again."""
MOST_HEADS: Final = 6


def is_it_used(probing: Probing) -> None:
    st.markdown(wording.ERASE_SEE)
    if not 1 <= len(probing.heads) <= MOST_HEADS:
        st.info(f"Choose 1 to {counted(MOST_HEADS, 'head')} on the map.")
        return
    path = _path(probing)
    rows = _read(path)
    if rows is None:
        _run(probing, path)
        return
    st.markdown("\n\n".join(wording.erased(head_name(row.layer, row.head), row) for row in rows.itertuples()))
    st.caption(wording.corrected_for(len(probing.heads), len(probing.tasks)))
    options = {**_options(probing), "data": kept_task(probing.task), "device": None, "output": "erased.parquet"}
    facts = probing.facts | {"command": command_line(["erase", *options_of(options)])}
    table("erased heads", rows, facts, number="%.3g")


def _options(probing: Probing) -> dict[str, Any]:
    subject, result, columns = probing.subjects[0], probing.shown, probing.task.columns
    return {
        "checkpoint": subject.name,
        "data": probing.task.path,
        "pooling": result.pooling,
        "attention": result.kind if len(subject.files.kinds) > 1 else None,
        "dtype": subject.dtype,
        "device": probing.visit.choice.device,
        "too-long": probing.settings.too_long,
        "text-columns": columns.text_columns,
        "label-column": columns.label_column,
        "part-column": columns.part_column,
        "heads": ",".join(f"{layer}-{head}" for layer, head in sorted(probing.heads)),
        "tests": len(probing.heads) * len(probing.tasks),
    }


def _path(probing: Probing) -> Path:
    """File of the table, named by a hash of everything that it depends on."""
    options = {name: value for name, value in _options(probing).items() if name not in ("checkpoint", "data", "device")}
    identity = [FORMAT, MOST_TEXTS, probing.subjects[0].files.fingerprint, probing.task.digest, options]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    return program_folder() / "erasures" / f"{digest}.parquet"


def _read(path: Path) -> pd.DataFrame | None:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError):
        return None


def _run(probing: Probing, path: Path) -> None:
    if not may_begin(KINDS["erase"].folder(), wording.erasing, is_kept=True):
        return
    names = [head_name(*head) for head in sorted(probing.heads)]
    n_rows = sum(probing.task.n_rows)
    n_passes = n_rows + min(n_rows, MOST_TEXTS) * len(names) * (2 + FIRST_DRAWS)
    costs.say(probing.subjects[0].files, n_passes, probing.task.path.stat().st_size / n_rows)
    if st.button(
        f"Erase it from {', '.join(names)}", key="erase", icon=":material/ink_eraser:", help=wording.ERASE_HELP
    ):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            options = {**_options(probing), "output": path}
            runs.erase(options_of(options))
        except OSError as error:
            st.error(f"{path.parent} cannot be written ({error.strerror}). Make room there.")
        except AnalysisError as error:
            show_error(error)
        else:
            st.rerun()
