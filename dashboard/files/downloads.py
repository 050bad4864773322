"""The row below a figure or table, with its description and files, and the archive of all files of a page, for which
the page is drawn once more with its closed tabs."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

import streamlit as st

from attention_sieve.dashboard import wording
from attention_sieve.dashboard.figures.export import figure_svg
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.sheet import Size
from attention_sieve.dashboard.files import commands
from attention_sieve.dashboard.files.archive import (
    PAGE,
    Download,
    Picture,
    Table,
    archive,
    archive_name,
    file_name,
    page_name,
)
from attention_sieve.dashboard.files.provenance import caption, titled
from attention_sieve.dashboard.plain import plain

if TYPE_CHECKING:
    import pandas as pd

REFERENCES: Final = Path(__file__).with_name("references.bib")
ICON: Final = ":material/download:"
MIMES: Final = {
    "pdf": "application/pdf",
    "md": "text/markdown",
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
ALL: Final = "download all"
"""Key of what opens where all files of the page are asked for."""
_offered: Final[ContextVar[dict[str, Download] | None]] = ContextVar("offered", default=None)
"""Downloads of the page being drawn, by the name of their files; None outside of a run of a page."""
_left_out: Final[ContextVar[dict[str, str] | None]] = ContextVar("left out", default=None)
"""Why a tab of the page has no downloads, by its title."""
_saved: Final[ContextVar[tuple[str, Callable[[], bytes]] | None]] = ContextVar("saved", default=None)
"""Name and content of the page being drawn as one HTML file; None where it cannot be saved."""


def begin_page() -> None:
    """Clear the downloads of another page or an earlier run."""
    _offered.set({})
    _left_out.set({})
    _saved.set(None)
    commands.begin_page()


def are_all_asked_for() -> bool:
    """Whether the reader asks for all files of the page, also those in closed tabs."""
    return st.session_state.get(ALL) is True


def leave_out(tab: str, why: str) -> None:
    """Say that a tab has no files in the archive."""
    if (left_out := _left_out.get()) is not None:
        left_out[tab] = why


def offer_page(checkpoints: Sequence[str], html: Callable[[], bytes]) -> None:
    """Offer the page as one HTML file, below everything else: `page_download` draws the button."""
    _saved.set((page_name(checkpoints), html))


def page_download() -> None:
    if (saved := _saved.get()) is not None:
        st.download_button(
            wording.SAVE_PAGE,
            saved[1],
            file_name=saved[0],
            mime="text/html",
            key="save page",
            help=wording.SAVE_PAGE_HELP,
            on_click="ignore",
            icon=":material/save:",
        )


def drawing_downloads(
    name: str, title: str, facts: Mapping[str, str], draw: Callable[..., str], *, paper: str = ""
) -> None:
    """Offer a component as PDF, SVG and PNG with its provenance.

    Args:
        name: of the component, on its buttons and in its file names.
        title: before the checkpoint and the texts.
        draw: returns SVG, of a `title`, lines of a `caption`, and a `size`.
        paper: sentence that names the corresponding figure or table of the paper, if there is one.
    """
    full_title = titled(title, facts)
    svg = partial(draw, title=full_title, caption=caption(facts))
    _row(Picture(name, full_title, commands.with_command(facts), lambda size: svg(size=size)), paper=paper)


def figure_downloads(name: str, figure: Figure, facts: Mapping[str, str], title: str = "", *, paper: str = "") -> None:
    """Offer a description of a chart, and the chart as `drawing_downloads`, by default under its own title."""
    facts = commands.with_command(facts)
    full_title = titled(title or str(figure.spec["title"]["text"]), facts)

    def svg(size: Size) -> str:
        return figure_svg(figure, title=full_title, caption=caption(facts), size=size)

    _row(Picture(name, full_title, facts, svg), figure.description, paper)


def table_downloads(
    name: str,
    table: "pd.DataFrame",
    facts: Mapping[str, str],
    *,
    paper: str = "",
    card: Callable[[Mapping[str, str]], str] | None = None,
) -> None:
    """Offer a table as CSV and Parquet with its provenance; `card` writes it as a section of a model card."""
    _row(Table(name, titled(f"Table of {name}", facts), commands.with_command(facts), table, card), paper=paper)


def all_downloads() -> None:
    if not (offered := _offered.get()):
        return
    downloads, (page, address), read = list(offered.values()), _page_and_address(), commands.files_read()
    icon = ":material/folder_zip:"
    with st.popover(wording.DOWNLOAD_ALL, icon=icon, key=ALL, on_change="rerun") as files:
        if not files.open:
            return
        st.caption(wording.DOWNLOAD_ALL_HELP)
        st.download_button(
            wording.archived(*(sum(isinstance(each, kind) for each in downloads) for kind in (Picture, Table))),
            lambda: archive(downloads, address, _others(read)),
            file_name=archive_name(page, downloads),
            mime="application/zip",
            key="download archive",
            on_click="ignore",
            type="primary",
            icon=icon,
        )
        for tab, why in (_left_out.get() or {}).items():
            st.caption(f"{tab}: {plain(why)}")


def _others(read: Mapping[str, Callable[[], bytes]]) -> dict[str, bytes]:
    """The works to cite, and the files that the commands in the facts read."""
    return {REFERENCES.name: REFERENCES.read_bytes(), **{name: content() for name, content in read.items()}}


def references_download() -> None:
    download_as_it_is(wording.REFERENCES, REFERENCES, "application/x-bibtex", "download references")


def download_as_it_is(label: str, file: Path, mime: str, key: str) -> None:
    st.download_button(
        label,
        file.read_bytes,
        file_name=file.name,
        mime=mime,
        key=key,
        on_click="ignore",
        type="tertiary",
        icon=ICON,
    )


def _page_and_address() -> tuple[str, str]:
    """Name of the page, empty for the first one, and the current link, empty without a browser."""
    url = st.context.url or ""
    query = urlencode([(name, value) for name in st.query_params for value in st.query_params.get_all(name)])
    return urlsplit(url).path.strip("/"), url + (f"?{query}" if query else "")


def _row(download: Download, words: str = "", paper: str = "") -> None:
    name = download.name
    if (offered := _offered.get()) is not None:
        offered[file_name(download, type(download).__name__)] = download
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        if words:
            with st.popover(wording.IN_WORDS, type="tertiary", icon=":material/notes:", key=f"in words {name}"):
                st.markdown(plain(words))
        _files(download)
        if paper:
            st.caption(paper, width="content")


@st.fragment
def _files(download: Download) -> None:
    """What opens where a file is asked for: its format and size, and the button that makes it."""
    name = download.name if isinstance(download, Picture) else f"table of {download.name}"
    with st.popover(f"Download {name}", type="tertiary", icon=ICON, key=f"download {name}", on_change="rerun") as files:
        if not files.open:
            return
        suffix = st.segmented_control(
            wording.FORMAT,
            download.suffixes,
            format_func=wording.FILE_KINDS.__getitem__,
            default=download.suffixes[0],
            required=True,
            key=f"format of {name}",
        )
        size = PAGE
        if len(download.sizes) > 1:
            size = st.radio(
                wording.SIZE, download.sizes, format_func=wording.FILE_SIZES.__getitem__, key=f"size of {name}"
            )
        st.download_button(
            f"Save {name}",
            partial(download.file, suffix, size),
            file_name=file_name(download, suffix, size),
            mime=MIMES[suffix],
            key=f"save {name}",
            on_click="ignore",
            type="primary",
        )
        if (command := download.facts["command"]) == commands.NONE:
            st.caption(wording.NO_COMMAND)
            return
        st.caption(wording.COMMAND)
        st.code(command, language=None, wrap_lines=True)
