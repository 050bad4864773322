"""Readers take time of a processor in proportion to what they read, also on their worst input.

Compared are the shortest of several turns in one process on inputs of which one is 4 times as long; a reader that is
quadratic would take 16 times as long.
"""

import time
from contextlib import suppress

import numpy as np
import pytest

from attention_sieve.core.coreference.marked_texts import Marked, guessed_sentence_ends, marked_words, with_heads
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import decoded, read_file

MARK = b"\xef\xbb\xbf"
TURNS = 3
MOST = 9
"""Times the time of the shorter input."""
NOISE = 0.05
"""Seconds."""


def marks(size):
    content = MARK * size + b"text"
    return lambda: decoded(content)


def closing(size):
    text = "a " + ") " * size
    spans = [(0, 1), *((2 + 2 * place, 3 + 2 * place) for place in range(size))]
    return lambda: guessed_sentence_ends(text, spans)


def long_mentions(size):
    """As many long mentions as fit, each with a head word of its own, so that no parser is asked."""
    n_mentions = size // 30
    mentions = [Marked(place, size - place, "x", head=place) for place in range(n_mentions)]
    text = marked_words("long", ["word"] * size, mentions, "here", sentence_ends=(size,))
    return lambda: with_heads([text])


def file_of(name, start, unit, end=b""):
    """A file of as many units; one that cannot be read takes its time, too."""

    def reader(size):
        content = start + unit * size + end

        def read():
            with suppress(AnalysisError):
                read_file(name, content)

        return read

    return reader


WORST = {
    # Half as many fit into memory that the process has already; for more, each time the system has to give it pages.
    "byte order marks": (marks, 1_000_000),
    "closing brackets": (closing, 100_000),
    "long mentions": (long_mentions, 10_000),
    "lines": (file_of("a.txt", b"", b"a\n"), 2_000),
    "segments": (file_of("a.txt", b"a", b" ||| a"), 20_000),
    "quotes": (file_of("a.csv", b"text\n", b'"'), 500_000),
    "cells": (file_of("a.tsv", b"text", b"\tx"), 200_000),
    "JSON in JSON": (file_of("a.json", b"", b"["), 500_000),
    "long numbers": (file_of("a.json", b"[", b"9", b"]"), 500_000),
    "objects": (file_of("a.jsonl", b"", b'{"text": "a"}\n'), 1_000),
    "word pieces": (file_of("a.json", b'[{"tokens": ["a"', b', "##a"', b"]}]"), 100_000),
    "comments": (file_of("a.conllu", b"", b"# newdoc\n"), 20_000),
    "words of a sentence": (file_of("a.conllu", b"", b"1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n"), 2_000),
}


@pytest.mark.parametrize(("reader", "size"), WORST.values(), ids=WORST)
def test_four_times_as_much_takes_about_four_times_as_long(reader, size):
    short, long = reader(size), reader(4 * size)
    took = np.array([[seconds(short), seconds(long)] for _ in range(TURNS)]).min(axis=0)
    assert took[1] < MOST * took[0] + NOISE


def seconds(work):
    begun = time.process_time()
    work()
    return time.process_time() - begun


def test_byte_order_marks_are_no_text_however_many():
    assert decoded(MARK * 3 + "ä".encode()) == "ä"


def test_a_sentence_ends_after_what_its_full_stop_closes():
    text = 'He said "no." ) Then'
    spans = [(0, 2), (3, 7), (8, 9), (9, 11), (11, 12), (12, 13), (14, 15), (16, 20)]
    assert guessed_sentence_ends(text, spans) == (6, 7, 8)
