"""The card of a head, saved with one click: on Inspect, and by who has found the head of the riddle."""

from xml.etree import ElementTree

from PIL import Image
from playwright.sync_api import expect
from steps import cell

from attention_sieve.dashboard.figures.card import HEIGHT, WIDTH


def saved(page, kind, folder):
    """The file that a click brings."""
    button = page.get_by_role("button", name=f"Card as {kind}")
    expect(button).to_be_visible(timeout=60_000)
    with page.expect_download() as download:
        button.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def written(path):
    root = ElementTree.parse(path).getroot()
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_one_click_saves_the_card_of_the_chosen_head(visit, tmp_path):
    page = visit("/?text=The+dog+chased+%3Cb%3Ecats%3C%2Fb%3E.&head=1-8")
    png, svg = saved(page, "PNG", tmp_path), saved(page, "SVG", tmp_path)
    assert png.name == "attention-sieve_all-MiniLM-L6-v2_L1-H8_card.png"
    with Image.open(png) as image:
        assert image.size == (WIDTH, HEIGHT)
    said = {"Looks at the next token", "all-MiniLM-L6-v2  ·  layer 1, head 8", "“The dog chased <b>cats</b>.”"}
    assert said <= set(written(svg))


def test_who_finds_the_head_of_the_riddle_saves_its_card_with_the_number_of_clicks(visit, tmp_path):
    page = visit("/", newcomer=True)
    cell(page, 5, 2).click()
    expect(page.get_by_role("heading", level=2)).to_have_text("Close: one more try.")
    expect(page.get_by_role("button", name="Card as PNG")).to_have_count(0)
    cell(page, 2, 4).click()
    expect(page.get_by_role("heading", level=2)).to_have_text("Found it: L2 H4.")
    assert "I found it in 2 clicks: his → brother, 64%" in written(saved(page, "SVG", tmp_path))
