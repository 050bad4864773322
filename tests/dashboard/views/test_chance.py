"""What chance would give on the page Roles, without a browser."""

import re
from itertools import islice

import pytest
from reading import charts, sent, written

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.controls import SEEDS, control_passes
from attention_sieve.core.roles.finding import role_finding
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.roles import COARSE_ROLES, FINE_ROLES, ROLES
from attention_sieve.core.roles.rules import PREFIX, read_role
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.figures.roles.chance import OWN
from attention_sieve.dashboard.samples import read_sample
from attention_sieve.dashboard.views.roles import chance_wording as words

TEXTS = "The patient nurse gently washed it.\nA stray dog chased them.\nMy cousin finally sold his van."
GRID, CONTROL = "Roles of the heads", "Control, "
NAMES = ["permuted keys", "shuffled words", *(f"random weights, seed {seed}" for seed in SEEDS)]


def switched_on(app, content="", **link):
    """The page Roles with the controls counted, over typed texts, or over a file with a content."""
    at = app("roles", **link)
    if content:
        at.file_uploader(key="upload").upload("texts.txt", content.encode()).run()
    for button in [each for each in at.button if each.key == "count chance"]:  # none where they are kept
        button.click().run()
    assert not at.error
    return at


def table(at):
    return next(each.value for each in at.dataframe if OWN in each.value.columns)


def test_no_control_is_computed_before_a_click_and_what_is_kept_shows_at_once(app):
    typed = "The tall surgeon quickly closed it."
    app("roles", corpus_text=typed)
    passed = controls.inference().n_passed
    at = app("roles", corpus_text=typed)
    assert controls.inference().n_passed == passed
    assert not written(at, "**Permuted keys**:")
    assert not any(each.key == "grid of" for each in at.selectbox)
    assert set(strip(at)["control"]) == {OWN}
    switched_on(app, corpus_text=typed)
    passed = controls.inference().n_passed
    at = app("roles", corpus_text=typed)
    assert not any(each.key == "count chance" for each in at.button)
    assert set(strip(at)["control"]) == {OWN, *words.ANSWERS}
    assert written(at, "**Permuted keys**:")
    assert controls.inference().n_passed == passed


def test_a_link_asks_for_controls_at_once(app):
    at = app("roles", corpus_text="The young painter sold her house.", chance="true")
    assert set(strip(at)["control"]) == {OWN, *words.ANSWERS}


def strip(at):
    """What the strip draws."""
    return next(rows for rows in charts(at) if "control" in rows)


@pytest.mark.parametrize("corpus", [controls.TYPED, controls.UPLOAD])
def test_the_counts_beside_the_checkpoints_are_those_of_core_and_tau_redraws_them_without_a_pass(app, corpus):
    """Decided as the checkpoint's own roles are: by evidence over typed texts, by the test over others."""
    at = switched_on(app, TEXTS if corpus == controls.UPLOAD else "", tau=1.5, corpus=corpus)
    passed, inference = controls.inference().n_passed, controls.inference()
    engine, texts = at.session_state["engine"], read_typed(TEXTS)
    for tau in (1.5, 1.2):
        at.slider(key="tau").set_value(tau).run()
        shown = table(at)
        roles = [role for role in COARSE_ROLES if role != "block"]  # the typed texts have one segment
        assert shown["role"].tolist() == roles
        for asked in islice(control_passes(engine.files, texts), 2):
            question = ROLE_ANALYSIS.question(asked.settings)
            measured = inference.kept(engine, question, asked.texts, PassSettings()).results
            scored = role_scores(measured, ScoreSettings())
            bets = scored if corpus == controls.TYPED else None
            tests = role_finding(scored, Criterion(tau=tau), bets).tests
            expected = [str(tests.holds[ROLES.index(role)].sum()) for role in roles]
            assert shown[asked.control].tolist() == expected
    assert controls.inference().n_passed == passed


def test_the_grid_flips_to_a_control_and_back_and_finer_roles_are_counted_without_a_pass(app):
    at = switched_on(app)
    own, passed = sent(at, GRID), controls.inference().n_passed
    assert at.selectbox(key="grid of").options == [OWN, *NAMES]
    for name in (NAMES[0], NAMES[-1]):
        at.selectbox(key="grid of").set_value(name).run()
        shown = sent(at, f"{CONTROL}{name}")
        assert shown["scores"] != own["scores"]
        assert shown["label"] == f"Control, {name}: roles of the heads of bundled"
        assert written(at, "The grid is not this checkpoint's.")
    next(each for each in at.button if each.label == words.BACK).click().run()
    assert sent(at, GRID)["scores"] == own["scores"]
    assert not written(at, "The grid is not this checkpoint's.")
    at.toggle(key="roles finer").set_value(True).run()
    assert set(table(at)["role"]) <= set(FINE_ROLES)
    assert controls.inference().n_passed == passed


def test_positional_heads_are_named_and_marked_in_grid_and_table(app):
    role = read_role('role = 1\nname = "a copy"\nletter = "G"\ncolour = "#AA3377"\n[to]\nrelative = "earlier copy"').id
    typed = "\n".join(text.segments[0] for text in read_sample("texts")[:16])
    at = switched_on(app, corpus_text=typed, tau=2.0, role=role.removeprefix(PREFIX))
    assert "a copy" in table(at)["role"].tolist(), "a written role is called by its name"
    assert not written(at, PREFIX)
    said = written(at, "same distance")[0]
    n_held = int(re.match(r"(?:Of|Each of) (\d+) syntactic", said)[1])
    place = ROLES.index("syntactic")
    states = sent(at, GRID)
    n_all = 72
    marked = [each for each in states["positional"] if each // n_all == place]
    assert ("(positional)" in said) == bool(marked)
    assert len(re.findall(r"L\d+ H\d+", said)) == len(marked)
    assert n_held >= len(marked)


def test_a_decoder_and_heads_off_have_controls_too(app, small):
    at = switched_on(app, checkpoint=small("gpt2"), off="0-1")
    assert "sink" in table(at)["role"].tolist()
    at.selectbox(key="grid of").set_value(NAMES[0]).run()
    assert sent(at, CONTROL)["off"] == [[0, 1]]


def test_cross_attention_has_controls_and_no_pairs_of_words(app, small):
    at = switched_on(app, checkpoint=small("bart", "Seq2SeqLM"), attention="cross-attention", corpus="sample pairs")
    assert not written(at, "same distance")
    assert not set(table(at)["role"]) & {"local", "syntactic"}


def test_texts_that_are_too_long_are_left_out_of_the_controls_too(app, small):
    long = "The nurse washed it. " * 60
    at = switched_on(app, checkpoint=small("bert"), corpus_text=f"{long}\nThe cat sat.\nA dog ran home.")
    assert len(table(at))


NOT_SHOWN = "this count does not show that heads look at some tokens rather than others."


@pytest.mark.parametrize(
    ("own", "under", "says"),
    [
        ({"local": 2, "block": 3}, {"local": [0], "block": [0]}, "Here none of 72 heads holds local or block."),
        (
            {"local": 4, "block": 3},
            {"local": [0], "block": [5]},
            f"Here none of 72 heads holds local. As many heads as in this checkpoint, or more, hold block: {NOT_SHOWN}",
        ),
        (
            {"local": 4, "block": 0},
            {"local": [1, 0, 2], "block": [1, 0, 0]},
            "Fewer heads than in this checkpoint hold: local, 1.0 (0 to 2) instead of 4. "
            f"As many heads as in this checkpoint, or more, hold block: {NOT_SHOWN}",
        ),
        ({}, {}, "None of these roles applies to these texts."),
    ],
)
def test_the_sentence_says_what_the_counts_say(own, under, says):
    assert words.answer("permuted keys", own, under, 72).endswith(f"? {says}")
