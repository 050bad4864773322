"""What the README says of adding an analysis and a run is enough: its programs are added here, and work."""

import argparse
import re
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attention_sieve import calls
from attention_sieve.core.analysis_command import add_command
from attention_sieve.core.answering import answer, find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.begun_runs import remember_run
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.batches import MapCollector, collect
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.running import STOP, Stopped, read_progress
from attention_sieve.core.texts.text import text_of
from attention_sieve.dashboard import run_kinds, run_list, runs

PAGE = (Path(__file__).parents[2] / "core" / "README.md").read_text("utf-8")
TEXTS = ["The black cat quickly chased two birds.", "She ran."]


def program(heading, n_blocks=1):
    """What the first blocks of Python under a heading define."""
    section = PAGE[PAGE.index(f"\n## {heading}\n") :]
    blocks, names = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL), {}
    for block in blocks[:n_blocks]:
        exec(block, names)
    return names


@pytest.fixture(scope="module")
def added():
    return program("Add an analysis")["REACH_ANALYSIS"]


def by_hand(checkpoint, longest):
    """Mean over texts and queries of the distance to each key, weighted by attention."""
    prepared, _ = prepare_all(checkpoint, [text_of((text,), "A text") for text in TEXTS], PassSettings(), "error")
    of_texts = []
    for batch in collect(
        checkpoint, list(prepared.values()), PassSettings(), partial(MapCollector, precision=np.float32)
    ):
        for _, maps in batch:
            rows = [
                sum(min(abs(query - key), longest) * maps[..., query, key] for key in range(maps.shape[-1]))
                for query in range(maps.shape[-2])
            ]
            of_texts.append(sum(rows) / len(rows))
    return sum(of_texts) / len(of_texts)


def test_an_analysis_that_is_added_has_a_finding_a_call_and_a_command(added, loaded, folders, tmp_path):
    checkpoint = loaded("bert")
    expected = by_hand(checkpoint, 3)
    settings = type(added.settings)(longest=3)
    found = find(added, checkpoint, [text_of((text,), "A text") for text in TEXTS], settings)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    called = calls.call_of(added)(folders("bert"), TEXTS, longest=3)
    np.testing.assert_allclose(called.table["reach"], expected.ravel(), rtol=1e-4)
    assert "longest: distances above this count as this" in calls.call_of(added).__doc__
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers(), added)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    files = ["--texts", str(tmp_path / "texts.txt"), "--output", str(tmp_path / "reach.csv")]
    options = parser.parse_args(["reach", "--checkpoint", str(folders("bert")), "--longest", "3", *files])
    options.answer = answer
    options.run(options)
    written = pd.read_csv(tmp_path / "reach.csv")
    np.testing.assert_allclose(written["reach"], expected.ravel(), rtol=1e-4)
    assert set(written["longest"]) == {3}
    with pytest.raises(AnalysisError, match="longest"):
        calls.call_of(added)(folders("bert"), TEXTS, longest="far")


def test_a_run_that_is_added_is_stopped_goes_on_and_is_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    names = program("Add a run", n_blocks=2)
    kind = names["COUNT_WORDS"]
    monkeypatch.setattr(run_kinds, "KINDS", kinds := {**run_kinds.KINDS, "count-words": kind})
    monkeypatch.setattr(runs, "KINDS", kinds)
    monkeypatch.setattr(run_list, "KINDS", kinds)
    files = []
    for number in range(3):
        files.append(tmp_path / f"{number}.txt")
        files[-1].write_text("two words\n" * (number + 1))
    folder, parts = kind.folder(), count()

    class Journal(names["Journal"]):
        def part(self, *how_far):
            if next(parts) == 2:
                (folder / STOP).touch()
            super().part(*how_far)

    monkeypatch.setitem(names, "Journal", Journal)
    with pytest.raises(Stopped):
        names["count_words"](files, folder)
    stopped = read_progress(folder)
    assert (stopped.state, stopped.step, stopped.steps) == ("stopped", 1, 3)
    remember_run(folder, ("count-words", f"--output={folder}"))
    (listed,) = run_list.listed()
    assert (listed.folder, listed.kind, listed.begun.command[0]) == (folder, kind, "count-words")
    names["count_words"](files, folder)
    assert read_progress(folder).state == "finished"
    assert [(folder / f"{number}.count").read_text() for number in range(3)] == ["2", "4", "6"]
