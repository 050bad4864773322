"""The second set of texts: a sample, a file, or a second labelled table."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import streamlit as st

from core.errors import AnalysisError
from core.importance.labels import read_labels
from core.texts.text import Text
from dashboard import controls, public
from dashboard.samples import read_sample
from dashboard.views import frame
from dashboard.views.importance.material import Material
from dashboard.views.importance.two_sets import wording
from dashboard.views.pickers import from_list

KEY: Final = "second set"
UPLOAD_KEY: Final = "second texts"
TABLE_KEY: Final = "second table"
WIDTH: Final = 280
SINGLE_SAMPLES: Final = {name: kind for name, kind in controls.SAMPLES.items() if kind != "both"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Sets:
    """Two sets of texts without a text in common."""

    first: Material
    second: Material
    second_name: str
    n_shared: int
    """Texts of the page that are in the second set too."""


def second_set(material: Material) -> Sets | None:
    """Ask for the second set; None while the reader has yet to give it, after asking.

    Args:
        material: of the page.

    Raises: AnalysisError for a second set that cannot be read, and for sets of the same texts.
    """
    found = _labelled(material) if material.metric == "labels" else _texts(material)
    if found is None:
        return None
    second, name = found
    theirs = {text.segments for text in second.visit.texts}
    left = [place for place, text in enumerate(material.visit.texts) if text.segments not in theirs]
    if not left:
        raise AnalysisError(wording.SAME)
    n_shared = len(material.visit.texts) - len(left)
    return Sets(
        first=_part(material, left) if n_shared else material, second=second, second_name=name, n_shared=n_shared
    )


def _part(material: Material, places: list[int]) -> Material:
    """The same with some of its texts."""
    texts = tuple(material.visit.texts[place] for place in places)
    labels = None if material.labels is None else material.labels[np.array(places)]
    return replace(material, visit=replace(material.visit, texts=texts), labels=labels)


def _texts(material: Material) -> tuple[Material, str] | None:
    """Sample texts, or those of a file."""
    chosen = material.visit.chosen
    options: dict[str, str] = {name: name for name in SINGLE_SAMPLES if name != chosen.corpus}
    start = next(reversed(options))  # the sample texts, unless they are on the page
    name = from_list(wording.SECOND, {**options, wording.UPLOAD: wording.UPLOAD}, key=KEY, start=start, width=WIDTH)
    texts: tuple[Text, ...]
    if name == wording.UPLOAD:
        texts = _uploaded()
        if not texts:
            st.info(wording.WAIT)
            return None
        name = st.session_state[UPLOAD_KEY].name
    else:
        texts = read_sample(SINGLE_SAMPLES[name])
    usable = frame.readable(chosen, material.visit.engine, texts)
    if not usable:
        return None
    return replace(material, visit=replace(material.visit, texts=usable)), name


def _uploaded() -> tuple[Text, ...]:
    st.file_uploader(
        wording.UPLOADER,
        type=["txt", "csv", "tsv", "json", "jsonl", "conllu"],
        key=UPLOAD_KEY,
        max_upload_size=public.upload_megabytes(),
    )
    controls.column_pickers(UPLOAD_KEY)
    return controls.uploaded_texts(UPLOAD_KEY)


def _labelled(material: Material) -> tuple[Material, str] | None:
    """A second table with the columns of the first."""
    table = st.file_uploader(
        wording.TABLE_UPLOADER, type=["csv", "tsv", "gz"], key=TABLE_KEY, max_upload_size=public.upload_megabytes()
    )
    if table is None:
        st.info(wording.WAIT_TABLE)
        return None
    visit = material.visit
    checkpoint = visit.inference.checkpoint(visit.engine)
    labels = read_labels(checkpoint, table.name, table.getvalue(), material.text_columns, material.label_column)
    second = replace(
        material,
        visit=replace(visit, texts=labels.texts),
        labels=labels.values,
        labels_name=f"{table.name}, {material.label_column}",
    )
    return second, table.name
