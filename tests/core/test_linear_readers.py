"""Readers need a second for the worst input that they accept, on which a quadratic one would need minutes or hours."""

import time
from contextlib import suppress

import pytest

from attention_sieve.core.coreference.mentions import (
    MAX_MENTIONS,
    Marked,
    guessed_sentence_ends,
    marked_words,
    with_heads,
)
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import MAX_BYTES, MAX_CHARACTERS, read_file

MARK = b"\xef\xbb\xbf"
N_BYTES = MAX_BYTES // 4
"""Of a file: in time that grows with the square, this takes minutes at least."""
MOST_SECONDS = 5
"""Of the processor: about ten times what the slowest of them needs."""


def closing_brackets():
    size = MAX_CHARACTERS // 2 - 1
    text = "a " + ") " * size
    spans = [(0, 1), *((2 + 2 * place, 3 + 2 * place) for place in range(size))]
    return lambda: guessed_sentence_ends(text, spans)


def long_mentions():
    """As many as a text may have, each with a head word of its own, so that no parser is asked."""
    size = 30 * MAX_MENTIONS
    mentions = [Marked(place, size - place, "x", head=place) for place in range(MAX_MENTIONS)]
    text = marked_words("long", ["word"] * size, mentions, "here", sentence_ends=(size,))
    return lambda: with_heads([text])


def file_of(name, start, unit, end=b""):
    """A large file of such units; one that cannot be read takes its time, too."""

    def reader():
        content = start + unit * ((N_BYTES - len(start + end)) // len(unit)) + end

        def read():
            with suppress(AnalysisError):
                read_file(name, content)

        return read

    return reader


WORST = {
    "closing brackets": closing_brackets,
    "long mentions": long_mentions,
    "byte order marks": file_of("a.txt", b"", MARK, b"text"),
    "lines": file_of("a.txt", b"", b"a\n"),
    "segments": file_of("a.txt", b"a", b" ||| a"),
    "quotes": file_of("a.csv", b"text\n", b'"'),
    "cells": file_of("a.tsv", b"text", b"\tx"),
    "JSON in JSON": file_of("a.json", b"", b"["),
    "long numbers": file_of("a.json", b"[", b"9", b"]"),
    "objects": file_of("a.jsonl", b"", b'{"text": "a"}\n'),
    "word pieces": file_of("a.json", b'[{"tokens": ["a"', b', "##a"', b"]}]"),
    "comments": file_of("a.conllu", b"", b"# newdoc\n"),
    "words of a sentence": file_of("a.conllu", b"", b"1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n"),
}


@pytest.mark.parametrize("reader", WORST.values(), ids=WORST)
def test_the_worst_input_takes_seconds(reader):
    read = reader()
    began = time.process_time()
    read()
    assert time.process_time() - began < MOST_SECONDS


def test_a_sentence_ends_after_what_its_full_stop_closes():
    text = 'He said "no." ) Then'
    spans = [(0, 2), (3, 7), (8, 9), (9, 11), (11, 12), (12, 13), (14, 15), (16, 20)]
    assert guessed_sentence_ends(text, spans) == (6, 7, 8)
