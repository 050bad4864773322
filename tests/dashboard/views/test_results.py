"""Pages on a results folder without a browser: what they draw comes from its statistics."""

import base64
import os
import shutil
import sys

import numpy as np
import pytest
import streamlit as st
from corpus_material import corpus, write_corpus
from reading import said, sent

from core.corpus.manifest import STATISTICS
from core.corpus.paired import DIFFERENCES
from core.corpus.recent import recent_results
from core.corpus.results import open_results
from core.roles.hypotheses import Criterion
from dashboard import controls, wording
from dashboard.offers import results
from dashboard.plain import WORD_JOINER
from dashboard.views.results import raw
from dashboard.views.results import wording as words
from dashboard.views.surface import wording as surface_words

N_TEXTS = 12
ROLE_TABS = ("Combinations", "Per layer", "p-values", "Score distributions", words.PARTS, "Table")
COMPARE_TABS = ("Which heads", "Grids", "Table")
SURFACE_TABS = (
    surface_words.SHARES,
    surface_words.ENTROPY,
    surface_words.HEADS,
    surface_words.LAYERS,
    words.PARTS,
    surface_words.TABLE,
)


@pytest.fixture(scope="module")
def folders_of_results(store, tmp_path_factory, small):
    """Results of two checkpoints of one shape on the same texts."""
    base = tmp_path_factory.mktemp("corpora")
    texts = write_corpus(base / "texts", N_TEXTS)
    made = []
    for name, seed in (("first", ()), ("second", ("--random-weights", 1))):
        options = ("--checkpoint", small("bert"), "--texts", texts, "--shard-size", 5, "--workers", 1, "--no-parser")
        made.append(base / name)
        assert corpus("run", *options, *seed, "--output", made[-1], "--questions", "roles,surface") == 0
    assert corpus("compare", *made) == 0
    return made


@pytest.fixture
def opened(app, folders_of_results):
    """opened(page, **link) -> that page on the first results."""

    def page(name, **link):
        chosen = {"corpus": controls.RESULTS, "results": "first", "corpus_text": ""}
        return app(name, **(chosen | link))

    return page


def told(at):
    """What the page says, without the signs that keep Markdown from reading it."""
    shown = [each.value for each in (*at.markdown, *at.info)]
    return " ".join(each.replace("\\", "").replace(WORD_JOINER, "") for each in shown)


def test_runs_are_offered_the_latest_first(folders_of_results):
    first, second = folders_of_results
    assert recent_results()[:2] == [second, first]
    assert list(results.offered())[:2] == ["second", "first"]


@pytest.mark.parametrize("tab", ROLE_TABS)
def test_roles_are_those_of_the_statistics(opened, folders_of_results, tab):
    at = opened("roles", **{"results details": tab})
    assert not at.exception
    assert not at.error
    tests = open_results(folders_of_results[0]).part().tests(Criterion())
    n_any = int(tests.holds[:4].any(axis=0).sum())
    assert f"**{n_any} of 6 heads** hold a role at tau 3" in told(at)
    assert f"{N_TEXTS} texts of" in told(at)


def test_a_part_and_evidence_are_chosen(opened, folders_of_results):
    at = opened("roles", **{"part": "data set web", "decided by": words.EVIDENCE})
    assert not at.exception
    assert "6 texts of" in told(at)


@pytest.mark.parametrize("tab", SURFACE_TABS)
def test_where_heads_look_is_drawn(opened, tab):
    at = opened("surface", **{"results surface": tab})
    assert not at.exception
    assert not at.error
    assert f"{N_TEXTS} texts" in told(at)


def test_compare_is_paired_where_the_differences_were_taken(opened):
    at = opened("compare", **{"other results": "second"})
    assert not at.exception
    assert not at.error
    assert "mean scores** differ between the two checkpoints" in told(at)
    assert "To compare, name a second results folder" in told(opened("compare"))


@pytest.mark.parametrize(
    ("page", "link"),
    [
        *(("roles", {"results details": tab}) for tab in ROLE_TABS),
        *(("surface", {"results surface": tab}) for tab in SURFACE_TABS),
        *(("compare", {"other results": "second", "results compare": tab}) for tab in COMPARE_TABS),
    ],
)
def test_pages_need_the_files_of_statistics_alone(opened, folders_of_results, tmp_path, monkeypatch, page, link):
    monkeypatch.setenv("ATTENTION_SIEVE_PUBLIC", "1")
    for folder in folders_of_results:
        (tmp_path / folder.name).mkdir()
        shutil.copy(folder / STATISTICS, tmp_path / folder.name)
        if (folder / DIFFERENCES).is_dir():
            shutil.copytree(folder / DIFFERENCES, tmp_path / folder.name / DIFFERENCES)
    monkeypatch.setenv(results.RESULTS, os.pathsep.join(str(tmp_path / each.name) for each in folders_of_results))
    at = opened(page, **link)
    assert not at.exception
    assert not at.error
    assert f"{N_TEXTS} texts of" in told(at)


def test_highest_texts_are_read_on_a_click_alone(opened):
    at = opened("roles", **{"results details": words.HIGHEST})
    assert not at.dataframe
    button = next(each for each in at.button if each.label.startswith(words.READ))
    at = button.click().run()
    assert not at.exception
    (table,) = at.dataframe
    scores = table.value["score"].to_numpy()
    assert len(scores) == N_TEXTS
    assert (np.diff(scores) <= 0).all()


def test_reading_that_is_stopped_shows_the_texts_of_the_shards_that_were_read(opened, monkeypatch):
    at = opened("roles", **{"results details": words.HIGHEST})
    read, asked = raw.highest, []

    def stopped_at_the_second(path, *how):
        asked.append(path.name)
        if len(asked) == 2:  # what a click on the button does while a page runs: its callback, and another run
            raw._stop()
            st.rerun()
        return read(path, *how)

    monkeypatch.setattr(raw, "highest", stopped_at_the_second)
    at = next(each for each in at.button if each.label.startswith(words.READ)).click().run()
    assert not at.exception
    assert words.STOPPED in told(at)
    (table,) = at.dataframe
    assert set(table.value["shard"]) == {"000000"}
    assert asked == ["000000.parquet", "000001.parquet"]
    at = next(each for each in at.button if each.label.startswith(words.READ)).click().run()
    assert words.STOPPED not in told(at)
    assert len(at.dataframe[0].value) == N_TEXTS


def test_pages_that_need_texts_say_so(opened):
    at = opened("similar")
    assert not at.exception
    assert wording.NO_TEXTS_IN_RESULTS in " ".join(said(at))


def test_a_public_server_offers_what_its_owner_names(opened, folders_of_results, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_PUBLIC", "1")
    assert results.offered() == {}
    assert controls.RESULTS not in controls.corpora()
    monkeypatch.setenv(results.RESULTS, str(folders_of_results[1]))
    assert list(results.offered()) == ["second"]
    assert controls.RESULTS in controls.corpora()
    with pytest.raises(Exception, match="Choose one of them"):
        results.open_offered(str(folders_of_results[0]))


def test_the_command_line_names_folders(monkeypatch, folders_of_results):
    monkeypatch.setattr(sys, "argv", ["server.py", results.OPTION, str(folders_of_results[0])])
    assert results.named() == [folders_of_results[0]]


def test_the_grid_shows_the_means(opened, folders_of_results):
    tests = open_results(folders_of_results[0]).part().tests(Criterion())
    grid = sent(opened("roles"), "Roles of the heads")
    shown = np.frombuffer(base64.b64decode(grid["scores"]), "<f4").reshape(tests.mean.shape)
    np.testing.assert_allclose(shown, tests.mean, rtol=1e-6)
