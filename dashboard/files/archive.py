"""The files that a page offers, singly and as an archive: their names and contents."""

import io
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar, Final

from attention_sieve.dashboard import wording
from attention_sieve.dashboard.figures.export import svg_pdf, svg_png, table_csv, table_parquet
from attention_sieve.dashboard.figures.sheet import ONE_COLUMN, SHEET, TWO_COLUMNS, Size
from attention_sieve.dashboard.files.provenance import models, texts

if TYPE_CHECKING:
    import pandas as pd

UNSAFE: Final = re.compile("[^A-Za-z0-9.]+")
LONGEST_PART: Final = 40
"""Maximum length of a part of a file name, of which there are at most seven."""
DIGITS: Final = 6
"""Length of the hash at the end of a file name, which distinguishes files made with different settings."""
PAGE: Final = "page"
SIZES: Final = {PAGE: SHEET, "one column": ONE_COLUMN, "two columns": TWO_COLUMNS}
PACKED: Final = ("png", "pdf", "parquet")
"""Formats that are compressed already."""


@dataclass(frozen=True, eq=False)
class Picture:
    name: str
    """Last part of its file names before the hash."""
    title: str
    facts: Mapping[str, str]
    svg: Callable[[Size], str]
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
        convert = svg_png if suffix == "png" else svg_pdf
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
        return ("csv", "parquet", *(() if self.card is None else ("md",)))

    @property
    def archived(self) -> tuple[tuple[str, str], ...]:
        return tuple((suffix, PAGE) for suffix in self.suffixes)

    def files(self) -> Iterator[bytes]:
        return (self.file(suffix) for suffix, _ in self.archived)

    def file(self, suffix: str, _: str = PAGE) -> bytes:
        if suffix == "md" and self.card is not None:
            return self.card(self.facts).encode()
        return table_csv(self.table, self.facts) if suffix == "csv" else table_parquet(self.table, self.facts)


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
