"""The files of a corpus, small and sound, for tests that spoil them."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from attention_sieve.core.corpus.manifest import CorpusSettings
from attention_sieve.core.corpus.results import cells_of
from attention_sieve.core.corpus.statistics import EVERYTHING, Stratum, statistics_of, write_statistics
from attention_sieve.core.relations.analysis import RELATION_CASES
from attention_sieve.core.roles.analysis import ROLE_SCORES
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.statistics.series import SCORE_BINS, Series


def manifest():
    """A planned corpus of one shard."""
    return json.dumps(
        {
            "format": 1,
            "checkpoint": "bundled",
            "fingerprint": "a1",
            "tokenizer": "b2",
            "random_weights": None,
            "settings": asdict(CorpusSettings(off=((0, 1),))),
            "texts": "a.txt",
            "text_columns": ["text"],
            "shard_size": 10,
            "inputs": [{"path": "a.txt", "n_bytes": 4, "sha256": "c3"}],
            "shards": [{"name": "000000", "n_texts": 2, "sha256": "d4"}],
            "versions": {"torch": "2"},
        }
    ).encode()


def statistics():
    """Statistics of two texts, of a checkpoint of 2 layers x 3 heads."""
    numbers = {
        name: np.arange(2 * np.prod(cells)).reshape(2, *cells) % 7 / 3 + 0.5
        for name, cells in cells_of(CorpusSettings(), 2, 3).items()
    }
    numbers[RELATION_CASES] += 10
    roles = Series(values=numbers[ROLE_SCORES], bins=SCORE_BINS, uniform=np.ones((2, len(ROLES), 2)))
    series = {name: Series(values=values) for name, values in numbers.items()} | {ROLE_SCORES: roles}
    facts = {"checkpoint": "bundled", "fingerprint": "a1", "texts": "b2", "settings": asdict(CorpusSettings())}
    facts |= {"n_texts": 2, "n_too_long": 0, "n_without_token": 0}
    with tempfile.NamedTemporaryFile() as file:
        groups = {(EVERYTHING, Stratum("length", "1 to 8")): np.arange(2)}
        write_statistics(Path(file.name), statistics_of(series, groups), facts)
        return Path(file.name).read_bytes()
