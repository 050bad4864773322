"""The page Compare without a browser: what it computes once, what it says, and what it sends to its views."""

import re
import shutil
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reading import charts, sent, told

import attention_sieve as sieve
from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.core.comparison.sizes import DifferenceSizes
from attention_sieve.core.comparison.transitions import RoleChange
from attention_sieve.core.passes.outputs import Prediction
from attention_sieve.core.running import Journal, Progress, Validation, ValidationResult
from attention_sieve.dashboard import controls
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.offers import fine_tuned_from
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.samples import REVIEW
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.both_texts import prediction_sentence
from attention_sieve.dashboard.views.comparison.changes import HEAD as HEAD_OF
from attention_sieve.dashboard.views.comparison.changes import TRANSITION, _take_mark
from attention_sieve.dashboard.views.comparison.numbers import TrainingHistory, training_of
from attention_sieve.dashboard.views.comparison.summary import what_changed
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED

ROLE = "compare role"
SHORT = "The old cat sat.\nShe drank hot coffee.\nA bird sang softly.\nHe sold red apples."


@pytest.fixture
def pair(small):
    """Two small checkpoints of one shape; the second one is a classifier."""
    return str(small("bert")), str(small("bert", "SequenceClassification", num_labels=2, initializer_range=0.9))


@pytest.fixture
def compare(app, pair):
    def opened(**link):
        a, b = pair
        usual = {"checkpoint": a, "with": b, "corpus_text": SHORT, "text": "The cat sat."}
        return app("compare", **{name: value for name, value in (usual | link).items() if value is not None})

    return opened


def finding(at):
    return next(each.value for each in at.markdown if "changed a role" in each.value)


def summary(at):
    """All that changed, in the first tab."""
    return next(each.value for each in at.markdown if "mean scores" in each.value)


def test_the_page_says_what_changed_and_what_each_predicts_and_sends_it_to_every_view(compare):
    at = compare(tau="1", method="mean alone")
    assert not at.error
    found = r"From \(a\) to \(b\), .+\. :small\[:gray\[\d of 6 heads changed a role at tau 1\.\]\]"
    assert re.fullmatch(found, finding(at))
    assert len(finding(at).partition(" :small")[0].split()) <= 20
    assert re.match(r"From \(a\) to \(b\), .+\. Of \d+ mean scores, .+ The score ", summary(at))
    assert sent(at, "Roles gained, kept and lost")["compared"]
    assert sent(at, f"{at.selectbox(key=ROLE).value}, b − a")
    arcs = sent(at, "Attention of")
    assert (arcs["group"], arcs["controls"]) == ("compare", "without")
    at = compare(**{"compare details": wording.SIDE_BY_SIDE})
    a, b = (next(each.value for each in at.markdown if each.value.startswith(f"**({side}) ")) for side in "ab")
    assert a.endswith(f":small[{shared_wording.EMBEDS_ONLY}]")
    shares = re.search(r":small\[Predicts LABEL\\_[01] (\d+)%, LABEL\\_[01] (\d+)%\]$", b).groups()
    assert int(shares[0]) >= int(shares[1])
    assert sum(int(share) for share in shares) == pytest.approx(100, abs=1)
    difference = sent(at, "Difference of the attention")
    assert difference["signed"]
    pictures = [sent(at, wording.CONTROLS), sent(at, "Attention of"), difference]
    assert [each["controls"] for each in pictures] == ["alone", "without", "without"]
    assert {each["group"] for each in pictures} == {"compare"}


def test_a_grid_tells_what_heads_mostly_do_under_the_checkpoint_of_which_that_is_known(app, compare, pair):
    app("surface", checkpoint=pair[0], corpus_text=SHORT)
    at = compare(**{"compare details": wording.EACH})
    assert all(sentence.endswith(".") for of_layer in sent(at, "(a) Roles")["sentences"] for sentence in of_layer)
    assert sent(at, "(b) Roles")["sentences"] is None


def test_the_head_and_the_role_first_shown_moved_most_and_what_the_reader_chose_stays_on_one_scale(
    compare, small, pair
):
    other = small("bert", initializer_range=1.6)
    firsts, ends = [], set()
    for focus in (pair[1], other):
        at = compare(**{"with": [pair[1], other], "focus": focus, "compare details": wording.DIFFERENCES})
        assert sent(at, "local, b − a")["label"].startswith(f"local, b − a of {focus}")
        ends |= {sent(at, f"{role}, b − a")["high"][0] for role in ("local", "syntactic", "delimiter")}
        (said,) = (each.value for each in at.caption if "changed most" in each.value)
        head, role = re.match(r"\*\*(L\d H\d)\*\*: its (.+) score changed most", said).groups()
        assert at.selectbox(key=ROLE).value == role
        shown = sent(at, f"{role}, b − a")
        sizes = np.abs([[float(text.replace("−", "-") or 0) for text in row] for row in shown["texts"]])
        layer, place = (int(number) for number in re.findall(r"\d", head))
        assert sizes[layer, place] == sizes.max()
        assert sent(at, "Attention of")["label"].startswith(f"Attention of {head} in ")
        firsts.append((role, head))
    assert len(ends) == 1
    at.select_slider(key="focus").set_value(pair[1]).run()
    assert at.selectbox(key=ROLE).value == firsts[0][0]
    assert sent(at, f"Attention of {firsts[0][1]} in ")
    chosen = next(role for role in at.selectbox(key=ROLE).options if role not in dict(firsts))
    at.selectbox(key=ROLE).set_value(chosen).run()
    at.select_slider(key="focus").set_value(other).run()
    assert at.selectbox(key=ROLE).value == chosen
    linked = compare(**{"with": [pair[1], other], "focus": other, "head": "1-1", "compare role": chosen})
    assert sent(linked, "Attention of L1 H1 in ")
    assert linked.selectbox(key=ROLE).value == chosen


def test_a_movie_review_begins_where_one_of_the_two_has_learnt_from_reviews(compare, store, pair):
    reviews = store / "checkpoints" / "movie-reviews"
    shutil.copytree(pair[1], reviews)
    try:
        at = compare(**{"with": "movie-reviews", "text": None})
        assert at.text_area(key="text").value == REVIEW.segments[0]
        at.multiselect(key="with").set_value([]).run()
        at.multiselect(key="with").set_value(["movie-reviews"]).run()
        assert at.text_area(key="text").value == REVIEW.segments[0]
        at.text_area(key="text").set_value("The reader's own.").run()
        assert at.text_area(key="text").value == "The reader's own."
        assert compare(**{"with": pair[1], "text": None}).text_area(key="text").value == EXAMPLE_TYPED
    finally:
        shutil.rmtree(reviews)


def test_the_table_is_that_of_the_call(compare, pair):
    at = compare(**{"compare details": wording.TABLE})
    found = sieve.compare(*pair, SHORT.splitlines(), device="cpu")
    (shown,) = (each.value for each in at.dataframe if "wilcoxon_p" in each.value)
    pd.testing.assert_frame_equal(shown, found.table, check_dtype=False, rtol=1e-4, atol=1e-5)


def test_equal_texts_count_once_and_the_page_says_how_many(compare):
    lines, tables = SHORT.splitlines(), []
    for times in (1, 3):
        typed = {"corpus_text": "\n".join(lines * times)}
        at = compare(**typed, **{"compare details": wording.TABLE})
        tables += [each.value for each in at.dataframe if "wilcoxon_p" in each.value]
    assert f"Equal texts count once: {2 * len(lines)} of {3 * len(lines)} repeat others." in summary(compare(**typed))
    pd.testing.assert_frame_equal(*tables, rtol=1e-4, atol=1e-5)


def test_heads_that_are_off_elsewhere_are_on_and_the_reference_against_itself_differs_in_nothing(compare, pair):
    at = compare(**{"with": pair[0], "off": "1-2"})
    assert wording.ALL_ON in [each.value for each in at.info]
    assert finding(at).startswith("Every head has the same roles under (a) and (b). :small[:gray[0 of 6 heads changed")
    assert wording.SAME in [each.value for each in at.info]
    said = [each.value for each in at.caption]
    assert not any("changed most" in sentence for sentence in said)
    assert any(re.match(r"\*\*L\d H\d\*\*: its .+ score is \d.\d\d under both\.", sentence) for sentence in said)


def test_between_the_two_lost_roles_fade_scores_and_attention_are_a_mixture_and_ends_are_the_checkpoints(compare):
    ends = {"tau": "1", "method": "mean alone", "compare details": wording.EACH}
    a, half, b = (compare(between=stop, **ends) for stop in ("a", "between", "b"))
    for end, side in ((a, "(a)"), (b, "(b)")):
        grid = sent(end, "Roles of the heads of")
        assert not grid["compared"]
        for field in ("scores", "states"):
            assert grid[field] == sent(end, f"{side} Roles of the heads")[field]
    grids = [sent(at, label) for at, label in ((a, "Roles of the heads of"), (half, "Roles gained"), (b, "Roles of"))]
    scores = [np.frombuffer(b64decode(grid["scores"]), dtype="<f4") for grid in grids]
    np.testing.assert_allclose(scores[1], (scores[0] + scores[2]) / 2, rtol=1e-5)
    assert (grids[1]["far"], grids[0]["far"]) == (0.5, None)
    weights = [np.frombuffer(b64decode(sent(at, "Attention of")["attention"]), dtype="u1") for at in (a, half, b)]
    roots = [each / 255.0 for each in weights]
    np.testing.assert_allclose(roots[1] ** 2, (roots[0] ** 2 + roots[2] ** 2) / 2, atol=0.01)
    assert compare(between="nowhere").select_slider(key="between").value == "between"


def test_without_a_fine_tuned_checkpoint_random_weights_stand_in_and_the_page_says_so(app, compare):
    at = app("compare", tau="1", method="mean alone")
    assert finding(at).startswith(wording.UNTRAINED)
    assert wording.STANDS_IN in told(at)
    assert wording.MAKE_SAMPLE in [each.label for each in at.button]
    assert wording.CHOOSE_SECOND in told(compare(**{"with": None}))


def test_the_page_opens_on_the_fine_tuned_checkpoint_as_soon_as_it_is_there_and_says_that_it_is_being_made(
    compare, store, pair
):
    folder = store / "checkpoints" / SAMPLE_FINE_TUNING
    shutil.copytree(pair[1], folder)
    try:
        with Journal(folder, pair[0], 0) as journal:
            journal.plan(20)
            at = compare(**{"with": None})
            (bar,) = at.get("progress")
            said = wording.being_made(SAMPLE_FINE_TUNING, "Step 0 of 20", wording.CHOOSE_SECOND)
            assert bar.proto.text == plain(said)
            journal.end("finished")
        assert fine_tuned_from(pair[0]) == SAMPLE_FINE_TUNING
        at = compare(**{"with": None})
        assert sent(at, "Attention of")
        assert sent(at, f"Roles gained, kept and lost by {SAMPLE_FINE_TUNING}")
        assert at.multiselect(key="with").value == []
        assert fine_tuned_from("another") is None
    finally:
        shutil.rmtree(folder)


def test_a_checkpoint_that_is_not_there_gets_a_sentence(compare):
    at = compare(**{"with": "/nowhere/at/all"})
    assert [each.value for each in at.error if "There is no folder" in each.value]


def test_checkpoints_of_another_shape_keep_the_views_by_depth(compare, small):
    at = compare(**{"with": str(small("bert", num_hidden_layers=3))})
    assert any("has 2 layers x 3 heads and the compared checkpoint 3 x 3" in each.value for each in at.info)
    assert len(at.get("vega_lite_chart")) == 2


def test_what_does_not_apply_to_one_of_two_shapes_is_no_share_of_0(compare, small):
    at = compare(**{"with": str(small("gpt2", "CausalLM", n_layer=3)), "corpus_text": "The cat\nA dog\nThe bird"})
    *_, overall = charts(at)
    shares = overall[overall["role"] == "delimiter"].set_index("checkpoint")["share"]
    assert shares.notna().tolist() == [True, False], "GPT-2 has no delimiters in texts without punctuation"
    assert set(overall.loc[overall["share"].isna() & (overall["role"] != ""), "label"]) == {"not applicable"}


def test_other_tokens_are_said_and_attention_is_compared_between_words(compare, small):
    at = compare(**{"with": str(small("gpt2"))})
    shown = " ".join(each.value for each in (*at.markdown, *at.caption, *at.info))
    assert "The tokenizers split 4 of 4 texts differently." in shown
    assert "attention is shown between words" in shown
    assert [token.strip() for token in sent(at, "Attention of")["queries"]["tokens"]] == ["The", "cat", "sat."]
    grid = sent(at, "Roles gained, kept and lost")
    letters = {grid["roles"][place]["letter"] for place in grid["shown"]}
    assert {"D", "F"} <= letters, "of delimiters under a, and of the first token under b"


@pytest.mark.parametrize(
    ("names", "values", "unit", "masked", "said"),
    [
        (["bad", "good", "so"], [0.612, 0.3, 0.088], "probability", None, "Predicts bad 61%, good 30%"),
        (["score"], [1.5], "value", None, "Predicts score 1.50"),
        (["great", "good"], [0.21, 0.09], "probability", "film", "In place of “film”: great 21%, good 9%"),
    ],
)
def test_predictions_in_words(names, values, unit, masked, said):
    assert wording.predicted(names, values, unit, masked) == said


def test_the_next_token_is_said_with_its_space_and_after_which_token():
    next_token = Prediction(names=("She", " She"), values=np.array([0.1, 0.18]), unit="probability", after=".")
    assert prediction_sentence(next_token) == "After “\\.”: ␣She 18%, She 10%"


def run(name, checkpoint, right=0.8):
    """A finished run with 30 validation texts, half of them in either class."""
    measured = (ValidationResult(5, 0.7, 0.9, None), ValidationResult(10, 0.6, right, None))
    of_half = Validation(30, 0.5, None)
    progress = Progress("finished", 10, 10, None, (), measured, (5, 10), "", checkpoint=checkpoint, validation=of_half)
    return SavedRun(name, Path(name), progress)


def test_several_checkpoints_are_held_against_each_other_on_the_texts_that_all_can_read(compare, small, pair):
    short = small("bert", max_position_embeddings=14)
    few = "The cat.\nShe ate.\nA dog."
    typed = few + "\nThe old cat sat on the old mat and drank."
    each = {"compare details": wording.EACH}
    at = compare(**{"with": [pair[1], short], "corpus_text": typed, "focus": pair[1]} | each)
    alone = compare(**{"with": pair[1], "corpus_text": typed} | each)
    both = sent(at, "(b) Roles of the heads")
    assert both["label"].endswith(pair[1])
    assert both["scores"] != sent(alone, "(b) Roles of the heads")["scores"]
    assert (
        both["scores"]
        == sent(compare(**{"with": pair[1], "corpus_text": few} | each), "(b) Roles of the heads")["scores"]
    )
    assert any("Longer than some checkpoints can read" in each.value and "text 4" in each.value for each in at.warning)


@pytest.mark.parametrize(
    ("overall", "p", "expected"),
    [
        (0.5, 0.04, "**delimiter:sep** rose by 0.5 on average over all heads and 7 texts, p = 0.0400."),
        (-2.0, 1e-9, "**delimiter:sep** fell by 2 on average over all heads and 7 texts, p < 0.001."),
        (0.0, np.nan, "**delimiter:sep** does not change on any text."),
        (np.nan, np.nan, "**delimiter:sep** is not applicable to these texts."),
    ],
)
def test_the_shift_in_words(overall, p, expected):
    assert wording.shift("delimiter:sep", overall, p, 7) == expected


def change(role, before, gained=0, lost=0, where_gained=None, where_lost=None):
    counts = {"before": before, "after": before + gained - lost, "kept": before - lost}
    return RoleChange(role=role, gained=gained, lost=lost, where_gained=where_gained, where_lost=where_lost, **counts)


SYNTACTIC = change("syntactic", 4, gained=2, lost=1, where_gained=(1, 2, 2), where_lost=(4, 4, 1))
DELIMITER = change("delimiter", 53, lost=19, where_lost=(1, 4, 16))
BLOCK = change("block", 3)


@pytest.mark.parametrize(
    ("changes", "training", "sentence"),
    [
        (
            [SYNTACTIC, DELIMITER, BLOCK],
            "Fine-tuning",
            "Fine-tuning took the delimiter role (attention to the special tokens) from 19 of 53 heads, mostly in "
            "layers 1–4, gave the syntactic role (attention to words that are related to each other) to 2 and took it "
            "from 1 of 4.",
        ),
        (
            [SYNTACTIC, DELIMITER, BLOCK],
            "",
            "From (a) to (b), 19 of 53 heads lose the delimiter role (attention to the special tokens), mostly in "
            "layers 1–4, 2 gain the syntactic role (attention to words that are related to each other) and 1 of "
            "4 loses it.",
        ),
        (
            [change("local", 0, gained=1, where_gained=(0, 0, 1))],
            "Fine-tuning for 63 steps",
            "Fine-tuning for 63 steps gave the local role (attention to neighbouring tokens) to 1 head.",
        ),
        (
            [change("block", 1_200, lost=1_100, where_lost=(5, 5, 1_100))],
            "",
            "From (a) to (b), 1,100 of 1,200 heads lose the block role (attention to tokens of the same segment), all "
            "in layer 5.",
        ),
        (
            [change("sink", 9, lost=9, where_lost=(0, 5, 9))],
            "Fine-tuning",
            "Fine-tuning took the first-token sink role (attention to the first token) from 9 of 9 heads.",
        ),
        ([BLOCK], "Fine-tuning", "Fine-tuning changed no head’s role."),
        ([BLOCK], "", "Every head has the same roles under (a) and (b)."),
    ],
)
def test_what_changed_in_one_sentence(changes, training, sentence):
    assert what_changed(changes, 6, training) == sentence


def test_training_is_named_only_where_it_made_one_out_of_the_other():
    runs = [run("run", "bundled")]
    assert training_of("run", "bundled", runs).sentence == "Fine-tuning"
    assert training_of("run/checkpoint-1063", "bundled", runs).sentence == "Fine-tuning for 1,063 steps"
    for name, reference in (("run", "another"), ("bundled", "run"), ("other/checkpoint-5", "bundled")):
        assert training_of(name, reference, runs) == TrainingHistory("")


def test_training_that_is_not_shown_to_be_above_chance_took_nothing():
    runs = [run("run", "bundled", right=0.6)]
    training = training_of("run", "bundled", runs)
    assert training.sentence == ""
    assert wording.not_above_chance(training.chance) == (
        "There is no evidence that its training taught it anything: the validation accuracy is 0.600 at step 10 (95% "
        "interval 0.423 to 0.754, 30 texts; the most frequent class alone: 0.500). The differences below need not "
        "come from learning the task."
    )
    assert training_of("run/checkpoint-7", "bundled", runs) == TrainingHistory("Fine-tuning for 7 steps")
    old = replace(runs[0], progress=replace(runs[0].progress, validation=None))
    assert training_of("run", "bundled", [old]) == TrainingHistory("Fine-tuning"), "an old run does not say"


def test_what_the_sentence_stands_on_in_words():
    assert wording.summary(12, 72, "tau 3") == "12 of 72 heads changed a role at tau 3."
    sizes = DifferenceSizes(
        n=200, largest=-0.5, role="local", head=(1, 3), least=0.1, n_large=3, n_tested=200, n_significant=90, n_both=3
    )
    effect = "Of 200 mean scores, 3 (1.5%) differ by 0.1 or more; the largest difference is -0.5 (L1 H3, local)."
    for n_changed, n_differ, said in (
        (12, 9, " The score of that role differs significantly in 9 of the heads that changed one."),
        (2, 2, " The score of that role differs significantly in all of the heads that changed one."),
        (0, 0, ""),
    ):
        assert wording.sizes_first(sizes, n_changed, n_differ, "score") == effect + said


def test_the_least_difference_is_in_the_link_and_decides_from_the_first_sentence_on(compare):
    key = "least difference of score"
    at = compare()
    assert " differ by 0.1 or more; " in summary(at)
    at.number_input(key=key).set_value(0.25).run()
    assert " differ by 0.25 or more; " in summary(at)
    linked = compare(**{key: "0.25"})
    assert linked.number_input(key=key).value == 0.25
    told = [each.value for each in linked.markdown if "mean scores" in each.value]
    assert [each.count(" differ by 0.25 or more; ") for each in told] == [1]
    for refused in ("-1", "nan", "much"):
        assert " differ by 0.1 or more; " in summary(compare(**{key: refused}))


def transitions_page(compare, **link):
    return compare(**{"compare details": wording.TRANSITIONS, "tau": "1", "method": "mean alone"} | link)


def test_a_transition_lists_its_heads_and_a_head_leads_to_its_arcs_and_to_inspect(compare):
    at = transitions_page(compare)
    (table,) = (each.value for each in at.dataframe if "which" in each.value)
    options = at.selectbox(key=TRANSITION).options
    assert [f"{before} → {after}" for before, after in zip(table["before"], table["after"])] == [
        option.split(":")[0].replace(" + ", ", ") for option in options[: len(table)]
    ]
    assert HEAD_OF not in [each.key for each in at.button_group]
    at.selectbox(key=TRANSITION).set_value(options[0].split(":")[0]).run()
    heads = at.button_group(key=HEAD_OF)
    assert ", ".join(heads.options) == table["which"][0]
    heads.set_value(heads.options[0]).run()
    assert sent(at, "Attention of")["label"].startswith(f"Attention of {heads.options[0]} in ")


def test_what_a_click_sends_is_taken_only_where_it_names_a_mark(monkeypatch):
    session = {}
    monkeypatch.setattr("attention_sieve.dashboard.views.comparison.changes.st.session_state", session)
    marks = {"local → no role": ((0, 1),)}
    for nothing in (None, 3, ["local → no role"], "local → gone", {"mark": 1}):
        _take_mark(marks, [{"mark": nothing}, {"layer": nothing}])
    assert session == {}
    _take_mark(marks, [{"mark": "local → no role"}])
    assert session == {TRANSITION: "local → no role"}


def test_a_link_keeps_a_transition_under_another_tau_that_has_it_and_else_says_so(compare):
    at = transitions_page(compare)
    at.selectbox(key=TRANSITION).set_value("no role under a").run()
    assert at.query_params[TRANSITION] == "no role under a"
    there = transitions_page(compare, transition="no role under a", tau="10")
    assert there.selectbox(key=TRANSITION).value == "no role under a"
    n_heads, n_there = (
        next(option for option in page.selectbox(key=TRANSITION).options if option.startswith("no role under a: "))
        for page in (at, there)
    )
    assert n_heads != n_there
    name = at.selectbox(key=TRANSITION).options[0].split(":")[0]
    at.selectbox(key=TRANSITION).set_value(name).run()
    tau = at.slider(key="tau")
    tau.set_value(tau.max).run()
    assert not any(option.startswith(f"{name}:") for option in at.selectbox(key=TRANSITION).options)
    assert at.selectbox(key=TRANSITION).value is None
    assert TRANSITION not in at.query_params
    there = transitions_page(compare, transition=name, tau="10")
    assert any("which no head makes here" in warning.value for warning in there.warning)


def test_under_another_tau_or_correction_or_the_share_every_view_says_so_and_runs_no_model(compare):
    at = compare()
    before, kept = controls.inference().n_passed, sent(at, "Roles gained, kept and lost")
    at.slider(key="tau").set_value(1.0).run()
    at.selectbox(key="method").set_value("mean alone").run()
    at.selectbox(key="correction").set_value("none").run()
    assert sent(at, "Roles gained, kept and lost")["states"] != kept["states"]
    assert "at tau 1." in finding(at)
    at = compare(**{"compare details": wording.EACH})
    first = sent(at, "(a) Roles of the heads")
    at.selectbox(key="scale").set_value("share above chance").run()
    assert controls.inference().n_passed == before
    assert "changed a role at tau 0.5 of the share above chance" in finding(at)
    assert {sent(at, f"({side}) Roles of the heads")["noun"] for side in "ab"} == {"share"}
    assert sent(at, "(a) Roles of the heads")["scores"] != first["scores"]
    for tab in (wording.DIFFERENCES, wording.LAYERS, wording.DIVERGENCE, wording.TRANSITIONS, wording.TABLE):
        compare(scale="share above chance", **{"compare details": tab})
    at = compare(scale="share above chance", **{"compare details": wording.SURE})
    *_, said = (each.value for each in at.markdown if "differ significantly" in each.value)
    assert re.search(
        r"^- Of \d+ mean scores, \d+ \([\d.]+%\) differ by 0\.02 or more; the largest difference is ", said
    )
    assert re.search(r"\n- For \*\*\d\*\* of the \d heads? that changed a role, the labels under a and under b", said)
    assert len(re.findall(r"\n- \*\*(?:local|syntactic|delimiter|block|delimiter:sep)\*\*", said)) == 5
