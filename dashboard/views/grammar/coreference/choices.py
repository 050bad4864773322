"""Texts with gold mentions: read, and cut to windows."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import streamlit as st

from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.coreference.mentions import MentionText, Windows, windows
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.dashboard import public, samples
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.files.downloads import download_as_it_is
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.views.descriptions.own_mentions import WINDOWS
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.grammar.coreference import wording

EXAMPLE: Final = wording.EXAMPLE.capitalize()
"""Name of the example texts."""


@dataclass(frozen=True, eq=False)
class Gold:
    name: str
    content: bytes
    sha256: str
    texts: tuple[MentionText, ...]


def gold_mentions(*, is_example: bool) -> Gold | None:
    """The example texts, or those of the reader's file; None while there is none, or where reading was stopped.

    Raises: TextError.
    """
    if is_example:
        return _read(samples.MENTIONS.name, EXAMPLE, samples.MENTIONS.read_bytes)
    uploaded = st.file_uploader(
        wording.UPLOAD_LABEL,
        type=["json", "jsonl", "tsv", "txt"],
        key="gold mentions",
        max_upload_size=public.upload_megabytes(),
    )
    st.markdown(wording.upload_limits(public.upload_megabytes()))
    download_as_it_is(wording.TEMPLATE, samples.MENTIONS, "application/jsonl", "download mentions example")
    if uploaded is None:
        st.info(wording.WAIT)
        return None
    return _read(uploaded.file_id, uploaded.name, uploaded.getvalue)


@in_its_place
def _read(file_id: str, name: str, content: Callable[[], bytes]) -> Gold | None:
    def read(report: Report) -> Gold:
        def counted(trees: Iterable[Dependencies], n_texts: int) -> Iterator[Dependencies]:
            for n_done, tree in enumerate(trees, start=1):
                report(Status(done=n_done, total=n_texts, seconds_left=None, n_waiting_before=0))
                yield tree

        file_bytes = content()
        return Gold(name, file_bytes, hashlib.sha256(file_bytes).hexdigest(), read_mentions(file_bytes, counted))

    return memory().get_or_put(
        "mentions", file_id, lambda: with_progress(("mentions", file_id), read, shared_wording.PARSING)
    )


@in_its_place
def windows_of(visit: Visit, gold: Gold, window: int) -> Windows | None:
    """The texts, cut with the checkpoint's tokenizer; None where the reader has stopped the work.

    Raises: AnalysisError of any stage.
    """
    key = (visit.engine, gold.sha256, window)

    def cut(report: Report) -> Windows:
        return visit.inference.run(visit.engine, lambda checkpoint: windows(checkpoint, gold.texts, window), report)

    return memory().get_or_put(WINDOWS, key, lambda: with_progress(("windows", *key), cut))
