"""The files of a page: what they are called, the archive of all of them, and the works to cite."""

import io
import re
import zipfile

import pandas as pd
import pytest

from attention_sieve.dashboard import controls
from attention_sieve.dashboard.figures.sheet import ONE_COLUMN, SHEET, TWO_COLUMNS
from attention_sieve.dashboard.files.downloads import REFERENCES, Picture, Table, archive, archive_name, file_name
from attention_sieve.dashboard.files.provenance import titled

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="96" height="96"><rect width="9" height="9"/></svg>'
FACTS = {"program": "Attention Sieve 1", "checkpoint": "bundled", "text": "The cat sat.", "heads": "L3 H7"}
CORPUS = {**FACTS, "corpus": "sample pairs", "corpus texts": "1128"}


def picture(facts=FACTS, name="arcs", title="Attention of L3 H7"):
    return Picture(name, title, facts, lambda size: SVG)


def table():
    return Table("roles", "Table of roles", CORPUS, pd.DataFrame({"layer": [0, 1]}))


def test_a_name_says_checkpoint_head_text_and_kind():
    name = file_name(picture(), "svg")
    assert re.fullmatch(r"attention-sieve_all-MiniLM-L6-v2_L3-H7_The-cat-sat_arcs_[0-9a-f]{6}\.svg", name)
    assert "_1-128-sample-pairs_roles_" in file_name(table(), "csv")


@pytest.mark.parametrize("other", [{"text": "The cat sat!"}, {"checkpoint": "org/bert"}, {"tau": "2"}])
def test_files_of_other_settings_have_other_names(other):
    assert file_name(picture(), "svg") != file_name(picture({**FACTS, **other}), "svg")
    assert file_name(picture(), "svg") == file_name(picture(dict(FACTS)), "svg")


@pytest.mark.parametrize(
    "text", ["../../etc/passwd", "漢字", "a\x00b\ud800\n", "<img src=x>", "x" * 10_000, "CON:|?*", "\u202etxt.exe"]
)
def test_names_hold_only_characters_that_every_file_system_takes(text):
    name = file_name(picture({**FACTS, "checkpoint": f"/home/me/{text}", "text": text}, name=text[:50]), "png")
    assert re.fullmatch(r"attention-sieve[A-Za-z0-9._-]*\.png", name)
    assert ".." not in name
    assert len(name) < 200
    assert "home" not in name, "a folder's path is nobody's business"


def test_the_archive_holds_every_file_once_with_what_they_were_computed_from():
    downloads = [picture(), table()]
    with zipfile.ZipFile(
        io.BytesIO(archive(downloads, "http://here/roles?tau=2", {"references.bib": b"@misc{a}"}))
    ) as packed:
        assert packed.testzip() is None
        readme = packed.read("README.txt").decode()
        expected = {f"figures/{file_name(downloads[0], suffix)}" for suffix in ("svg", "png")}
        papers = [f"figures/{file_name(downloads[0], 'pdf', size)}" for size in ("one column", "two columns")]
        assert all(packed.read(name).startswith(b"%PDF") for name in papers)
        expected |= set(papers)
        expected |= {f"tables/{file_name(downloads[1], suffix)}" for suffix in ("csv", "parquet")}
        assert sorted(packed.namelist()) == sorted(expected | {"README.txt", "references.bib"})
        assert packed.read(f"figures/{file_name(downloads[0], 'svg')}") == SVG.encode()
        assert packed.read(f"figures/{file_name(downloads[0], 'png')}").startswith(b"\x89PNG")
        assert packed.read(f"tables/{file_name(downloads[1], 'csv')}") == downloads[1].file("csv")
    assert "page: http://here/roles?tau=2" in readme
    assert readme.count("checkpoint: bundled") == 1, "what all share is said once"
    assert "  corpus texts: 1128" in readme
    assert archive_name("roles", downloads).startswith("attention-sieve_all-MiniLM-L6-v2_roles_all_")


def test_a_picture_is_drawn_once_in_each_size():
    drawn = []
    both = Picture("arcs", "t", FACTS, lambda size: drawn.append(size) or SVG)
    assert [content[:4] for content in both.files()] == [b"<svg", b"\x89PNG", b"%PDF", b"%PDF"]
    assert drawn == [SHEET, ONE_COLUMN, TWO_COLUMNS]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (CORPUS, "Roles, all-MiniLM-L6-v2, 1,128 sample pairs"),
        ({**CORPUS, "corpus": controls.TYPED, "corpus texts": "3"}, "Roles, all-MiniLM-L6-v2, 3 typed texts"),
        (FACTS, "Roles, all-MiniLM-L6-v2, “The cat sat.”"),
        ({"checkpoint": "/data/me/tuned", "compared checkpoint": "org/bert"}, "Roles, org/bert against tuned"),
    ],
)
def test_a_title_names_checkpoint_and_texts(facts, expected):
    assert titled("Roles", facts) == expected


def test_the_references_are_sound_bibtex():
    written = REFERENCES.read_text("utf-8")
    entries = re.findall(r"^@(\w+)\{([\w-]+),\n(.*?)^\}$", written, re.MULTILINE | re.DOTALL)
    assert len(entries) == written.count("@") == 6
    assert len({key for _, key, _ in entries}) == 6
    for kind, _, body in entries:
        fields = dict(re.findall(r"^  (\w+)\s*= \{(.*)\},$", body, re.MULTILINE))
        assert len(fields) == len(body.splitlines()), "a field on each line"
        assert all(value.count("{") == value.count("}") for value in fields.values())
        assert kind == "misc" or {"author", "title", "booktitle", "year", "pages"} <= fields.keys()
        assert re.fullmatch(r"10\.\d{4,}/\S+", fields.get("doi", "10.1000/none"))
