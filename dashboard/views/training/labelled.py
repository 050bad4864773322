"""Labelled texts: the upload, which the reader's tab keeps for a reload, its columns, and a preview."""

import gzip
import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Final, Literal

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.errors import TextError
from attention_sieve.core.finetuning.data import Task, TrainingData, column_names, read_training_data, unpacked
from attention_sieve.core.finetuning.movie_reviews import movie_reviews
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.texts.tables import KNOWN_COLUMNS
from attention_sieve.core.texts.text import MAX_BYTES
from attention_sieve.dashboard import controls, link
from attention_sieve.dashboard.components.kept_text import keep_text, mark_of
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.files.provenance import reads
from attention_sieve.dashboard.plain import errors_shown, plain, show_error
from attention_sieve.dashboard.progress import let_leave
from attention_sieve.dashboard.views.training import wording

LABELS: Final = ("label", "labels", "gold_label", "class", "category", "sentiment", "polarity", "score", "rating")
"""Known headers of label columns, in lower case."""
Sample = Literal["training", "held out"]
SAMPLE: Final = "labelled sample"
"""Key of whether the reader uses the sample."""
UPLOADER: Final = "labelled"
"""Key of the uploader."""
N_FIRST: Final = 5
SHOWN_CHARACTERS: Final = 300
"""Maximum length of a text in the preview."""
TABLE: Final = "labelled table"
"""Key of the table as JSON, in the session and in the tab."""
MOST_KEPT: Final = 4_000_000
"""Maximum number of characters of a packed table: a tab keeps about 5 million in all (sessionStorage)."""
_PACKED: Final = f"{TABLE}, packed"
"""Key of the id and the packed content of the last upload."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Labelled:
    data: TrainingData
    content: Callable[[], bytes]

    def archived(self) -> str:
        """Its name in the archive of the page, where commands find it."""
        return reads(PurePath(self.data.name).name, self.content)

    @property
    def options(self) -> list[str]:
        """The file and its columns as options of a command."""
        data = self.data
        return [
            f"--texts={self.archived()}",
            f"--text-columns={','.join(data.text_columns)}",
            f"--label-column={data.label_column}",
        ]


@dataclass(frozen=True)
class KeptTable:
    """A table in the reader's browser tab."""

    name: str
    packed: str | None
    """Its bytes, gzipped, in base64; None if the tab has no room for them."""
    columns: tuple[str | None, str | None, str | None]
    """The columns that were picked: the text, the second segment, the label; None where none was."""

    def content(self) -> bytes:
        """The bytes of the file.

        Raises: TextError if they are damaged.
        """
        try:
            content = b64decode(self.packed or "", validate=True)
        except ValueError:
            raise TextError(wording.upload_again(self.name)) from None
        return unpacked(content)


@dataclass(frozen=True, kw_only=True)
class _Table:
    file_id: str
    """Id of the upload: a file that is uploaded again is read again."""
    name: str
    content: Callable[[], bytes]
    about: str = ""
    """What is said of an upload; empty for the sample, which no tab has to keep."""


def labelled_texts(sample: Sample = "training") -> Labelled | None:
    """Ask for a table and its columns, and show a preview or the error; None until it can be used.

    Args:
        sample: movie reviews that the reader can use instead: the training data of the sample checkpoint, or held-out
            reviews.
    """
    table = _sample(sample) if st.session_state.get(SAMPLE) else _uploaded(sample)
    if table is None:
        return None
    slot = st.container(gap=None)
    try:
        columns = memory().get_or_put("columns", table.file_id, lambda: column_names(table.name, table.content()))
        segments, label, task = _pick(table.file_id, columns)
        if table.about:
            first, second, *_ = (*segments, None, None)
            with slot:
                is_kept = keep_table(table.name, table.file_id, table.content, (first, second, label))
                st.markdown(f"{table.about} {wording.IN_TAB if is_kept else plain(wording.not_in_tab(table.name))}")
        if not segments or label is None:
            st.info(wording.PICK_COLUMNS)
            return None
        if commas := [name for name in segments if "," in name]:
            raise TextError(wording.comma_in_column(commas[0]))  # the command line would read it as two columns
        data = memory().get_or_put(
            "labelled texts",
            (table.file_id, segments, label, task),
            lambda: read_training_data(table.name, table.content(), segments, label, task=task),
        )
    except TextError as error:
        show_error(error)
        return None
    _preview(data)
    return Labelled(data=data, content=table.content)


def _uploaded(sample: Sample) -> _Table | None:
    """The upload, or that of before a reload, which the reader's tab has kept."""
    kept = kept_table()
    uploaded = st.file_uploader(
        wording.UPLOAD,
        type=["csv", "tsv", "gz"],
        key=UPLOADER,
        max_upload_size=MAX_BYTES // 10**6,
        help=wording.UPLOAD_HELP,
        on_change=_forget_removed,
    )
    stays = f"{wording.STAYS_HERE} {wording.NOT_IN_LINK}" if sample == "training" else wording.NOT_IN_LINK
    if uploaded is not None:
        return _Table(file_id=uploaded.file_id, name=uploaded.name, content=uploaded.getvalue, about=stays)
    if kept is not None and kept.packed is not None:
        link.leave_out_upload()
        file_id = mark_of(kept.packed)
        text, second, label = kept.columns
        for part, column in {"text": text, "second": second or wording.NO_SECOND, "label": label}.items():
            if column is not None:
                st.session_state.setdefault(f"{part} {file_id}", column)
        about = f"{wording.from_tab(plain(kept.name))} {stays}"
        return _Table(file_id=file_id, name=kept.name, content=kept.content, about=about)
    if st.session_state.get(TABLE) == "":
        keep_text(TABLE, "")
    st.markdown(f"{wording.WAIT} {stays}" if kept is None else plain(wording.upload_again(kept.name)))
    st.button(wording.SAMPLE, icon=":material/movie:", help=wording.SAMPLE_HELP, on_click=_use_sample, args=(True,))
    return None


def _forget_removed() -> None:
    if st.session_state[UPLOADER] is None:
        st.session_state[TABLE] = ""  # also in the tab, once the page is drawn
        link.put([TABLE + controls.IN_TAB], {})


def _sample(sample: Sample) -> _Table | None:
    st.button(wording.OWN, icon=":material/undo:", on_click=_use_sample, args=(False,))
    with errors_shown():
        with st.spinner(wording.FETCHING, show_time=True):
            training, held_out = let_leave(lambda: movie_reviews(program_folder() / "downloads"))
        st.markdown(wording.ABOUT_SAMPLE if sample == "training" else wording.ABOUT_HELD_OUT)
        path = training if sample == "training" else held_out
        return _Table(file_id=path.name, name=path.name, content=path.read_bytes)
    return None


def _use_sample(use: bool) -> None:
    st.session_state[SAMPLE] = use


def _pick(file_id: str, columns: tuple[str, ...]) -> tuple[tuple[str, ...], str | None, Task | None]:
    known_columns = known_segments(columns)
    grid = st.grid(2, min_column_width=170, vertical_alignment="bottom")
    first = grid.cell().selectbox(
        wording.TEXT_COLUMN,
        columns,
        index=columns.index(known_columns[0]) if known_columns else None,
        key=f"text {file_id}",
    )
    second_columns = (wording.NO_SECOND, *columns)
    second = grid.cell().selectbox(
        wording.SECOND_COLUMN,
        second_columns,
        index=second_columns.index(known_columns[1]) if len(known_columns) > 1 else 0,
        key=f"second {file_id}",
    )
    label = grid.cell().selectbox(
        wording.LABEL_COLUMN, columns, index=known_label(columns, known_columns), key=f"label {file_id}"
    )
    task = grid.cell().selectbox(
        wording.TASK, tuple(wording.TASKS), key="task", help=wording.TASK_HELP, bind="query-params"
    )
    segments = tuple(name for name in (first, second) if name is not None and name != wording.NO_SECOND)
    return segments if first is not None else (), label, wording.TASKS[task]


def known_segments(columns: tuple[str, ...]) -> tuple[str, ...]:
    """The one or two columns with known names of texts; empty if no name is known."""
    by_name = {column.lower(): column for column in reversed(columns)}
    for names in KNOWN_COLUMNS:
        if set(names) <= set(by_name):
            return tuple(by_name[column] for column in names)
    return ()


def known_label(columns: tuple[str, ...], segments: tuple[str, ...]) -> int | None:
    """Index of the column with a known name of labels, or of the only column without text."""
    by_name = {name.lower(): index for index, name in reversed(list(enumerate(columns)))}
    others = [index for index, name in enumerate(columns) if name not in segments]
    known_index = next((by_name[name] for name in LABELS if name in by_name), None)
    return others[0] if known_index is None and segments and len(others) == 1 else known_index


def _preview(data: TrainingData) -> None:
    names = [data.classes[int(label)] if data.classes else f"{label:g}" for label in data.labels]
    if data.task == "classes":
        labels = wording.classes({plain(name): number for name, number in Counter(names).items()})
    else:
        labels = wording.values(min(data.labels), max(data.labels), float(np.mean(data.labels)))
    st.markdown(wording.data_summary(len(data.texts), len(data.texts[0].segments) == 2, labels))
    rows = [
        [label, *(segment[:SHOWN_CHARACTERS] for segment in text.segments)]
        for text, label in zip(data.texts[:N_FIRST], names)
    ]
    columns = [wording.SHOWN_TEXT, wording.SHOWN_SECOND][: len(data.texts[0].segments)]
    st.dataframe(
        # The label first: a text may be wider than the page.
        pd.DataFrame(rows, columns=[wording.SHOWN_LABEL, *columns]),
        hide_index=True,
        alt=wording.FIRST_ROWS,
        key="first rows",
    )


def kept_table() -> KeptTable | None:
    """The table that this session, or before a reload this tab, has kept; None without one.

    While the tab has not answered, nothing else is drawn.
    """
    controls.fetch_from_tab(TABLE, wording.TABLE_NOT_IN_THIS_TAB)
    try:
        return typed_json(st.session_state.get(TABLE) or "null", KeptTable)
    except ValueError:
        return None


def keep_table(
    name: str, file_id: str, content: Callable[[], bytes], columns: tuple[str | None, str | None, str | None]
) -> bool:
    """Keep a table in the session and in the reader's browser tab.

    Args:
        file_id: differs for each upload.
        columns: as of `KeptTable`.

    Returns: whether the tab has room for it; otherwise it keeps the name alone.
    """
    if st.session_state.get(_PACKED, ("", None))[0] != file_id:
        packed = b64encode(gzip.compress(content(), mtime=0)).decode("ascii")
        st.session_state[_PACKED] = file_id, packed if len(packed) <= MOST_KEPT else None
    packed = st.session_state[_PACKED][1]
    text = json.dumps(asdict(KeptTable(name, packed, columns)))
    st.session_state[TABLE] = text
    link.put([TABLE + controls.IN_TAB], {TABLE + controls.IN_TAB: mark_of(text)})
    if not keep_text(TABLE, text) and packed is not None:
        st.session_state[_PACKED] = file_id, None
        st.rerun()
    return packed is not None
