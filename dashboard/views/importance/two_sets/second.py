"""The second set of texts: a sample, a file, or a second labelled table."""

from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.labels import read_labels
from attention_sieve.core.texts.text import SUFFIXES, Text
from attention_sieve.dashboard import controls, public
from attention_sieve.dashboard.samples import VARIED, read_sample
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.importance.material import Material, of_labels, of_texts
from attention_sieve.dashboard.views.importance.two_sets import wording
from attention_sieve.dashboard.views.pickers import from_list

KEY: Final = "second set"
UPLOAD_KEY: Final = "second texts"
TABLE_KEY: Final = "second table"
WIDTH: Final = 280
SINGLE_SAMPLES: Final = {name: kind for name, kind in controls.SAMPLES.items() if kind != "both"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Sets:
    """Two disjoint sets of texts."""

    first: Material
    second: Material
    second_name: str
    n_shared: int
    """Texts of the page that are also in the second set."""


def second_set(material: Material) -> Sets | None:
    """Let the reader choose the second set; None until there is one.

    Raises: AnalysisError if the second set cannot be read, or if both sets hold the same texts.
    """
    selection = _labelled(material) if material.metric.metric == "labels" else _texts(material)
    if selection is None:
        return None
    second, name = selection
    second_texts = {item.text.segments for item in second.inputs}
    remaining = tuple(item for item in material.inputs if item.text.segments not in second_texts)
    if not remaining:
        raise AnalysisError(wording.SAME)
    n_shared = len(material.inputs) - len(remaining)
    return Sets(first=replace(material, inputs=remaining), second=second, second_name=name, n_shared=n_shared)


def _texts(material: Material) -> tuple[Material, str] | None:
    """Sample texts, or texts from a file."""
    choice = material.visit.choice
    options: dict[str, str] = {name: name for name in SINGLE_SAMPLES if name != choice.corpus}
    start = [name for name in options if SINGLE_SAMPLES[name] != VARIED][-1]  # the sample texts, unless on the page
    name = from_list(wording.SECOND, {**options, wording.UPLOAD: wording.UPLOAD}, key=KEY, start=start, width=WIDTH)
    texts: tuple[Text, ...]
    if name == wording.UPLOAD:
        st.file_uploader(
            wording.UPLOADER,
            type=SUFFIXES,
            key=UPLOAD_KEY,
            max_upload_size=public.upload_megabytes(),
        )
        controls.column_pickers(UPLOAD_KEY)
        texts = controls.uploaded_texts(UPLOAD_KEY)
        if not texts:
            st.info(wording.WAIT)
            return None
        name = st.session_state[UPLOAD_KEY].name
    else:
        texts = read_sample(SINGLE_SAMPLES[name])
    usable = frame.readable(choice, material.visit.engine, texts)
    if not usable:
        return None
    return replace(material, inputs=of_texts(usable)), name


def _labelled(material: Material) -> tuple[Material, str] | None:
    """A second labelled table with the same column names."""
    table = st.file_uploader(
        wording.TABLE_UPLOADER, type=["csv", "tsv", "gz"], key=TABLE_KEY, max_upload_size=public.upload_megabytes()
    )
    if table is None:
        st.info(wording.WAIT_TABLE)
        return None
    if material.table is None:
        raise RuntimeError("The metric labels has no table.")
    visit, first = material.visit, material.table.data
    checkpoint = visit.inference.checkpoint(visit.engine)
    labels = read_labels(checkpoint, table.name, table.getvalue(), first.text_columns, first.label_column)
    return replace(material, inputs=of_labels(labels)), table.name
