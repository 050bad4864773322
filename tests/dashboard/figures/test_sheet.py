"""The sheet of every figure's file: how wide it is, what fits on it, and how much of it is drawn."""

import io
import itertools
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import vl_convert
from drawn import Drawn, cut_off, plain, smallest_letters, texts_of
from PIL import Image
from relation_figures import tree
from role_figures import FIGURES

from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.texts.relations import ROOT
from attention_sieve.dashboard.figures.head_map import HeadMap, head_map_svg
from attention_sieve.dashboard.figures.relations.parse_arcs import parse_arcs_file, sentence
from attention_sieve.dashboard.figures.roles.combinations import Overlaps
from attention_sieve.dashboard.figures.roles.grid import RoleGrid, grid_svg
from attention_sieve.dashboard.figures.roles.venn_svg import venn_svg
from attention_sieve.dashboard.figures.sheet import (
    COLUMN,
    MARGIN,
    ONE_COLUMN,
    PAGE,
    TWO_COLUMNS,
    figure_svg,
    sheet_width,
    svg_pdf,
    text_width,
    wrapped,
)
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, arcs_svg

LONG = ", ".join(f"setting {number} with its value {number**3}" for number in range(20))
WORDS = {"title": LONG[:90], "caption": [LONG, LONG[:130]]}
"""More than fits a line, as provenance often is."""
SVG = "{http://www.w3.org/2000/svg}"


def grid(layers, heads):
    scores = np.linspace(0, 6, len(ROLES) * layers * heads).reshape(len(ROLES), layers, heads)
    return grid_svg(RoleGrid(label="Roles", scores=scores, holds=scores > 3, tau=3.0, shown=COARSE_ROLES), **WORDS)


def arcs(n_tokens):
    attention = np.random.default_rng(1).dirichlet(np.ones(n_tokens), size=(1, n_tokens))
    side = plain([f"token{at}" for at in range(n_tokens)])
    return arcs_svg(AttentionMaps(queries=side, keys=side, attention=attention, heads=[(0, 1)], label="l"), **WORDS)


def head_map():
    values = np.linspace(-2, 2, 72).reshape(6, 12)
    marked = values > 1
    picture = HeadMap(
        title="t", label="l", values=values, bound=2.0, signed=True, marked=marked, mark=LONG, high_label="more"
    )
    return head_map_svg(picture, **WORDS)


def venn():
    counts = {frozenset(held): 3 for n in (0, 1, 2) for held in itertools.combinations(COARSE_ROLES, n)}
    return venn_svg(Overlaps(roles=COARSE_ROLES, combinations=counts), **WORDS)


FILES = Drawn(
    {
        "grid of 12 heads": lambda: grid(6, 12),
        "grid of 32 heads": lambda: grid(32, 32),
        "map of heads": head_map,
        "venn": venn,
        "arcs": lambda: arcs(26),
        "arcs of a long text": lambda: arcs(80),
        "chart": lambda: figure_svg(FIGURES[""]["layers"], **WORDS),
    }
)


@pytest.mark.parametrize("name", FILES)
def test_no_file_is_wider_than_a_page_and_none_is_nearly_empty(name):
    root = ET.fromstring(FILES[name])
    assert float(root.get("width")) == PAGE == round(6.9 * 96)
    image = np.asarray(Image.open(io.BytesIO(vl_convert.svg_to_png(FILES[name], scale=0.5))).convert("L"))
    ink = image < 245
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    assert ink.mean() > 0.05
    assert np.ptp(rows) * np.ptp(columns) > 0.7 * image.size
    # Nothing is drawn on the edge: it would be cut off there.
    assert not ink[:, :2].any()
    assert not ink[:, -2:].any()


@pytest.mark.parametrize("size", [ONE_COLUMN, TWO_COLUMNS])
@pytest.mark.parametrize("name", ["grid of 12 heads", "map of heads", "venn", "arcs"])
def test_pictures_for_papers_are_legible_and_say_where_they_come_from_in_their_metadata(name, size, monkeypatch):
    monkeypatch.setitem(WORDS, "size", size)
    svg = FILES.drawers[name]()
    root = ET.fromstring(svg)
    assert float(root.get("width")) == size.width
    assert smallest_letters(svg) >= 5.9 / 0.75
    assert cut_off(svg) == []
    assert WORDS["title"] == root.find(f"{SVG}title").text
    assert "\n".join(WORDS["caption"]) == root.find(f"{SVG}desc").text
    assert not {WORDS["title"], *WORDS["caption"]} & set(texts_of(svg))


def test_a_pdf_has_the_size_of_the_print_its_letters_and_its_provenance():
    """Read by poppler's rules: the last cross-reference table says where the object of the metadata is."""
    pdf = svg_pdf(FILES["grid of 12 heads"], "Rôles, τ 3", {"checkpoint": "(bundled)", "command": "roles --tau 3"})
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert float(box[1]) == PAGE * 72 / 96
    start = int(pdf.rsplit(b"startxref", 1)[1].split()[0])
    table = re.match(
        rb"xref\n(\d+) 1\n(\d{10}) 00000 n\r\ntrailer\n<<.*/Info \1 0 R.*/Prev (\d+)", pdf[start:], re.DOTALL
    )
    assert pdf[int(table[3]) :].startswith(b"xref")
    entries = re.match(table[1] + rb" 0 obj\n<< /Title <feff(\w+)> /Subject <feff(\w+)>", pdf[int(table[2]) :])
    title, subject = (bytes.fromhex(text.decode()).decode("utf-16-be") for text in entries.groups())
    assert (title, subject) == ("Rôles, τ 3", "checkpoint: (bundled)\ncommand: roles --tau 3")
    assert b"LiberationSans" in pdf
    assert b"/FontFile2" in pdf, "its letters are in the file"


@pytest.mark.parametrize("name", FILES)
def test_titles_and_captions_keep_every_word_on_lines_that_fit_in_a_font_that_is_everywhere(name):
    fonts = {element.get("font-family") for element in ET.fromstring(FILES[name]).iter()} - {None}
    assert fonts
    assert all(font.endswith("sans-serif") and "Helvetica" in font for font in fonts)
    top = list(ET.fromstring(FILES[name]).findall(f"{SVG}text"))
    assert " ".join(line.text for line in top).count(LONG) == 1
    assert all(text_width(line.text, float(line.get("font-size"))) <= PAGE - 2 * MARGIN for line in top)


def test_a_sheet_is_as_wide_as_a_column_where_that_is_enough():
    assert pytest.approx(3.3 * 96, abs=1) == COLUMN
    assert sheet_width(COLUMN - 2 * MARGIN) == COLUMN
    assert sheet_width(COLUMN - 2 * MARGIN + 1) == PAGE
    assert ET.fromstring(grid(2, 4)).get("width") == str(COLUMN)


def test_a_long_sentence_is_drawn_smaller_and_fits_a_page():
    parsed = tree([*range(1, 60), ROOT], ["dep"] * 60)
    drawn = sentence(["word"] * 60, parsed, parsed.heads, np.ones(60, bool), (0, 60))
    root = ET.fromstring(parse_arcs_file(drawn, attends="dependent-to-head", reading="How.", **WORDS))
    assert float(root.get("width")) == PAGE
    scale = float(re.search(r"scale\(([\d.]+)\)", root.find(f"{SVG}g").get("transform"))[1])
    rightmost = max(float(text.get("x")) for text in root.find(f"{SVG}g").iter(f"{SVG}text"))
    assert scale * rightmost < PAGE - 2 * MARGIN < rightmost


def test_the_grid_says_what_its_tints_and_letters_mean():
    written = " ".join(ET.fromstring(FILES["grid of 12 heads"]).itertext())
    assert "tint: not that role; the stronger, the closer the score is to tau 3" in written
    assert all(role in written for role in COARSE_ROLES)


def test_a_word_longer_than_a_line_is_cut_and_one_that_fits_is_not():
    lines = wrapped("a " + "x" * 30 + " b", width=12 * 10 * 0.58, size=10)
    assert "".join(lines).replace(" ", "") == "a" + "x" * 30 + "b"
    assert max(map(len, lines)) == 12
    assert wrapped("", 100, 10) == [""]


def test_letters_of_east_asian_scripts_take_more_room():
    assert text_width("漢字", 10) == pytest.approx(20)
    assert text_width("ab", 10) == pytest.approx(2 * 5.8)
