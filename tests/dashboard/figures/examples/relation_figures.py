"""The figures of relations, drawn of two small trees and of a table."""

from collections import Counter

import numpy as np
import pandas as pd
from drawn import Drawn

from attention_sieve.core.texts.relations import ROOT, Dependencies
from attention_sieve.core.texts.tokens import Words
from attention_sieve.dashboard.figures.relations.bars import relation_bars
from attention_sieve.dashboard.figures.relations.distance_histogram import MOST, distance_histogram, distances

HOSTILE = ("<img src=x onerror=alert(1)>", "'] + alert(2) + ['", '"\\u0022</script>', "a\x00b\uffff")


def tree(heads, relations):
    """Dependencies of a text of one segment; heads by place, -1 for a root."""
    spans = np.array([(4 * place, 4 * place + 3) for place in range(len(heads))]).reshape(-1, 2)
    words = Words(segments=np.zeros(len(heads), int), spans=spans)
    return Dependencies(words=words, heads=np.array(heads, int), relations=tuple(relations))


# She sold the old red car . -- two texts of other lengths
FIRST = tree([1, ROOT, 5, 5, 5, 1, 1], ["nsubj", "root", "det", "amod", "amod", "dobj", "punct"])
SECOND = tree([1, 2, ROOT], ["det", "nsubj", "root"])


def some_rows(**changes):
    rows = pd.DataFrame(
        {
            "relation": ["all", "det", "amod"],
            "cases": [300, 120, 40],
            "documents": pd.array([None] * 3, dtype="Int64"),
            "direction": ["dependent-to-head", "dependent-to-head", "head-to-dependent"],
            "held_out": [0.4, 0.9, 0.5],
            "held_out_low": [0.35, 0.84, 0.36],
            "held_out_high": [0.45, 0.94, 0.64],
            "baseline": [0.3, 0.95, 0.6],
            "offset": [1, -2, 1],
            "p": [0.001, 0.5, 0.9],
            "held_out_heads": [
                "L0 H1 dependent-to-head",
                "L1 H2 dependent-to-head or L0 H0 head-to-dependent",
                "L1 H0 head-to-dependent",
            ],
            "random": [0.29, np.nan, 0.61],
        }
    )
    return rows.assign(**changes)


MANY = {f"relation {number}": Counter({number - 9: 3 + number, 1: 2}) for number in range(MOST + 2)}
NO_ROWS = some_rows()[:0]
HALVES = (
    (("dependent-to-head", 0, 1), ("dependent-to-head", 0, 1)),
    (("dependent-to-head", 1, 2), ("head-to-dependent", 0, 0)),
    (("head-to-dependent", 1, 0), ("head-to-dependent", 1, 0)),
)
"""The heads of these rows."""
FIGURES = Drawn(
    {
        "bars": lambda: relation_bars(some_rows(), HALVES),
        "bars with control": lambda: relation_bars(some_rows(), HALVES, 0.1, "bundled (random weights, seed 0)"),
        "bars, hostile": lambda: relation_bars(some_rows(relation=HOSTILE[1:]), HALVES),
        "bars, none": lambda: relation_bars(NO_ROWS, ()),
        "distances": lambda: distance_histogram(distances([FIRST, SECOND]), ["det", "nsubj", "amod"]),
        "distances, hostile": lambda: distance_histogram({name: Counter({2: 3}) for name in HOSTILE}, HOSTILE),
        "distances, many": lambda: distance_histogram(MANY, list(MANY)),
        "distances, none": lambda: distance_histogram({}, ["det"]),
    }
)
