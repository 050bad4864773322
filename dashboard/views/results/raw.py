"""The texts with a head's highest scores, read from the raw scores shard by shard when the reader starts it."""

from typing import Final

import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.corpus.manifest import score_path, text_path
from attention_sieve.core.corpus.results import Results
from attention_sieve.core.corpus.score_files import highest
from attention_sieve.core.corpus.texts.text_shards import read_texts
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.views.results import wording
from attention_sieve.dashboard.views.results.chosen import Opened

KEY: Final = "highest texts"
ANSWER: Final = "highest found"
STOPPING: Final = "stop reading"


def highest_texts(opened: Opened, name: str, head: Head) -> None:
    """Draw a button that reads the texts on which a head scores highest for a role or a surface statistic."""
    request = (str(opened.results.folder), name, head)
    st.button(
        f"{wording.READ}: {head_name(*head)}, {name}",
        key="read highest",
        icon=":material/manage_search:",
        on_click=_request,
        args=(request,),
    )
    if st.session_state.get(KEY) != request:
        return
    answer = st.session_state.get(ANSWER)
    if answer is None or answer[0] != request:
        answer = (request, *_read(opened.results, name, head))
        st.session_state[ANSWER] = answer
    _, table, is_whole = answer
    if not is_whole:
        st.info(wording.STOPPED)
    st.dataframe(table, hide_index=True, column_config={"score": st.column_config.NumberColumn(format="%.3f")})
    table_downloads("highest texts", table, {**without_command(opened.facts), "head": head_name(*head), "role": name})


def _request(request: object) -> None:
    st.session_state[KEY] = request
    st.session_state.pop(ANSWER, None)
    st.session_state.pop("highest so far", None)


def _read(results: Results, name: str, head: Head) -> tuple[pd.DataFrame, bool]:
    """The highest texts over all shards, under a progress bar with a stop button; and whether all shards were read."""
    shards = results.manifest.shards
    slot = st.empty()
    best: list[tuple[float, str, int]] = st.session_state.setdefault("highest so far", [])
    if st.session_state.pop(STOPPING, False):
        return _table(results, best), False
    with slot.container():
        bar = st.progress(0.0, wording.reading_shard(1, len(shards)))
        st.button(shared_wording.STOP, key="stop highest", icon=":material/stop_circle:", on_click=_stop)
    best.clear()
    for number, shard in enumerate(shards, start=1):
        bar.progress((number - 1) / len(shards), wording.reading_shard(number, len(shards)))
        rows, scores = highest(score_path(results.folder, shard), name, head, wording.N_HIGHEST)
        best += [(float(score), shard.name, int(row)) for row, score in zip(rows, scores, strict=True)]
        best.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
        del best[wording.N_HIGHEST :]
    slot.empty()
    return _table(results, best), True


def _stop() -> None:
    """Note the stop: a click ends the script run, and the next run shows what was read so far."""
    st.session_state[STOPPING] = True


def _table(results: Results, best: list[tuple[float, str, int]]) -> pd.DataFrame:
    texts: dict[tuple[str, int], str] = {}
    for shard in results.manifest.shards:
        rows = [row for _, name, row in best if name == shard.name]
        if rows:
            shard_texts = read_texts(text_path(results.folder, shard), rows)
            texts |= {
                (shard.name, row): " ||| ".join(shard_text.text.segments)
                for row, shard_text in zip(rows, shard_texts, strict=True)
            }
    return pd.DataFrame(
        [{"score": score, "text": texts[name, row], "shard": name, "row": row} for score, name, row in best],
        columns=["score", "text", "shard", "row"],
    )
