"""What stands below a figure or a table: what a chart shows in words, and its files, made only when clicked.

All files of a page can be had at once: what was offered while a page was drawn is what its archive holds.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

import streamlit as st

from dashboard import wording
from dashboard.figures.export import figure_svg
from dashboard.figures.figure import Figure
from dashboard.files.archive import Download, Picture, Table, archive, archive_name, file_name
from dashboard.files.provenance import caption, titled
from dashboard.plain import plain

if TYPE_CHECKING:
    import pandas as pd

REFERENCES: Final = Path(__file__).with_name("references.bib")
ICON: Final = ":material/download:"
MIMES: Final = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
_offered: Final[ContextVar[dict[str, Download] | None]] = ContextVar("offered", default=None)
"""The downloads of the page that is being drawn, by name; None outside of a run of a page."""


def begin_page() -> None:
    """Forget what another page offered, or this one on an earlier run."""
    _offered.set({})


def drawing_downloads(
    name: str, title: str, facts: Mapping[str, str], svg: Callable[[], str], *, paper: str = ""
) -> None:
    """Offer a hand-made view as SVG and PNG.

    Args:
        name: of the view, on its buttons and in its files' names.
        title: of the picture.
        facts: where it comes from.
        svg: draws it.
        paper: the sentence that names the paper's figure it corresponds to, if there is one to name.
    """
    _row(Picture(name, title, facts, svg), paper=paper)


def figure_downloads(name: str, figure: Figure, facts: Mapping[str, str], title: str = "", *, paper: str = "") -> None:
    """Offer a chart in words, and as SVG and PNG with where it comes from written below.

    Args:
        name: of the chart, on its buttons and in its files' names.
        figure: what is drawn.
        facts: where it comes from.
        title: before the checkpoint and the texts; by default the chart's own.
        paper: the sentence that names the paper's figure it corresponds to, if there is one to name.
    """
    whole = titled(title or str(figure.spec["title"]["text"]), facts)
    svg = partial(figure_svg, figure, title=whole, caption=caption(facts))
    _row(Picture(name, whole, facts, svg), figure.description, paper)


def table_downloads(name: str, table: "pd.DataFrame", facts: Mapping[str, str], *, paper: str = "") -> None:
    """Offer a table as CSV and Parquet, with where it comes from, and name the paper's table that it corresponds to."""
    _row(Table(name, titled(f"Table of {name}", facts), facts, table), paper=paper)


def all_downloads() -> None:
    """Offer every file of the page in one archive; nothing where the page has drawn none."""
    if not (offered := _offered.get()):
        return
    downloads, (page, address) = list(offered.values()), _page_and_address()
    st.download_button(
        wording.DOWNLOAD_ALL,
        lambda: archive(downloads, address, REFERENCES.read_bytes()),
        file_name=archive_name(page, downloads),
        mime="application/zip",
        key="download all",
        help=wording.DOWNLOAD_ALL_HELP,
        on_click="ignore",
        icon=":material/folder_zip:",
    )


def references_download() -> None:
    """Offer the works that the program follows as BibTeX."""
    st.download_button(
        wording.REFERENCES,
        REFERENCES.read_bytes,
        file_name=REFERENCES.name,
        mime="application/x-bibtex",
        key="download references",
        on_click="ignore",
        type="tertiary",
        icon=ICON,
    )


def _page_and_address() -> tuple[str, str]:
    """The page's name, empty for the first one, and the link to what it shows now, empty without a browser."""
    url = st.context.url or ""
    query = urlencode([(name, value) for name in st.query_params for value in st.query_params.get_all(name)])
    return urlsplit(url).path.strip("/"), url + (f"?{query}" if query else "")


def _row(download: Download, words: str = "", paper: str = "") -> None:
    name = download.name
    if (offered := _offered.get()) is not None:
        offered[f"{type(download).__name__} {name}"] = download
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        if words:
            with st.popover(wording.IN_WORDS, type="tertiary", icon=":material/notes:", key=f"in words {name}"):
                st.markdown(plain(words))
        for suffix in download.suffixes:
            st.download_button(
                f"{wording.FILE_KINDS[suffix]} of {name}",
                partial(download.file, suffix),
                file_name=file_name(download, suffix),
                mime=MIMES[suffix],
                key=f"download {name} {suffix}",
                on_click="ignore",
                type="tertiary",
                icon=ICON,
            )
        if paper:
            st.caption(paper, width="content")
