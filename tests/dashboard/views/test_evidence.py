"""Typed texts: kept from the page Inspect, judged by evidence, and counted also when they were taken out."""

import base64
from dataclasses import replace

import numpy as np
import pytest
from reading import button, sent, written

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.roles.uncertainty.anytime import holds_by_evidence, odds, role_evidence
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls, state
from attention_sieve.dashboard.views.evidence import wording
from attention_sieve.dashboard.views.inspect import wording as inspect_wording
from attention_sieve.dashboard.views.word_links.choice import TABS

ONE, TWO, THREE = "The patient nurse gently washed it.", "A stray dog chased them.", "My cousin finally sold his van."
PAIR = "Why did the baker leave? ||| Her oven was broken."


def array(sent_as, of):
    return np.frombuffer(base64.b64decode(sent_as), "<f4").reshape(of)


def on_page(at, grid="Roles of the heads"):
    """Evidence in the tooltips of the grid, and which corners it fills."""
    view = sent(at, grid)
    assert view["odds"]
    shape = (len(view["roles"]), view["layers"], view["heads"])
    return array(view["p"], shape), np.frombuffer(base64.b64decode(view["states"]), np.uint8).reshape(shape) == 1


def computed(at, *lines, **criterion):
    """The same from the library, over all texts that evidence has to count."""
    texts = read_typed("\n".join(lines))
    measured = controls.inference().ask(at.session_state["engine"], SCORES, texts, PassSettings())
    scored = role_scores(measured.results, ScoreSettings())
    evidence = role_evidence(scored.scores, Criterion(**criterion), scored.uniform)
    return evidence, holds_by_evidence(evidence, Criterion(**criterion))


def expect(at, *lines, grid="Roles of the heads", **criterion):
    evidence, holds = computed(at, *lines, **criterion)
    shown, filled = on_page(at, grid)
    np.testing.assert_allclose(shown, evidence, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(filled, holds)


def type_corpus(at, *lines):
    at.text_area(key="corpus_text").set_value("\n".join(lines)).run()


def test_evidence_over_typed_texts_changes_with_each_text_as_the_library_computes_it(app):
    at = app("roles", corpus_text=ONE)
    expect(at, ONE)
    type_corpus(at, ONE, TWO)
    expect(at, ONE, TWO)
    at.slider(key="tau").set_value(1.1).run()
    at.select_slider(key="alpha").set_value(0.1).run()
    type_corpus(at, ONE, TWO, THREE, PAIR)
    expect(at, ONE, TWO, THREE, PAIR, tau=1.1, alpha=0.1)
    at.selectbox(key="correction").set_value("none").run()
    expect(at, ONE, TWO, THREE, PAIR, tau=1.1, alpha=0.1, correction="none")
    assert on_page(at)[1].any()
    at.selectbox(key="role rule").set_value("tau alone, as in the paper").run()
    expect(at, ONE, TWO, THREE, PAIR, tau=1.1, alpha=0.1, correction="none", rule="paper")
    assert written(at, "stop whenever you like")
    assert written(at, "they ever reach 10 : 1 in at most 10% of cases")
    assert written(at, "mostly noise") == []


def test_a_text_that_is_taken_out_or_edited_keeps_its_bet_until_the_reader_starts_over(app):
    at = app("roles", corpus_text=f"{ONE}\n{TWO}\n{THREE}")
    before = on_page(at)[0]
    assert written(at, "Evidence also counts") == []
    type_corpus(at, ONE, THREE)
    np.testing.assert_array_equal(on_page(at)[0], before)
    assert written(at, "Over 2 texts at tau 3")
    assert written(at, "Evidence also counts") == [wording.taken_out(1)]
    assert written(at, "- A stray dog chased them")
    type_corpus(at, f"{ONE} Twice.", THREE)
    expect(at, ONE, TWO, THREE, f"{ONE} Twice.")
    assert written(at, "Evidence also counts") == [wording.taken_out(2)]
    at.slider(key="tau").set_value(2.0).run()
    expect(at, ONE, TWO, THREE, f"{ONE} Twice.", tau=2.0)
    type_corpus(at, TWO, THREE, f"{ONE} Twice.", ONE)
    assert written(at, "Evidence also counts") == []
    expect(at, ONE, TWO, THREE, f"{ONE} Twice.", tau=2.0)
    type_corpus(at, TWO)
    button(at, wording.START_OVER).click().run()
    assert written(at, "Evidence also counts") == []
    expect(at, TWO, tau=2.0)


def test_a_text_that_is_there_twice_counts_once(app):
    at = app("roles", corpus_text=f"{ONE}\n{TWO}\n{ONE}")
    expect(at, ONE, TWO)
    assert written(at, "Over 2 texts at tau 3")
    assert written(at, "Equal texts count once: 1 of 3 repeats another.")


def test_another_checkpoint_has_evidence_of_its_own_over_all_texts_so_far(app, small):
    at = app("roles", corpus_text=f"{ONE}\n{TWO}", checkpoint=small("bert"))
    type_corpus(at, ONE)
    at.selectbox(key="checkpoint").set_value("bundled").run()
    expect(at, ONE, TWO)


def test_texts_seen_by_the_t_test_count_too_when_evidence_takes_over(app):
    at = app("roles", corpus_text=f"{ONE}\n{TWO}", method="mean alone")
    assert written(at, wording.BY_MEAN)
    assert not sent(at, "Roles of the heads")["odds"]
    type_corpus(at, ONE, THREE)
    at.selectbox(key="method").set_value("t-test").run()
    expect(at, ONE, TWO, THREE)


def test_shares_above_chance_keep_the_test_over_typed_texts_too_and_say_why(app, monkeypatch):
    chosen = state.choice
    monkeypatch.setattr(state, "choice", lambda: replace(chosen(), score_settings=ScoreSettings(scale="share")))
    at = app("roles", tau="1.0")
    assert not sent(at, "Roles of the heads")["odds"]
    assert written(at, wording.BY_SHARE)


def test_a_fixed_corpus_keeps_its_test_and_says_that_it_is_valid_once(app):
    at = app("roles", corpus=controls.UPLOAD)
    at.file_uploader(key="upload").upload("texts.txt", f"{ONE}\n{TWO}".encode()).run()
    assert not sent(at, "Roles of the heads")["odds"]
    assert written(at, wording.VALID_ONCE)
    assert written(at, "stop whenever you like") == []


def test_keeping_a_text_adds_it_once_to_the_typed_corpus_which_becomes_the_corpus(app, small):
    link = {"checkpoint": small("bert"), "corpus": "sample texts", "corpus_text": "", "text": f"{ONE}\n{PAIR}"}
    at = app(**link, by=inspect_wording.BY_CORPUS)
    button(at, wording.KEEP).click().run()
    assert at.selectbox(key="corpus").value == controls.TYPED
    assert at.text_area(key="corpus_text").value == ONE
    assert written(at, "Kept. The corpus is 1 text of your own, in place of “sample texts”")
    button(at, wording.KEEP).click().run()
    assert at.text_area(key="corpus_text").value == ONE
    assert written(at, "already and was not added again. The corpus is 1 text")
    at.session_state["number"] = 1
    at.run()
    assert written(at, "Kept. ") == []
    button(at, wording.KEEP).click().run()
    assert at.text_area(key="corpus_text").value == f"{ONE}\n{PAIR}"
    expect(at, ONE, PAIR, grid="Heads of")
    button(at, wording.BACK["sample texts"]).click().run()
    assert at.selectbox(key="corpus").value == "sample texts"
    assert written(at, "The corpus is") == []


def test_a_text_that_arrives_together_with_the_click_is_the_one_that_is_kept(app, small):
    at = app(checkpoint=small("bert"), corpus_text=TWO, text=ONE)
    at.text_area(key="text").set_value(THREE)
    button(at, wording.KEEP).click().run()
    assert at.text_area(key="corpus_text").value == f"{TWO}\n{THREE}"
    at.text_area(key="text").set_value("")
    button(at, wording.KEEP).click().run()
    assert at.text_area(key="corpus_text").value == f"{TWO}\n{THREE}"


@pytest.mark.parametrize(("typed", "kept"), [(f"{TWO}\n\n", TWO), ("one ||| two ||| three", "one ||| two ||| three")])
def test_what_was_typed_before_stays_when_a_text_is_kept(app, small, typed, kept):
    at = app(checkpoint=small("bert"), corpus_text=typed, text=ONE)
    button(at, wording.KEEP).click().run()
    assert at.text_area(key="corpus_text").value == f"{kept}\n{ONE}"
    assert bool(written(at, "Kept. The corpus is 2 texts of your own; edit")) == (typed != kept)


def test_the_card_of_a_head_shows_odds_a_lower_bound_and_a_line(app):
    settings = {"head": "1-8", "by": inspect_wording.BY_CORPUS, "tau": "1.1", "alpha": "0.1"}
    at = app(corpus_text=f"{ONE}\n{TWO}\n{THREE}", **settings)
    card = app(corpus_text=f"{ONE}\n{TWO}\n{THREE}", **settings, **{TABS: inspect_wording.ROLES})
    evidence, _ = computed(at, ONE, TWO, THREE, tau=1.1, alpha=0.1)
    (table,) = (each.value for each in card.dataframe if "evidence" in each.value)
    assert [row for row in table["evidence"] if row != "no bet"] == [
        odds(log) for log in evidence[:, 1, 8].tolist() if not np.isnan(log)
    ]
    assert "p" not in table
    assert all("(≥ " in mean for mean in table["mean"].dropna())
    assert len(card.get("vega_lite_chart")) == 1
    (summary,) = written(at, "Over 3 texts, by evidence:")
    shown, filled = on_page(at, "Heads of")
    for role, log in zip(sent(at, "Heads of")["roles"], shown[:, 1, 8].tolist(), strict=True):
        held = filled[[each["label"] for each in sent(at, "Heads of")["roles"]].index(role["label"]), 1, 8]
        assert (f"({odds(log)})" in summary) or not held


def test_the_tabs_of_roles_follow_the_evidence(app):
    at = app("roles", details="Evidence", head="1-8,2-5")
    assert len(at.get("vega_lite_chart")) == 3, "two of the tab, beside the roles under controls"
    assert "p-values" not in [each.label for each in at.tabs]
    app("roles", details="Score distributions")
    (table,) = (each.value for each in app("roles", details="Table").dataframe)
    assert {"evidence", "holds"} <= set(table.columns)
    assert not any(name.startswith("p") for name in table.columns)


def test_odds_round_down_to_what_was_reached():
    assert odds(np.log(34.9)) == "34 : 1"
    assert odds(np.log(20)) == "20 : 1"
    assert odds(np.log(2.39)) == "2.3 : 1"
    assert odds(0.0) == "1 : 1"
    assert odds(np.log(1 / 12)) == "1 : 12"
    assert odds(np.log(1440)) == "1,440 : 1"
    assert odds(900.0) == "over 1,000,000 : 1"
    assert odds(float("nan")) == "no bet"
