"""The row below a figure or table, with its description and files, which are also offered as the archive of a page, for
which the page is drawn once more with its closed tabs."""

import io
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode, urlsplit

import streamlit as st

from attention_sieve.dashboard import wording
from attention_sieve.dashboard.figures import sheet
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import caption, models, texts, titled
from attention_sieve.dashboard.plain import plain

if TYPE_CHECKING:
    import pandas as pd

    from attention_sieve.dashboard.figures.card import HeadCard

UNSAFE: Final = re.compile("[^A-Za-z0-9.]+")
LONGEST_PART: Final = 40
"""Maximum length of a part of a file name, of which there are at most seven."""
DIGITS: Final = 6
"""Length of the hash at the end of a file name, which distinguishes files made with different settings."""
PAGE: Final = "page"
SIZES: Final = {PAGE: sheet.SHEET, "one column": sheet.ONE_COLUMN, "two columns": sheet.TWO_COLUMNS}
PACKED: Final = ("png", "pdf", "parquet")
"""Formats that are compressed already."""


@dataclass(frozen=True, eq=False)
class Picture:
    name: str
    """Last part of its file names before the hash."""
    title: str
    facts: Mapping[str, str]
    svg: Callable[[sheet.Size], str]
    suffixes: ClassVar = ("pdf", "svg", "png")
    sizes: ClassVar = tuple(SIZES)
    archived: ClassVar = (("svg", PAGE), ("png", PAGE), ("pdf", "one column"), ("pdf", "two columns"))
    """Suffix and size of each file in the archive."""

    def files(self) -> Iterator[bytes]:
        """Those of the archive, one after the other, each size drawn once."""
        drawn: dict[str, str] = {}
        for suffix, size in self.archived:
            drawn = drawn if size in drawn else {size: self.svg(SIZES[size])}
            yield self._written(drawn[size], suffix)

    def file(self, suffix: str, size: str = PAGE) -> bytes:
        return self._written(self.svg(SIZES[size]), suffix)

    def _written(self, svg: str, suffix: str) -> bytes:
        if suffix == "svg":
            return svg.encode()
        convert = sheet.svg_png if suffix == "png" else sheet.svg_pdf
        return convert(svg, self.title, self.facts)


@dataclass(frozen=True, eq=False)
class Table:
    name: str
    title: str
    facts: Mapping[str, str]
    table: "pd.DataFrame"
    card: "Callable[[Mapping[str, str]], str] | None" = None
    """Writes a section of a model card, with what it was computed from; None for a table that has none."""
    sizes: ClassVar = (PAGE,)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("csv", "parquet", "tex", *(() if self.card is None else ("md",)))

    @property
    def archived(self) -> tuple[tuple[str, str], ...]:
        return tuple((suffix, PAGE) for suffix in self.suffixes if suffix != "tex")

    def files(self) -> Iterator[bytes]:
        return (self.file(suffix) for suffix, _ in self.archived)

    def file(self, suffix: str, _: str = PAGE) -> bytes:
        if suffix == "md" and self.card is not None:
            return self.card(self.facts).encode()
        if suffix == "tex":
            from attention_sieve.core.commands import latex_table  # for which the first grid does not wait

            return latex_table(self.table, self.facts).encode()
        return (
            sheet.table_csv(self.table, self.facts) if suffix == "csv" else sheet.table_parquet(self.table, self.facts)
        )


Download = Picture | Table


def file_name(download: Download, suffix: str, size: str = PAGE) -> str:
    """Name of a file, unique to its content and settings.

    Its parts are the checkpoint, the heads, the texts, the figure or table and its size, in characters safe on all file
    systems.
    """
    facts = download.facts
    about = facts.get("sentence") or texts(facts)
    parts = (models(facts), facts.get("heads", ""), about, download.name, "" if size == PAGE else size)
    return _joined_name(parts, [download], suffix)


def archive_name(page: str, downloads: Sequence[Download]) -> str:
    """Name of the archive of a page: its checkpoint, its texts if all files have the same, and the page."""
    facts = downloads[0].facts
    about = {texts(download.facts) for download in downloads}
    parts = (models(facts), about.pop() if len(about) == 1 else "", page, "all")
    return _joined_name(parts, downloads, "zip")


def page_name(checkpoints: Sequence[str]) -> str:
    """Name of a saved page: its checkpoints, the reference last."""
    return "_".join(("attention-sieve", *(_safe(PurePath(name).name) for name in reversed(checkpoints)), "heads.html"))


def archive(downloads: Sequence[Download], address: str, others: Mapping[str, bytes]) -> bytes:
    """ZIP archive of all files of a page, with their provenance and the works that the program follows.

    The files are made one after the other, so that only one is in memory at a time.

    Args:
        others: further files by name: the works as BibTeX, and the texts that the commands read.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for download in downloads:
            folder = "figures" if isinstance(download, Picture) else "tables"
            for (suffix, size), content in zip(download.archived, download.files()):
                compression = zipfile.ZIP_STORED if suffix in PACKED else zipfile.ZIP_DEFLATED
                packed.writestr(f"{folder}/{file_name(download, suffix, size)}", content, compression)
        packed.writestr("README.txt", _readme(downloads, address))
        for name, content in others.items():
            packed.writestr(name, content)
    return buffer.getvalue()


def _readme(downloads: Sequence[Download], address: str) -> str:
    """Description of the files: first the facts that all share, then those of each file."""
    shared = dict(set.intersection(*(set(download.facts.items()) for download in downloads)))
    lines = [wording.ARCHIVE, "", *([f"page: {address}"] if address else [])]
    lines += [f"{name}: {value}" for name, value in downloads[0].facts.items() if name in shared]
    for download in downloads:
        own_facts = [f"  {name}: {value}" for name, value in download.facts.items() if name not in shared]
        names = [file_name(download, suffix, size) for suffix, size in download.archived]
        lines += ["", download.title, *(f"  {name}" for name in names), *own_facts]
    return "\n".join(lines) + "\n"


def _joined_name(parts: Sequence[str], downloads: Sequence[Download], suffix: str) -> str:
    about = [(download.title, sorted(download.facts.items())) for download in downloads]
    digest = sha256(repr(about).encode(errors="replace")).hexdigest()[:DIGITS]
    return f"{'_'.join(('attention-sieve', *filter(None, map(_safe, parts)), digest))}.{suffix}"


def _safe(part: str) -> str:
    plain = unicodedata.normalize("NFKD", part).encode("ascii", "ignore").decode()
    return UNSAFE.sub("-", plain)[:LONGEST_PART].strip("-.")


REFERENCES: Final = Path(__file__).with_name("references.bib")
ICON: Final = ":material/download:"
MIMES: Final = {
    "pdf": "application/pdf",
    "md": "text/markdown",
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": "text/csv",
    "tex": "text/x-tex",
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
    provenance.begin_page()


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


def card_downloads(head: str, checkpoint: str, card: "Callable[[], HeadCard]") -> None:
    """Offer the card of a head as PNG and as SVG, a click each; it is drawn when it is asked for."""
    for suffix in ("png", "svg"):
        st.download_button(
            wording.save_card(wording.FILE_KINDS[suffix]),
            partial(_card_file, card, suffix),
            file_name="_".join(
                ("attention-sieve", _safe(wording.model_name(checkpoint)), _safe(head), f"card.{suffix}")
            ),
            mime=MIMES[suffix],
            key=f"save card {suffix}",
            help=wording.SAVE_CARD_HELP,
            on_click="ignore",
            type="tertiary",
            icon=ICON,
        )


def _card_file(card: "Callable[[], HeadCard]", suffix: str) -> bytes:
    from attention_sieve.dashboard.figures.card import card_file  # imports Altair, for a click alone

    return card_file(card(), f".{suffix}")


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
    _row(Picture(name, full_title, provenance.with_command(facts), lambda size: svg(size=size)), paper=paper)


def figure_downloads(name: str, figure: Figure, facts: Mapping[str, str], title: str = "", *, paper: str = "") -> None:
    """Offer a description of a chart, and the chart as `drawing_downloads`, by default under its own title."""
    facts = provenance.with_command(facts)
    full_title = titled(title or str(figure.spec["title"]["text"]), facts)

    def svg(size: sheet.Size) -> str:
        return sheet.figure_svg(figure, title=full_title, caption=caption(facts), size=size)

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
    _row(Table(name, titled(f"Table of {name}", facts), provenance.with_command(facts), table, card), paper=paper)


def all_downloads() -> None:
    if not (offered := _offered.get()):
        return
    downloads, (page, address), read = list(offered.values()), _page_and_address(), provenance.files_read()
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
        if (command := download.facts["command"]) == provenance.NO_COMMAND:
            st.caption(wording.NO_COMMAND)
            return
        st.caption(wording.COMMAND)
        st.code(command, language=None, wrap_lines=True)
