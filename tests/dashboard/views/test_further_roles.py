"""Roles that a reader adds: where they stand on the pages, and that they leave the others alone."""

import numpy as np
import pytest
from reading import scores_in, sent

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES, scores_question
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.state import FURTHER
from attention_sieve.dashboard.views.roles.details import VENN_ROLES

TEXTS = "The dog saw the dog that the cat saw.\nA stray cat chased a stray dog.\nMy cousin sold my van to my friend."
GRID = "Roles of the heads"
ADDED = ("previous", "duplicate")
"""Further roles that apply to encoders."""


def added(at, *names):
    at.pills(key=FURTHER).set_value(list(names)).run()
    assert not at.error
    return at


def test_they_are_off_at_first_and_adding_one_computes_that_one_alone(app):
    at = app("roles", corpus_text=TEXTS)
    before = sent(at, GRID)
    assert sent(at, "Heads by the roles they hold")["none"] == "no role"
    assert [role["label"] for role in before["roles"]] == [LOOKS[role].label for role in ROLES]
    passed, inference = controls.inference().n_passed, controls.inference()
    grid = sent(added(at, "previous"), GRID)
    texts = read_typed(TEXTS)
    assert controls.inference().n_passed == passed + len(texts)
    assert [role["letter"] for role in grid["roles"]][-1] == "P"
    assert grid["shown"] == [*(ROLES.index(role) for role in COARSE_ROLES), len(ROLES)]
    engine = at.session_state["engine"]
    (measured,) = (inference.kept(engine, scores_question(("previous",)), texts, PassSettings()),)
    mean = role_scores(measured.results, ScoreSettings()).scores.mean(axis=0)
    np.testing.assert_allclose(scores_in(grid)[-1], mean.ravel(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scores_in(grid)[: len(ROLES)], scores_in(before), rtol=1e-5, atol=1e-6)
    assert inference.kept(engine, SCORES, texts, PassSettings()) is not None
    added(at)
    assert controls.inference().n_passed == passed + len(texts)
    assert sent(at, GRID)["scores"] == before["scores"]


def test_they_stand_in_the_legend_and_the_venn_diagram(app):
    at = added(app("roles", corpus_text=TEXTS), *ADDED)
    grid = sent(at, GRID)
    assert all(grid["means"][-len(ADDED) :])
    venn = sent(at, "Heads by the roles they hold")
    assert (venn["roles"], venn["none"]) == (["local", "syntactic", "delimiter", "previous"], "none of these")
    at.multiselect(key=VENN_ROLES).set_value(["local", "previous"]).run()
    venn = sent(at, "Heads by the roles they hold")
    assert venn["roles"] == ["local", "previous"]
    assert len(venn["geometry"]["regions"]) == 3
    assert sum(row["heads"] for row in venn["rows"]) == venn["heads"]


def test_on_inspect_they_are_scored_for_the_text_and_laid_over_its_arcs(app):
    at = added(app("inspect", corpus_text=TEXTS, text="The dog saw the dog."), *ADDED)
    grid = sent(at, "Heads of bundled")
    assert [role["label"] for role in grid["roles"]][-2:] == [LOOKS[role].label for role in ADDED]
    assert (scores_in(grid)[-2:] > 0).all()
    arcs = next(view for view in [sent(at, "Attention of")])
    assert arcs["sieves"][-2:] == [[role, role] for role in ADDED]


@pytest.mark.parametrize("role", ADDED)
def test_on_compare_they_stand_in_the_grid_of_both_checkpoints(app, small, role):
    a, b = str(small("bert")), str(small("bert", "SequenceClassification", num_labels=2, initializer_range=0.9))
    at = added(app("compare", checkpoint=a, text="The cat sat.", corpus_text=TEXTS, **{"with": b}), role)
    assert [look["letter"] for look in sent(at, "Roles gained, kept and lost")["roles"]][-1] == LOOKS[role].letter
    at.selectbox(key="compare role").set_value(LOOKS[role].label).run()
    assert sent(at, f"{LOOKS[role].label}, b − a")
