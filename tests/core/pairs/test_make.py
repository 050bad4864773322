"""Pairs that are made of texts and code: brackets, and names with the one place that binds them."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_sieve.__main__ import main
from attention_sieve.core.errors import TextError
from attention_sieve.core.pairs.make import BRACKETS, DEF_USE, brackets, passages
from attention_sieve.core.texts.given import NO_PAIR
from attention_sieve.core.texts.text import read_file

CODE = '''\
import os

class Shelf:
    def total(self, prices: list, *, ü="(", rate=os.x):  # a :)
        """(said"""
        sums = [price * rate for price in prices if price(0)]
        for one in sums:
            sums2 = one
            sums2 += 1
        try:
            import a.b as numbers
            numbers[ü](lambda one: one + sums2, prices)
        except OSError as error:
            raise error
        def total(total):
            nonlocal sums
            return total, self, print
        return total(sums)
'''


def marked(pairs, text):
    return [(text[slice(*pair.start[1:])], pair.start[1], pair.end[1]) for pair in pairs]


def test_brackets_are_paired_by_hand():
    assert marked(brackets("f(a[0], {1: ()})"), "f(a[0], {1: ()})") == [
        ("]", 5, 3),
        (")", 13, 12),
        ("}", 14, 8),
        (")", 15, 1),
    ]
    assert brackets("a) b (c] d)") == []
    assert marked(brackets("('(')", {2}), "('(')") == [(")", 4, 0)]


@given(st.text("()[]{}a ", max_size=30))
def test_what_is_between_two_paired_brackets_has_no_bracket_without_its_own(text):
    found = brackets(text)
    for pair in found:
        inside = text[pair.end[1] + 1 : pair.start[1]]
        while (shorter := re.sub(r"\(\)|\[\]|\{\}", "", re.sub("[a ]", "", inside))) != inside:
            inside = shorter
        assert inside == ""
        assert text[pair.end[1]] + text[pair.start[1]] in ("()", "[]", "{}")
    ends = [place for pair in found for place in (pair.start[1], pair.end[1])]
    assert len(ends) == len(set(ends))


def test_a_name_leads_to_the_one_place_that_binds_it():
    (found,) = passages(DEF_USE, "a.py", CODE)
    assert found.segments[0].startswith("def total(self, prices")
    pairs = {name: [] for name in ("self", "prices", "rate", "price", "one", "numbers", "ü", "total")}
    for name, use, bound in marked(found.pairs, found.segments[0]):
        pairs[name].append((use, bound))
    at = {name: [match.start() for match in re.finditer(rf"\b{name}\b", found.segments[0])] for name in pairs}
    assert pairs["self"] == [(at["self"][1], at["self"][0])]
    assert sorted(pairs["prices"]) == [(at["prices"][place], at["prices"][0]) for place in (1, 2)]
    assert pairs["rate"] == [(at["rate"][1], at["rate"][0])]
    assert sorted(pairs["price"]) == [(at["price"][place], at["price"][1]) for place in (0, 2)]
    assert sorted(pairs["one"]) == [(at["one"][1], at["one"][0]), (at["one"][3], at["one"][2])]
    assert pairs["numbers"] == [(at["numbers"][1], at["numbers"][0])]
    assert pairs["ü"] == [(at["ü"][1], at["ü"][0])]
    # The inner function of this name, and its parameter; sums, sums2 and error are bound elsewhere too.
    assert sorted(pairs["total"]) == [(at["total"][3], at["total"][2]), (at["total"][4], at["total"][1])]


def test_brackets_of_code_pass_over_strings_and_comments():
    (found,) = passages(BRACKETS, "a.py", CODE.replace("\n", "\r\n"))
    assert "\r" not in found.segments[0]
    assert [closing for closing, *_ in marked(found.pairs, found.segments[0])] == [*"))]]", *")))"]


def test_definitions_of_this_program_lead_to_the_same_name_before_or_after():
    root = Path(__file__).parents[3] / "core" / "relations"
    found = [one for path in sorted(root.glob("*.py")) for one in passages(DEF_USE, path.name, path.read_text("utf-8"))]
    pairs = [
        (one.segments[0][slice(*pair.start[1:])], one.segments[0][slice(*pair.end[1:])])
        for one in found
        for pair in one.pairs
    ]
    assert len(pairs) > 500
    assert all(use == bound and use.isidentifier() for use, bound in pairs)


def test_paragraphs_of_text_are_passages_and_a_file_is_a_document(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("One (two\nthree).\n \nNone here.\n\n[Four] (five)\n")
    (tmp_path / "b.py").write_text("def f(x):\n    return x\n")
    output = tmp_path / "pairs.jsonl"
    files = [str(tmp_path / name) for name in ("a.txt", "b.py")]
    assert main(["pairs", "brackets", *files, "--output", str(output)]) == 0
    texts = read_file(output.name, output.read_bytes())
    assert [text.segments for text in texts] == [("One (two three).",), ("[Four] (five)",), ("def f(x):     return x",)]
    assert [text.document for text in texts] == [files[0], files[0], files[1]]
    assert [sum(head != NO_PAIR for head in text.pairs.heads) for text in texts] == [1, 2, 1]
    assert [json.loads(line)["format"] for line in output.read_text().splitlines()] == [1, 1, 1]
    assert main(["pairs", "brackets", files[0], "--output", str(output)]) == 0
    assert {text.document for text in read_file(output.name, output.read_bytes())} == {None}
    assert main(["pairs", "def-use", *files, "--output", str(output)]) != 0
    assert "a.txt does not end in .py, and uses of names are found in Python code alone." in capsys.readouterr().err
    (tmp_path / "c.txt").write_text("Nothing.")
    assert main(["pairs", "brackets", str(tmp_path / "c.txt"), "--output", str(output)]) != 0
    assert "There are no brackets in these files. Give others." in capsys.readouterr().err


def test_words_of_a_translation_lead_to_the_only_word_that_they_are_aligned_to(tmp_path, capsys):
    for name, content in (
        ("en", "the red car\nyes\n"),
        ("fr", "la voiture  rouge\noui oui\n"),
        ("links", "0-0 2-1 1-2\n"),
    ):
        (tmp_path / name).write_text(content)
    files, output = [str(tmp_path / name) for name in ("en", "fr", "links")], tmp_path / "pairs.jsonl"
    assert main(["pairs", "alignments", *files, "--output", str(output)]) != 0
    assert "The three files have 2, 2, 1 lines." in capsys.readouterr().err
    (tmp_path / "links").write_text("0-0 2-1 1-2 2-0\n0-0 0-1\n")
    assert main(["pairs", "alignments", *files, "--output", str(output)]) == 0
    first, second = read_file(output.name, output.read_bytes())
    assert first.segments == ("the red car", "la voiture  rouge")
    assert first.pairs.heads == (NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, 2, 1), "la is aligned to two words"
    assert second.pairs.heads == (NO_PAIR, 0, 0)
    (tmp_path / "links").write_text("0-0\n0-2\n")
    assert main(["pairs", "alignments", *files, "--output", str(output)]) != 0
    assert "Line 2: '0-2' joins no word of 1 to one of 2." in capsys.readouterr().err
    assert main(["pairs", "alignments", *files[:2], "--output", str(output)]) != 0
    assert "Alignments are made of 3 files, and 2 are given." in capsys.readouterr().err


@pytest.mark.parametrize("code", ["def f(:\n", "x = '\0'\n", "def f():\nreturn 1\n"])
def test_code_that_cannot_be_read_is_named_with_its_line(code):
    with pytest.raises(TextError, match=r"^a\.py.* is not Python code that can be read"):
        list(passages(DEF_USE, "a.py", code))
