"""The page as one file: saved on the dashboard, and opened from a disk without a network."""

import json
import re
import zlib

import pytest
from looks import violations
from PIL import ImageColor
from playwright.sync_api import expect
from steps import saved_page

import attention_sieve as sieve
from attention_sieve.dashboard.figures.appearance import LOOKS


@pytest.fixture(scope="module")
def offline(browser):
    """offline(path, **options): a file from a disk without a network, and what goes wrong with it."""
    context = browser.new_context(offline=True, color_scheme="dark", viewport={"width": 1280, "height": 900})

    def opened(path):
        page, wrong = context.new_page(), []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.on("request", lambda request: request.url == path.as_uri() or wrong.append(request.url))
        page.goto(path.as_uri())
        return page, wrong

    yield opened
    context.close()


def test_a_saved_page_works_from_a_disk_without_a_network(visit, offline, tmp_path):
    page = visit("/roles?head=2-8")
    path, data = saved_page(page, tmp_path)
    assert path.name == "attention-sieve_bundled_heads.html"
    saved, wrong = offline(path)

    grid = saved.get_by_role("grid")
    expect(grid.get_by_role("gridcell", selected=True)).to_have_accessible_name(re.compile("^Layer 2, head 8: "))
    grid.get_by_role("gridcell", name=re.compile("^Layer 0, head 2: ")).click()
    expect(saved.locator("#chosen")).to_contain_text("L0 H2: local (mean score")
    weight = saved.get_by_role("listbox").first.get_by_role("option").nth(2)
    weight.click()
    expect(weight).to_have_attribute("aria-selected", "true")
    expect(saved.locator(".summary")).to_have_text(re.compile(r"^“.*” attends to “.*” [01]\.\d\d"))
    saved.keyboard.press("Escape")
    grid.get_by_role("gridcell", selected=True).focus()
    saved.keyboard.press("ArrowRight")
    saved.keyboard.press("Enter")
    expect(saved.locator("#chosen")).to_contain_text("L0 H3:")
    saved.get_by_label("Patterns of the text").check()
    expect(saved.locator(".grid-of-heads canvas")).to_be_visible()

    saved.get_by_label("Of the chosen heads").check()
    expect(saved.locator("#table tbody tr")).to_have_count(len(data["grids"][0]["roles"]))
    assert violations(saved) == []  # before the table has all its rows, which are alike
    saved.locator("#table-controls").get_by_label("All", exact=True).check()
    saved.get_by_role("button", name="mean score").click()
    first = saved.locator("#table tbody tr").first
    expect(first).to_contain_text(f"{max(filter(None, data['tables'][0]['values']['mean'])):.2f}")
    first.get_by_role("button").click()
    expect(grid.get_by_role("gridcell", selected=True)).to_have_accessible_name(re.compile(r"^Layer \d+, head \d+: "))
    with saved.expect_download() as waiting:
        saved.get_by_role("button", name="CSV of the table").click()
    lines = waiting.value.path().read_text("utf-8").splitlines()
    assert len(lines) == 1 + len(data["tables"][0]["values"]["role"])
    assert lines[0].startswith("role,layer,head,texts,mean,")
    with saved.expect_download() as waiting:
        saved.get_by_role("button", name="Texts: texts.json").click()
    assert json.loads(waiting.value.path().read_text("utf-8")) == data["texts"]["objects"]
    saved.set_viewport_size({"width": 390, "height": 844})
    assert saved.evaluate("document.documentElement.scrollWidth") <= 390
    assert wrong == []


ROLE = 'role = 1\nname = "word before"\nletter = "W"\ncolour = "#123456"\n[to]\noffset = -1\n'


def test_a_role_that_was_written_has_its_rows_like_any_other(folders, offline, tmp_path):
    (tmp_path / "mine.toml").write_text(ROLE)
    texts, given = ["The old dog chased a cat.", "She sang."], {"tau": 0.1, "alpha": 0.9, "parser": False}
    path = sieve.save_page(tmp_path / "mine.html", str(folders("bert")), texts, role=tmp_path / "mine.toml", **given)
    saved, wrong = offline(path)
    saved.locator("#table-controls select").select_option("word before")
    saved.locator("#table-controls").get_by_label("All", exact=True).check()
    cells = saved.locator("#table tbody td:first-child")
    expect(cells).to_have_text(["Wword before"] * 6)
    expect(saved.locator("#facts")).to_contain_text("word before")
    assert wrong == []


def test_a_printed_page_keeps_the_colours_of_its_grid_and_its_arcs(folders, offline, tmp_path):
    path = sieve.save_page(tmp_path / "one.html", str(folders("bert")), ["The old dog chased a cat."], parser=False)
    saved, wrong = offline(path)
    expect(saved.locator("#table tbody tr").first).to_be_visible()
    paper = saved.pdf(print_background=False)
    drawn = b"".join(
        zlib.decompressobj().decompress(stream)  # what follows is left out: a picture may hold the words of its end
        for stream in re.findall(rb"FlateDecode.*?stream\r?\n(.*?)\r?\nendstream", paper, re.DOTALL)
    )
    red, green, blue = (part / 255 for part in ImageColor.getrgb(LOOKS["local"].color))
    filled = [tuple(map(float, colour.split())) for colour in re.findall(rb"([\d. ]+) rg\n", drawn)]
    assert any(colour == pytest.approx((red, green, blue), abs=0.001) for colour in filled)
    saved.emulate_media(media="print")
    layers = saved.locator("canvas").evaluate_all("(all) => all.map((canvas) => getComputedStyle(canvas).opacity)")
    assert set(layers) == {"0.999"}, (
        "a canvas without a layer of its own clears the one below it, as Chromium prints it"
    )
    assert wrong == []


def test_a_saved_comparison_draws_where_a_head_attends_more_and_where_less(folders, offline, tmp_path):
    text, names = "The old dog chased a cat.", [str(folders(family)) for family in ("bert", "electra")]
    path = sieve.save_page(tmp_path / "two.html", names[0], [text, "She sang."], compare=names[1], device="cpu")
    a, b = (sieve.attention(name, text).weights[1, 2] for name in names)
    saved, wrong = offline(path)
    saved.get_by_role("grid").nth(1).get_by_role("gridcell", name=re.compile("^Layer 1, head 2: ")).click()
    expect(saved.get_by_role("heading", name="L1 H2: electra minus bert")).to_be_visible()
    view = saved.locator(".arcs-of-heads").last
    view.get_by_role("listbox").first.get_by_role("option").nth(3).click()
    expect(view.locator(".summary")).to_contain_text("From “")
    sign, size = re.search(r"([+−])(\d\.\d\d)", view.locator(".summary").inner_text()).groups()
    largest = max((b - a)[3], key=abs)
    assert (sign == "+") == (largest > 0)
    assert abs(float(size) - abs(largest)) < 0.015, "weights are in 256 steps of their square roots"
    assert violations(saved) == []
    assert wrong == []
