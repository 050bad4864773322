"""The corpus: a file that is uploaded, and one that the browser refuses."""

from playwright.sync_api import expect
from steps import cells, choose, error, expect_cells_other_than, give_file

TEXTS = "\n".join(
    [
        "The patient nurse gently washed the small wound.",
        "A stray dog loudly chased two frightened cyclists.",
        "My cousin finally sold his rusty van.",
    ]
)


def test_a_file_is_scored_and_a_bad_or_too_large_one_is_said_while_the_rest_of_the_page_stays(visit, tmp_path):
    page = visit("/roles")
    before = cells(page)
    choose(page, "Corpus", "upload a file")
    expect(page.get_by_text("not part of the link")).to_be_visible()
    give_file(page, "texts.txt", TEXTS.encode())
    expect(page.get_by_text("Over 3 texts at tau 3,")).to_be_visible()
    expect_cells_other_than(page, before)
    give_file(page, "latin.txt", "fine\ncaf\xe9 noir".encode("latin-1"))
    expect(error(page)).to_contain_text("Line 2 is not UTF-8: byte 0xE9")
    expect(page.get_by_text("How it is computed")).to_be_visible()
    large = tmp_path / "large.txt"
    large.write_bytes(b"x" * 20_000_001)
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(large)
    # Where the pointer rests on the file, a tooltip says the same.
    expect(page.get_by_role("alert").get_by_text("File must be 20.0MB or smaller.")).to_be_visible()
    expect(page.get_by_text("How it is computed")).to_be_visible()
