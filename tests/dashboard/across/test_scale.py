"""The share above chance as a second scale: every number on the pages is the library's, and each scale has its tau."""

from dataclasses import replace

import numpy as np
import pytest
from reading import choose_heads, numbers, sent, written

from attention_sieve.cache.answers import Engine
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.roles.tables import head_table
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.files.provenance import caption, comparison_facts, corpus_facts
from attention_sieve.dashboard.views.inspect import wording as inspect_wording
from attention_sieve.dashboard.views.word_links.choice import TABS

SHARE = "share above chance"
TEXTS = "The patient nurse gently washed it.\nA stray dog chased them.\nMy cousin finally sold his van."
"""The typed texts of a page without others."""


@pytest.fixture
def by_library(store):
    """by_library(tau) -> scores and tests of the typed texts, without a page."""

    def tested(tau, typed=TEXTS):
        measured = controls.inference().ask(Engine(find_checkpoint(BUNDLED)), SCORES, read_typed(typed)).results
        scored = role_scores(measured, ScoreSettings(scale="share"))
        return scored, role_tests(scored.scores, ROLES, Criterion(tau=tau), scored.uniform)

    return tested


def array(view, name, dtype="<f4"):
    """What a grid was sent under a name."""
    flat = numbers(view[name], dtype)
    return flat.reshape(len(view["roles"]), view["layers"], -1)


def test_under_the_share_the_grid_the_counts_and_the_table_of_roles_are_the_librarys(app, by_library):
    at = app("roles", details="Table")
    first = sent(at, "Roles of the heads")
    n_passed = controls.inference().n_passed
    at.selectbox(key="scale").set_value(SHARE).run()
    at.slider(key="share tau").set_value(0.3).run()
    assert not at.exception
    assert controls.inference().n_passed == n_passed
    scored, tests = by_library(0.3)
    grid = sent(at, "Roles of the heads")
    assert (first["noun"], grid["noun"], grid["tau"]) == ("score", "share", 0.3)
    np.testing.assert_allclose(array(grid, "scores"), tests.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(array(grid, "states", np.uint8), tests.holds)
    np.testing.assert_allclose(array(grid, "p"), tests.p_adjusted, rtol=1e-6)
    np.testing.assert_array_equal(array(grid, "uniform")[..., 0], scored.mean_references()[0])
    assert np.nanmax(array(grid, "greatest")) == 1
    assert (
        grid["filled"] == "Filled letters: roles this head holds over the corpus (tau 0.3 of the share above chance)."
    )
    (counts,) = written(at, "heads** hold a role")
    named = [f"{tests.holds[ROLES.index(role)].sum()} {role}" for role in COARSE_ROLES if role != "block"]
    assert counts.startswith(f"**{tests.holds[:4].any(axis=0).sum()} of 72 heads** hold a role")
    assert "Over 3 texts at tau 0.3 of the share above chance: " in counts
    assert ", ".join([*named, "block not tested"]) in counts, "texts of one segment have no block score"
    assert tests.holds[:4].any(), "else the counts say nothing"
    table = at.dataframe[0].value
    np.testing.assert_allclose(table["mean"], head_table(tests)["mean"], rtol=1e-6, atol=1e-6)
    assert table["holds"].tolist() == tests.holds.ravel().tolist()
    assert written(at, "Too short") == []


@pytest.mark.parametrize("tab", ["p-values", "Score distributions"])
def test_every_tab_of_roles_takes_shares(app, small, tab):
    at = app(
        "roles", scale=SHARE, details=tab, corpus="sample pairs", checkpoint=small("bert", max_position_embeddings=512)
    )
    assert not at.exception
    assert not at.error


def test_each_scale_keeps_its_tau_and_the_weight_of_block_waits_for_the_score(app):
    at = app("roles", tau="2.5")
    at.selectbox(key="scale").set_value(SHARE).run()
    assert at.slider(key="share tau").value == 0.5
    assert at.toggle(key="entropy").disabled
    at.slider(key="share tau").set_value(0.35).run()
    at.selectbox(key="scale").set_value("times uniform attention").run()
    assert at.slider(key="tau").value == 2.5
    assert not at.toggle(key="entropy").disabled
    at.selectbox(key="scale").set_value(SHARE).run()
    assert at.slider(key="share tau").value == 0.35


def test_under_the_share_inspect_shows_the_text_and_the_card_of_a_head_on_that_scale(app, by_library):
    typed = "The cat sat on the mat."
    at = app(scale=SHARE, text=typed)
    choose_heads(at, (3, 1))
    assert not at.exception
    scored, _ = by_library(0.5, typed)
    np.testing.assert_allclose(array(sent(at, "Heads of"), "scores"), scored.scores[0], atol=2e-6)
    holds = array(sent(at, "Heads of"), "states", np.uint8)
    np.testing.assert_array_equal(holds, scored.scores[0] > 0.5)
    _, tests = by_library(0.5)
    (head,) = written(at, "**Head L3 H1")
    assert "In this text: nothing that the letters name." in head
    assert "too short" not in head
    at.session_state[TABS] = inspect_wording.ROLES
    card = at.run().dataframe[0].value
    local = f"{scored.scores[0, 0, 3, 1]:z.2f} of 1.00"
    assert (card["role"][0], card["this text"][0]) == ("local", local)
    assert card["mean"][0].startswith(f"{tests.mean[0, 3, 1]:z.2f} (")
    at = app(scale=SHARE, text=typed, head="3-1", **{TABS: inspect_wording.SIMILAR})
    (alike,) = (each for each in at.markdown if each.value.startswith("With similar shares above chance: "))
    assert alike.help.startswith("By the mean shares above chance of all roles.")


@pytest.mark.parametrize(("scale", "weight"), [("score", {"block entropy": "yes"}), ("share", {})])
def test_files_say_the_scale_of_one_checkpoint_and_of_two_and_a_share_has_no_weight_of_block(
    usual_choice, scale, weight
):
    chosen = replace(usual_choice, criterion=Criterion(tau=0.4), score_settings=ScoreSettings(scale=scale))
    facts = corpus_facts(chosen, Engine(find_checkpoint(BUNDLED)), 3)
    assert (facts["scale"], facts["tau"]) == (scale, "0.4")
    assert {name: fact for name, fact in facts.items() if name == "block entropy"} == weight
    assert f"scale {scale}, tau 0.4" in caption(facts)[-1]
    pair = comparison_facts(chosen, (Engine(find_checkpoint(BUNDLED)),) * 2, 3)
    assert pair.items() >= facts.items()
    assert (pair["compared checkpoint"], pair["differences"]) == (BUNDLED, "compared minus reference (b - a)")
