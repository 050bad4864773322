"""Messages stay short, whatever they quote."""

from pathlib import Path

import pytest

from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.commands import make_folder
from attention_sieve.core.corpus.results import open_results
from attention_sieve.core.corpus.texts.inputs import input_files
from attention_sieve.core.errors import LONGEST_QUOTED, AnalysisError, quoted, shortened
from attention_sieve.core.texts.text import read_file

LONG = "a b " * 5_000
"""Blanks and all, as names of files, folders and columns may be."""
GIVEN = {
    "folder of a checkpoint": lambda: find_checkpoint(f"/{LONG}"),
    "folder below this one": lambda: find_checkpoint(f"./{LONG}"),
    "share": lambda: find_checkpoint(f"\\\\{LONG}"),
    "hub id": lambda: find_checkpoint(f"a/{LONG}"),
    "folder to make": lambda: make_folder(Path("/dev/null") / LONG),
    "folder of a corpus": lambda: input_files(LONG),
    "folder of a corpus that may be there": lambda: input_files(LONG[:200]),
    "folder of results": lambda: open_results(Path(LONG[:300])),
    "kind of file": lambda: read_file(f"a.{LONG}", b"x"),
    "column": lambda: read_file("a.csv", b"x,y\n1,2\n", columns=(LONG,)),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_a_message_quotes_a_hundred_characters_of_what_it_was_given(given):
    with pytest.raises(AnalysisError) as caught:
        given()
    assert str(caught.value).count("a b") <= LONGEST_QUOTED // 4
    assert len(str(caught.value)) < 300


def test_both_ends_of_a_long_name_are_kept_and_a_short_one_is_left_as_it_is():
    assert shortened("a" * 100) == "a" * 100
    assert shortened("a" * 60 + " " + "b" * 60) == "a" * 49 + "…" + "b" * 49
    assert str(AnalysisError(f"There is no {'a' * 60 + 'b' * 60} here.")) == f"There is no {'a' * 49}…{'b' * 49} here."


def test_what_was_given_is_quoted_up_to_its_hundredth_character():
    assert quoted("it's") == '"it\'s"'
    assert quoted("a " * 60) == "'" + "a " * 49 + "…"


def test_a_message_steers_no_terminal_whatever_it_quotes():
    assert str(AnalysisError("No \x1b[2Jname\x9b\x07.\nBut a line.")) == "No \\x1b[2Jname\\x9b\\x07.\nBut a line."
