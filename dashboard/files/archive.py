"""The files that a page offers, one by one and all together: what they are called, and what an archive says of them."""

import io
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final

from dashboard import wording
from dashboard.figures.export import svg_png, table_csv, table_parquet
from dashboard.files.provenance import models, texts

if TYPE_CHECKING:
    import pandas as pd

UNSAFE: Final = re.compile("[^A-Za-z0-9.]+")
LONGEST_PART: Final = 40
"""Characters of a name's part, of which there are at most six."""
DIGITS: Final = 6
"""Of the hash at the end of a name, which tells files apart that were made with different settings."""
PACKED: Final = ("png", "parquet")
"""Files that are compressed already."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure that can be had as a file."""

    name: str
    """What it is, in its files' names."""
    title: str
    facts: Mapping[str, str]
    """Where it comes from."""
    svg: Callable[[], str]
    suffixes: ClassVar = ("svg", "png")

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Its files with their suffixes, each made when it is asked for, from one drawing."""
        drawn = self.svg()
        yield "svg", drawn.encode()
        yield "png", svg_png(drawn)

    def file(self, suffix: str) -> bytes:
        """One of its files."""
        return dict(self.files())[suffix] if suffix == "png" else self.svg().encode()


@dataclass(frozen=True, eq=False)
class Table:
    """A table that can be had as a file."""

    name: str
    title: str
    facts: Mapping[str, str]
    table: "pd.DataFrame"
    suffixes: ClassVar = ("csv", "parquet")

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Its files with their suffixes, each made when it is asked for."""
        for suffix in self.suffixes:
            yield suffix, self.file(suffix)

    def file(self, suffix: str) -> bytes:
        """One of its files."""
        return table_csv(self.table, self.facts) if suffix == "csv" else table_parquet(self.table, self.facts)


Download = Picture | Table


def file_name(download: Download, suffix: str) -> str:
    """A name that says what a file holds, and that no file made with other settings has.

    Parts are the checkpoint, the heads, the texts and what it is, in characters that every file system takes.
    """
    facts = download.facts
    parts = (models(facts), facts.get("heads", ""), facts.get("sentence") or texts(facts), download.name)
    return _joined(parts, [download], suffix)


def archive_name(page: str, downloads: Sequence[Download]) -> str:
    """The name of all files of a page in one: its checkpoint, its texts where all are about the same, and the page."""
    facts = downloads[0].facts
    about = {texts(download.facts) for download in downloads}
    parts = (models(facts), about.pop() if len(about) == 1 else "", page, "all")
    return _joined(parts, downloads, "zip")


def archive(downloads: Sequence[Download], address: str, references: bytes) -> bytes:
    """All files of a page in one, with what they were computed from and the works that the program follows.

    They are made one after the other, so that no two are in memory at once.

    Args:
        downloads: what the page offers.
        address: link to the page.
        references: the works as BibTeX.

    Returns: a ZIP archive.
    """
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        for download in downloads:
            folder = "figures" if isinstance(download, Picture) else "tables"
            for suffix, content in download.files():
                how = zipfile.ZIP_STORED if suffix in PACKED else zipfile.ZIP_DEFLATED
                packed.writestr(f"{folder}/{file_name(download, suffix)}", content, how)
        packed.writestr("README.txt", _readme(downloads, address))
        packed.writestr("references.bib", references)
    return whole.getvalue()


def _readme(downloads: Sequence[Download], address: str) -> str:
    """What the files are: facts that all share once, then each with its own."""
    shared = dict(set.intersection(*(set(download.facts.items()) for download in downloads)))
    lines = [wording.ARCHIVE, "", *([f"page: {address}"] if address else [])]
    lines += [f"{name}: {value}" for name, value in downloads[0].facts.items() if name in shared]
    for download in downloads:
        own = [f"  {name}: {value}" for name, value in download.facts.items() if name not in shared]
        names = [file_name(download, suffix) for suffix in download.suffixes]
        lines += ["", download.title, *(f"  {name}" for name in names), *own]
    return "\n".join(lines) + "\n"


def _joined(parts: Sequence[str], downloads: Sequence[Download], suffix: str) -> str:
    about = [(download.title, sorted(download.facts.items())) for download in downloads]
    digest = sha256(repr(about).encode(errors="replace")).hexdigest()[:DIGITS]
    return f"{'_'.join(('attention-sieve', *filter(None, map(_safe, parts)), digest))}.{suffix}"


def _safe(part: str) -> str:
    plain = unicodedata.normalize("NFKD", part).encode("ascii", "ignore").decode()
    return UNSAFE.sub("-", plain)[:LONGEST_PART].strip("-.")
