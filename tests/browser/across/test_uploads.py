"""The corpus: files of each kind, and what is said about those that cannot be read."""

import json

from playwright.sync_api import expect
from steps import cells, choose, error, expect_cells_other_than, give_file, type_texts, upload

from attention_sieve.dashboard import wording

FIRST = [
    "The patient nurse gently washed the small wound.",
    "A stray dog loudly chased two frightened cyclists.",
    "My cousin finally sold his rusty van.",
    "Nobody ever reads the tiny notice on the gate.",
]
SECOND = [
    "The wound was small.",
    "The cyclists were frightened.",
    "His van was rusty.",
    "The notice is tiny.",
]
PAIRS = list(zip(FIRST, SECOND))
FILES = [
    ("texts.txt", "\n".join(FIRST), 4),
    ("pairs.csv", "sentence1,sentence2\n" + "\n".join(f"{a},{b}" for a, b in PAIRS[:3]), 3),
    ("pairs.tsv", "question\tsentence\n" + "\n".join(f"{a}\t{b}" for a, b in PAIRS), 4),
    ("texts.json", json.dumps(FIRST[1:]), 3),
    ("pairs.jsonl", "\n".join(json.dumps({"text_a": a, "text_b": b}) for a, b in PAIRS), 4),
    ("words.jsonl", "\n".join(json.dumps({"words": text.split()}) for text in SECOND[:3]), 3),
]
"""Name, content and number of texts; neighbours differ in the number."""
BAD_FILES = [
    ("latin.txt", "fine\ncaf\xe9 noir".encode("latin-1"), "Line 2 is not UTF-8: byte 0xE9"),
    ("empty.txt", b" \n", "The file is empty."),
    (
        "broken.csv",
        b'sentence1,sentence2\none,two\nthree,"four',
        "starts on line 3 opens a quote that is never closed.",
    ),
    ("missing.tsv", b"sentence1\tsentence2\none\ttwo\nthree\n", "Line 3 has 1 cell and the header 2."),
    ("broken.jsonl", b'{"text": "One."}\n{"text": "Two."\n', "line 2, character"),
    ("many.txt", b"Many texts.\n" * 5_001, "There are 5,001 texts and at most 5,000 are read."),
]


def test_a_file_of_each_kind_is_scored_long_texts_are_left_out_or_cut_and_an_unknown_table_asks_for_its_columns(visit):
    page = visit("/roles")
    before = cells(page)
    choose(page, "Corpus", "upload a file")
    expect(page.get_by_text("not part of the link")).to_be_visible()
    for name, content, n_texts in FILES:
        give_file(page, name, content.encode())
        expect(page.get_by_text(f"Over {n_texts} texts at tau 3,")).to_be_visible()
        expect_cells_other_than(page, before)
        before = cells(page)
    # Long texts are left out or cut, as the reader says.
    give_file(page, "long.txt", "\n".join([*FIRST, "word " * 700]).encode())
    expect(page.get_by_text("text 5 (702 tokens)")).to_be_visible()
    expect(page.get_by_text("Over 4 texts at tau 3,")).to_be_visible()
    page.get_by_role("radio", name="cut them").click()
    expect(page.get_by_text("Over 5 texts at tau 3,")).to_be_visible()
    # An unknown table asks for its columns and is then read.
    rows = "\n".join(f"{i},{a},{b}" for i, (a, b) in enumerate(PAIRS))
    give_file(page, "table.csv", f"number,first,second\n{rows}".encode())
    expect(error(page)).to_contain_text('"number", "first", "second"')
    choose(page, "Column with the text", "first")
    expect(page.get_by_text("Over 4 texts at tau 3,")).to_be_visible()
    before = cells(page)
    choose(page, "Column with the second segment", "second")
    expect_cells_other_than(page, before)
    expect(page.get_by_text("Over 4 texts at tau 3,")).to_be_visible()


def test_a_bad_or_too_large_file_is_said_in_a_sentence_and_the_rest_of_the_page_stays(visit, tmp_path):
    page = visit("/roles")
    choose(page, "Corpus", "upload a file")
    for name, content, sentence in BAD_FILES:
        give_file(page, name, content)
        expect(error(page)).to_contain_text(sentence)
        expect(page.get_by_role("heading", name="Roles")).to_be_visible()
        expect(page.get_by_text("How it is computed")).to_be_visible()
    give_file(page, "texts.txt", FILES[0][1].encode())
    expect(page.get_by_text("Over 4 texts at tau 3,")).to_be_visible()
    large = tmp_path / "large.txt"
    large.write_bytes(b"x" * 20_000_001)
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(large)
    # Where the pointer rests on the file, a tooltip says the same.
    expect(page.get_by_role("alert").get_by_text("File must be 20.0MB or smaller.")).to_be_visible()
    expect(page.get_by_text("How it is computed")).to_be_visible()


def test_a_corpus_can_be_typed_an_empty_segment_in_it_is_named_and_one_text_has_scores_and_no_test(visit):
    page = visit("/roles")
    choose(page, "Corpus", "type texts")
    expect(page.get_by_text(wording.WAIT_TYPED)).to_be_visible()
    type_texts(page, f"{FIRST[0]}\n ||| {SECOND[0]}", wording.CORPUS_TYPED)
    expect(error(page)).to_contain_text("Line 2: segment 1 of 2 is empty.")
    type_texts(page, "\n".join(FIRST[:3]), wording.CORPUS_TYPED)
    expect(page.get_by_text("Over 3 texts at tau 3,")).to_be_visible()
    upload(page, "one.txt", FIRST[0])
    expect(page.get_by_text("Over 1 text at tau 3,")).to_be_visible()
    expect(page.get_by_test_id("stAlertContentInfo")).to_be_visible()
