"""Pages on a results folder without a browser: what they draw comes from its statistics."""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from corpus_material import corpus, write_corpus
from reading import button, command_of, said, scores_in, sent, told

from attention_sieve.__main__ import main
from attention_sieve.core.corpus.manifest import DONE_FOLDER, STATISTICS
from attention_sieve.core.corpus.paired import DIFFERENCES
from attention_sieve.core.corpus.results import open_results, recent_results
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.hypotheses import Criterion, few_texts
from attention_sieve.core.running import Journal
from attention_sieve.dashboard import controls, offers, wording
from attention_sieve.dashboard.plain import WORD_JOINER
from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER
from attention_sieve.dashboard.views.comparison import wording as compare_words
from attention_sieve.dashboard.views.results import raw
from attention_sieve.dashboard.views.results import wording as words
from attention_sieve.dashboard.views.surface import wording as surface_words

N_TEXTS = 12
COMPARE_TABS = (compare_words.TRANSITIONS, compare_words.SURE, compare_words.TABLE)


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
        chosen = {"corpus": A_RESULTS_FOLDER, "results": "first", "corpus_text": ""}
        return app(name, **(chosen | link))

    return page


def test_runs_are_offered_the_latest_first(folders_of_results):
    first, second = folders_of_results
    assert recent_results()[:2] == [second, first]
    assert list(offers.offered_results())[:2] == ["second", "first"]


@pytest.mark.parametrize("tab", ["Combinations", "Per layer", "p-values"])
def test_roles_are_those_of_the_statistics(opened, folders_of_results, tab):
    at = opened("roles", **{"results details": tab})
    assert not at.error
    tests = open_results(folders_of_results[0]).part().tests(Criterion())
    n_any = int(tests.holds[:4].any(axis=0).sum())
    assert f"**{n_any} of 6 heads** hold a role" in told(at)
    assert f"{N_TEXTS} texts of" in told(at)
    means = scores_in(sent(at, "Roles of the heads"))
    np.testing.assert_allclose(means, tests.mean.reshape(len(tests.roles), -1), rtol=1e-6, atol=1e-6)


OF_PAGES = {
    "roles": ({"results details": "Table", "part": "data set web"}, "roles", "mean", "results.parquet"),
    "surface": ({"results surface": surface_words.TABLE}, "surface", "mean", "results.parquet"),
    "compare": (
        {"compare details": compare_words.TABLE, "other results": "second"},
        "differences",
        "mean_b",
        "b.parquet",
    ),
}


@pytest.mark.parametrize("page", OF_PAGES)
def test_the_command_of_a_page_writes_the_numbers_that_it_shows(opened, folders_of_results, monkeypatch, page):
    monkeypatch.chdir(folders_of_results[0].parent)
    tab, name, column, file = OF_PAGES[page]
    at = opened(page, **tab)
    for line in command_of(at, f"table of {name}"):
        assert main(line) == 0
    shown = next(each.value for each in at.dataframe if column in each.value)
    np.testing.assert_allclose(shown[column], pd.read_parquet(file)["mean"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("tab", [surface_words.ENTROPY, surface_words.HEADS, surface_words.LAYERS, words.PARTS])
def test_where_heads_look_is_drawn(opened, tab):
    at = opened("surface", **{"results surface": tab})
    assert not at.error
    assert f"{N_TEXTS} texts" in told(at)


def test_compare_names_both_and_begins_with_the_roles_gained_and_lost(opened, folders_of_results):
    at = opened("compare", **{"other results": "second", "tau": "1.2", "method": "mean alone"})
    said, folders = told(at), [open_results(folder) for folder in folders_of_results]
    criterion = Criterion(tau=1.2, method="mean")
    holds_a, holds_b = (each.part().tests(criterion).holds[:4] for each in folders)
    lost, gained = holds_a & ~holds_b, ~holds_a & holds_b
    n_changed = int((lost | gained).any(axis=0).sum())
    assert n_changed
    names = [f"**({letter})** **{each.folder.name}**: {N_TEXTS} texts of" for letter, each in zip("ab", folders)]
    assert folders[1].checkpoint in said
    story = ["From (a) to (b), ", f"{n_changed} of 6 heads changed a role at tau 1.2", "mean scores, "]
    assert all(name in said for name in names)
    places = [said.index(each) for each in story]
    assert places == sorted(places)
    assert few_texts(N_TEXTS) in said
    assert "To compare, choose a second results folder" in told(opened("compare"))


@pytest.mark.parametrize(
    ("earlier", "tab"),
    [("Which heads", compare_words.CHANGES), ("Grids", compare_words.EACH), ("Table", compare_words.TABLE)],
)
def test_compare_opens_what_a_link_of_an_earlier_version_names(opened, earlier, tab):
    named = {"other results": "second", "part": "data set web", "results compare role": "local"}
    at = opened("compare", **named, **{"results compare": earlier})
    assert not at.error
    assert not at.warning
    assert at.session_state["compare details"] == tab
    assert at.session_state["compare role"] == "local"
    assert at.query_params["part"] == "data set web"
    assert "results compare" not in at.query_params


def test_the_command_for_the_differences_can_be_pasted_anywhere(app, folders_of_results):
    first, second = folders_of_results
    at = app("compare", corpus=A_RESULTS_FOLDER, results="second", **{"other results": "first"}, corpus_text="")
    assert [each.value for each in at.code] == [f"python -m attention_sieve corpus compare {second} {first}"]


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("roles", {"results details": "Score distributions"}),
        ("surface", {"results surface": surface_words.ENTROPY}),
        *(("compare", {"other results": "second", "compare details": tab}) for tab in COMPARE_TABS),
    ],
)
def test_pages_need_the_files_of_statistics_alone(opened, folders_of_results, tmp_path, monkeypatch, page, link):
    monkeypatch.setenv("ATTENTION_SIEVE_PUBLIC", "1")
    for folder in folders_of_results:
        (tmp_path / folder.name).mkdir()
        shutil.copy(folder / STATISTICS, tmp_path / folder.name)
        if (folder / DIFFERENCES).is_dir():
            shutil.copytree(folder / DIFFERENCES, tmp_path / folder.name / DIFFERENCES)
    monkeypatch.setenv(offers.RESULTS, os.pathsep.join(str(tmp_path / each.name) for each in folders_of_results))
    at = opened(page, **link)
    assert not at.error
    assert f"{N_TEXTS} texts of" in told(at)


def test_highest_texts_are_read_on_a_click_alone_and_as_far_as_it_was_not_stopped(opened, monkeypatch):
    at = opened("roles", **{"results details": words.HIGHEST})
    assert not at.dataframe
    read, asked = raw.highest, []

    def stopped_at_the_second(path, *how):
        asked.append(path.name)
        if len(asked) == 2:  # what a click on the button does while a page runs: its callback, and another run
            raw._stop()
            st.rerun()
        return read(path, *how)

    monkeypatch.setattr(raw, "highest", stopped_at_the_second)
    at = next(each for each in at.button if each.label.startswith(words.READ)).click().run()
    assert words.STOPPED in told(at)
    (table,) = at.dataframe
    assert set(table.value["shard"]) == {"000000"}
    assert asked == ["000000.parquet", "000001.parquet"]
    at = next(each for each in at.button if each.label.startswith(words.READ)).click().run()
    assert words.STOPPED not in told(at)
    scores = at.dataframe[0].value["score"].to_numpy()
    assert len(scores) == N_TEXTS
    assert (np.diff(scores) <= 0).all()


@pytest.mark.parametrize("where", ["inspect", "grammar", "similarity", "importance"])
def test_pages_that_need_texts_lead_to_those_that_show_the_results(opened, where):
    at = opened(where)
    assert not at.error
    assert wording.results_without_texts("first") in told(at)
    assert {each.proto.label for each in at.get("page_link")} >= {"Roles", "Where heads look", "Compare"}


def test_a_click_takes_the_sample_texts_instead_of_the_results(opened):
    at = opened("inspect")
    at.session_state["first screen is drawn"] = False  # the samples need no scores for it
    at = button(at, wording.USE_SAMPLES).click().run()
    assert at.session_state["corpus"] == controls.CORPORA[0]


def test_a_question_that_was_not_asked_is_named_with_an_option_that_can_be_copied(app, results_of_roles):
    at = app("surface", corpus=A_RESULTS_FOLDER, results=results_of_roles.name)
    (error,) = (each.value for each in at.error)
    assert "`--questions` roles,surface " in error
    assert WORD_JOINER not in error
    assert str(results_of_roles.parent) not in error


@pytest.fixture(scope="module")
def results_of_roles(folders_of_results, small):
    """Results of pairs and single texts, asked for roles alone."""
    folder, texts = folders_of_results[0].with_name("roles-alone"), folders_of_results[0].with_name("pairs.txt")
    texts.write_text("the dog ||| she ran\n" * 3 + "the cat sat\n" * 20)
    options = ("--checkpoint", small("bert"), "--texts", texts, "--workers", 1, "--no-parser", "--questions", "roles")
    assert corpus("run", *options, "--output", folder) == 0
    return folder


def test_what_was_not_tested_is_no_zero(opened, app, results_of_roles):
    at = opened("roles", **{"results details": words.PARTS})
    assert "block not tested" in told(at)
    assert "block 0" not in told(at)
    (table,) = (each.value for each in at.dataframe)
    assert table["block"].isna().all()
    assert table["local"].notna().all()
    overlaps = sent(opened("roles"), "Heads by the roles")
    assert overlaps["roles"] == ["local", "delimiter"], "there is no parser, and there are no pairs"
    assert len(overlaps["geometry"]["regions"]) == 3
    at = app("roles", corpus=A_RESULTS_FOLDER, results=results_of_roles.name)
    assert "block not tested" not in told(at)


def test_few_texts_of_a_part_are_said_to_be_few(opened):
    at = opened("roles", **{"part": "data set web", "results details": words.PARTS})
    assert few_texts(6) in told(at)
    assert "data set news (6), data set web (6)" in told(at)
    said = told(opened("roles", **{"part": "data set web", "decided by": words.EVIDENCE}))
    assert "6 texts of" in said
    assert few_texts(6) not in said


def test_a_server_started_with_results_shows_them_on_a_first_visit(app, small, folders_of_results, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["server.py", f"{offers.OPTION}={folders_of_results[0]}"])
    at = app("roles", corpus=None, corpus_text=None)
    assert "**first**: 12 texts of" in told(at)
    assert (at.query_params["corpus"], at.query_params["results"]) == (A_RESULTS_FOLDER, "first")
    assert app("roles").session_state["corpus"] == controls.TYPED
    linked = app("roles", checkpoint=small("bert"), corpus=None, corpus_text=None, head="0-1")
    assert linked.session_state["corpus"] == controls.CORPORA[0]
    monkeypatch.setattr(sys, "argv", ["server.py", offers.OPTION, str(folders_of_results[0])])
    assert offers.named_results() == [folders_of_results[0]], "with a blank in place of the sign"


def test_the_run_of_a_folder_is_watched_and_stopped_and_one_that_is_not_finished_is_said_to_be(
    app, folders_of_results, tmp_path, monkeypatch
):
    folder = shutil.copytree(folders_of_results[0], tmp_path / "going-on")
    monkeypatch.setenv(offers.RESULTS, str(folder))
    chosen = {"corpus": A_RESULTS_FOLDER, "results": "going-on", "corpus_text": ""}
    journal = Journal(folder)
    journal.part("Reading the texts", 256)
    (folder / STATISTICS).unlink()
    at = app("roles", **chosen)
    (bar,) = at.get("progress")
    assert bar.proto.text.replace("\\", "") == "going-on: reading the texts, 256 so far."
    assert f"{N_TEXTS} texts of" not in told(at)
    journal.plan(3, N_TEXTS)
    journal.done(5, was_kept=True)
    for page in ("surface", "compare"):
        (bar,) = app(page, **chosen).get("progress")
        assert bar.proto.text.replace("\\", "") == "going-on: 1 of 3 shards done."
    monkeypatch.setenv("ATTENTION_SIEVE_PUBLIC", "1")
    at = app("roles", **chosen)
    assert "going-on: 1 of 3 shards done." in told(at)
    assert not [each for each in at.button if each.label == wording.STOP]
    monkeypatch.delenv("ATTENTION_SIEVE_PUBLIC")
    button(app("roles", **chosen), wording.STOP).click().run()
    assert journal.stop_asked()
    journal.end("stopped")
    (folder / DONE_FOLDER / "000001.json").unlink()
    at = app("roles", **chosen)
    assert not at.get("progress")
    (error,) = said(at)
    assert error.startswith("going-on is not finished: it has 2 of 3 shards. To continue, ")
    assert main(["corpus", "run", "--output", str(folder), "--workers", "1"]) == 0
    assert f"{N_TEXTS} texts of" in told(app("roles", **chosen))


def test_a_name_that_two_folders_have_or_none_is_said(folders_of_results, tmp_path, monkeypatch):
    shutil.copytree(folders_of_results[0], tmp_path / "first")
    monkeypatch.setenv(offers.RESULTS, str(tmp_path / "first"))
    with pytest.raises(AnalysisError, match="2 results folders are named first: "):
        offers.open_offered_results("first")
    with pytest.raises(AnalysisError, match="There is no results folder elsewhere here"):
        offers.open_offered_results("elsewhere")


def test_a_public_server_offers_what_its_owner_names(opened, folders_of_results, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_PUBLIC", "1")
    assert offers.offered_results() == {}
    assert A_RESULTS_FOLDER not in controls.corpora()
    monkeypatch.setenv(offers.RESULTS, str(folders_of_results[1]))
    assert list(offers.offered_results()) == ["second"]
    assert A_RESULTS_FOLDER in controls.corpora()
    with pytest.raises(Exception, match="Choose one of them"):
        offers.open_offered_results(str(folders_of_results[0]))
