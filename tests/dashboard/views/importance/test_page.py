"""The page Importance without a browser: what it computes, and what it says where a metric needs something else."""

import base64
import json

import numpy as np
import pandas as pd
import pytest
from reading import charts, command_of, data_of, said, sent, told

from attention_sieve.__main__ import main
from attention_sieve.core.analysis import results
from attention_sieve.core.answering import find
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS
from attention_sieve.core.importance.effects import effects, kept_alone
from attention_sieve.core.importance.metrics import label_score, mean_score
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import ablation_question, gated_question
from attention_sieve.core.importance.settings import AblationSettings
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls, wording
from attention_sieve.dashboard.components.kept_text import mark_of
from attention_sieve.dashboard.views.importance import wording as words
from attention_sieve.dashboard.views.inspect import wording as inspect_wording
from attention_sieve.dashboard.views.training import labelled
from attention_sieve.dashboard.views.training import wording as labelled_wording
from attention_sieve.dashboard.views.training.labelled import TABLE as TABLE_KEY

TEXTS = "the cat sat on the mat.\na dog chased two black birds.\nshe does eat red apples."
N_TEXTS = 3
MANY = "\n".join([TEXTS] * 34)
ROWS = ("the cat sat,no", "a dog ran,yes", "she ate apples,so", "the mat is red,no", "two birds,yes", "a cat,so")
TABLE = "\n".join(["sentence,label", *ROWS])
VALUES = [0, 2, 1, 0, 2, 1]
"""Of the rows, as the checkpoint numbers its classes."""


@pytest.fixture
def opened(app, small):
    """opened(head, **link) -> the page under a small checkpoint with that head."""

    def of(head="", classes=None, **link):
        folder = small("bert", head, **({} if classes is None else {"id2label": classes}))
        link.setdefault("corpus_text", TEXTS)
        return folder, app("importance", checkpoint=folder, **link)

    return of


def shown_map(at, score="change"):
    """The numbers that the map draws."""
    data = sent(at, words.damage_title(words.SCORE_NAMES[score]))
    parts = np.frombuffer(base64.b64decode(data["parts"]), "<f4").reshape(data["layers"], data["heads"])
    return parts * float(data["high"][0].removeprefix("+"))


def loaded(folder):
    return load_checkpoint(find_checkpoint(folder), device="cpu")


def ablated(folder, typed, replace="zero"):
    inputs = list(map(LabelledText, read_typed(typed)))
    return find(ABLATION_ANALYSIS, loaded(folder), inputs, AblationSettings(replace=replace)).effects


@pytest.mark.parametrize(("replaced", "replace"), [(words.ZERO, "zero"), (words.MEAN, "mean")])
def test_the_map_and_the_finding_are_what_core_computes(opened, replaced, replace):
    folder, at = opened(**{"replaced by": replaced})
    assert not said(at)
    expected = ablated(folder, TEXTS, replace)
    assert shown_map(at) == pytest.approx(expected.delta, abs=1e-6)
    layer, head = np.unravel_index(expected.delta.argmax(), expected.delta.shape)
    assert f"Without **L{layer} H{head}** the text vector changes most" in told(at)
    assert f"By {expected.delta.max():.2g}, over 3 texts." in told(at)
    assert words.FEW in told(at)
    (few,) = (each.value for each in at.info)
    assert few.startswith("There are 3 texts, and intervals and p-values need at least 100, or 20 for the accuracy of ")


def test_a_head_is_measured_against_the_median_and_its_layer_and_shown_with_the_text_it_changes_most(app, small):
    folder = small("bert")
    at = app("importance", checkpoint=folder, corpus_text=TEXTS, head="1-2")
    texts, checkpoint = read_typed(TEXTS), loaded(folder)
    outcomes = results(checkpoint, ablation_question("output"), texts)
    changes = np.stack([outcome.without for outcome in outcomes])[..., 0]
    without = results(
        checkpoint, gated_question("output", np.array([[[0, 0, 0], [1, 1, 1]], [[1, 1, 1], [0, 0, 0]]])), texts
    )
    layers = np.stack(without)[..., 0].mean(axis=0)
    mean = changes.mean(axis=0)
    layer, head = np.unravel_index(mean.argmax(), mean.shape)
    share = mean[layer, head] / layers[layer]
    times = f"{share:.0%}" if share < 1 else f"{share:.1f} times"
    assert f"most: {times} as much as without all of layer {layer}." in told(at)
    drawn = next(rows for rows in charts(at) if "off" in rows)
    assert dict(zip(drawn["off"], drawn["damage"])) == pytest.approx(
        {words.MEDIAN: np.median(mean), "L1 H2": mean[1, 2], "all of layer 1": layers[1]}, abs=1e-6
    )
    most = int(changes[:, 1, 2].argmax())
    assert f"{words.most_changed(changes[most, 1, 2])}\n\n> {texts[most].segments[0]}" in told(at)


def test_the_loss_of_a_language_model_may_fall_and_is_tested(opened):
    folder, at = opened("MaskedLM", metric=words.LM, corpus_text=MANY)
    outcomes = results(loaded(folder), ablation_question("lm"), read_typed(MANY))
    expected = effects(outcomes, mean_score("loss"), [None] * 102)
    assert (expected.p_adjusted < 0.05).any()
    assert shown_map(at, "loss") == pytest.approx(expected.delta, abs=1e-5)
    differs = expected.p_adjusted < 0.05
    worse, better = (int((differs & (sign * expected.delta > 0)).sum()) for sign in (1, -1))
    assert f"the score gets worse without {worse} of 6 tested heads and better without {better}." in told(at)


def test_a_loss_over_fewer_than_a_hundred_texts_is_shown_without_a_word_of_significance(opened):
    _, at = opened("MaskedLM", metric=words.LM, corpus_text="\n".join([TEXTS] * 7))
    assert "over 21 texts." in told(at)
    assert "At level" not in told(at)
    assert "(95% interval" not in told(at)
    (few,) = (each.value for each in at.info)
    assert few.startswith("No change has an interval and a p-value. There are 21 texts, and at least 100 are needed: ")
    data = sent(at, words.damage_title(words.SCORE_NAMES["loss"]))
    assert not data["mark"]
    assert not any(name in json.dumps(data) for name in (words.INTERVAL, words.P_ADJUSTED, "nan", "NaN"))


def test_a_labelled_table_is_scored_by_the_score_that_the_reader_picks(opened, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "animals.csv").write_text(TABLE, "utf-8")
    folder, at = opened("SequenceClassification", {0: "no", 1: "so", 2: "yes"}, metric=words.LABELS)
    at.file_uploader(key="labelled").upload("animals.csv", TABLE.encode())
    at.run()
    texts = read_typed("\n".join(row.split(",")[0] for row in ROWS))
    outcomes = results(loaded(folder), ablation_question("labels"), texts)
    for name in ("accuracy", "loss"):
        at.selectbox(key="score").set_value(words.SCORES[name])
        at.run()
        expected = effects(outcomes, label_score(name, np.array(VALUES, float), 3), [None] * len(ROWS))
        sign = 1 if name == "loss" else -1
        assert shown_map(at, name) == pytest.approx(sign * expected.delta, abs=1e-5)
        worst = (
            ""
            if (sign * expected.delta > 0).any()
            else f"Without no head alone is the {words.SCORE_NAMES[name]} worse."
        )
        assert f"{worst or 'Without **L'}" in told(at)
        assert f"With all heads on it is {expected.full:.3g};" in told(at)
        (line,) = command_of(at, "importance of heads")
        assert main(line) == 0
        assert pd.read_parquet("ablate.parquet")["delta"].to_numpy() == pytest.approx(expected.delta.ravel(), abs=1e-5)


def test_predicted_words_are_offered_where_a_checkpoint_predicts_some_and_else_the_page_says_why_not(opened):
    _, at = opened(metric=words.LM)
    assert not said(at)
    assert "was saved without a language-model head" in at.button_group(key="metric").help
    assert at.button_group(key="metric").options == [words.OUTPUT, words.LABELS]
    assert "the text vector changes most" in told(at)
    _, at = opened("MaskedLM")
    assert "without a language-model head" not in at.button_group(key="metric").help
    assert at.button_group(key="metric").options == [words.OUTPUT, words.LM, words.LABELS]


def test_a_metric_without_a_table_says_so_and_the_others_stay(opened):
    _, at = opened(metric=words.LABELS)
    assert labelled_wording.WAIT in told(at)
    at.button_group(key="metric").set_value([words.OUTPUT]).run()
    assert not said(at)
    assert "the text vector changes most" in told(at)


def test_each_layer_with_one_head_is_judged_on_the_other_half(opened):
    folder, at = opened(**{"keep one": "true"})
    table = at.dataframe[-1].value
    outcomes = results(loaded(folder), ablation_question("output", alone=True), read_typed(TEXTS))
    expected = kept_alone(outcomes, mean_score("change"), [None] * N_TEXTS)
    assert table["delta"].to_numpy() == pytest.approx(expected.effects.delta, abs=1e-6)
    assert [table["even_head"].tolist(), table["odd_head"].tolist()] == expected.head.tolist()


def test_the_card_of_a_head_says_its_place_once_the_page_has_computed_it(app, small):
    folder, texts = small("bert", hidden_dropout_prob=0.2), f"{TEXTS}\nwho ran on the mat?"
    link = {"checkpoint": folder, "corpus_text": texts, "head": "1-2", "text": "The cat sat."}
    assert "by importance" not in told(app("inspect", **link))
    app("importance", **link)
    expected = ablated(folder, texts).delta
    place = 1 + int((expected > expected[1, 2]).sum())
    sentence = inspect_wording.without_head(float(expected[1, 2]), place, 6, 4)
    assert sentence in told(app("inspect", **link))


def kept_in_tab(at):
    """What the browser's tab was given to keep."""
    (kept,) = [data for view in at.get("bidi_component") if (data := data_of(view.proto.json)).get("name") == TABLE_KEY]
    return kept


def after_reload(app, folder, at, **link):
    """A new session of the same tab, which has answered with what it has kept."""
    kept = kept_in_tab(at)
    mark = at.query_params[f"{TABLE_KEY}{controls.IN_TAB}"]
    there = app("importance", checkpoint=folder, metric=words.LABELS, **{f"{TABLE_KEY}{controls.IN_TAB}": mark}, **link)
    assert [each.value for each in there.markdown][-1] == wording.FETCHING, "nothing is drawn before the tab answers"
    assert mark_of(kept["text"]) == kept["mark"] == mark
    there.session_state[TABLE_KEY] = kept["text"]
    del there.session_state[f"{TABLE_KEY} to fetch"]
    return there.run()


def test_a_reload_brings_the_table_back_with_its_columns_and_removing_it_empties_the_tab(app, opened):
    folder, at = opened("SequenceClassification", {0: "no", 1: "so", 2: "yes"}, metric=words.LABELS)
    table = "words,other,kind\n" + "\n".join(row.replace(",", ",x,") for row in ROWS)
    at.file_uploader(key="labelled").upload("animals.csv", table.encode()).run()
    columns = {each.label: each for each in at.selectbox}
    columns[labelled_wording.TEXT_COLUMN].set_value("words")
    columns[labelled_wording.LABEL_COLUMN].set_value("kind").run()
    assert labelled_wording.IN_TAB in told(at)
    there = after_reload(app, folder, at)
    assert not said(there)
    assert labelled_wording.from_tab("animals.csv") in told(there)
    np.testing.assert_array_equal(shown_map(there, "accuracy"), shown_map(at, "accuracy"))
    assert kept_in_tab(there) == kept_in_tab(at)
    assert any("your uploaded file" in view.proto.json for view in there.get("bidi_component"))
    at.file_uploader(key="labelled").set_value(None).run()
    assert kept_in_tab(at)["text"] == ""
    assert f"{TABLE_KEY}{controls.IN_TAB}" not in at.query_params
    assert labelled_wording.WAIT in told(at)


def test_a_table_that_the_tab_has_no_room_for_is_asked_for_by_its_name(app, opened, monkeypatch):
    monkeypatch.setattr(labelled, "MOST_KEPT", 20)
    folder, at = opened("SequenceClassification", {0: "no", 1: "so", 2: "yes"}, metric=words.LABELS)
    at.file_uploader(key="labelled").upload("animals.csv", TABLE.encode()).run()
    assert labelled_wording.not_in_tab("animals.csv") in told(at)
    assert len(kept_in_tab(at)["text"]) < 200
    there = after_reload(app, folder, at)
    asked = "Upload animals.csv again to continue: finished texts are kept."
    assert asked in told(there)
    there.file_uploader(key="labelled").upload("animals.csv", TABLE.encode()).run()
    np.testing.assert_array_equal(shown_map(there, "accuracy"), shown_map(at, "accuracy"))


def test_a_damaged_table_of_the_tab_is_none_and_one_whose_bytes_are_damaged_is_asked_for_again(opened):
    _, at = opened("SequenceClassification", {0: "no", 1: "so", 2: "yes"}, metric=words.LABELS)
    for text in ("null", "[]", "{", '{"name": 3, "packed": null, "columns": [null, null, null]}'):
        at.session_state[TABLE_KEY] = text
        at.run()
        assert labelled_wording.WAIT in told(at)
    for packed, sentence in (("%", "Upload a.csv again"), ("eA==", "cannot be unpacked")):
        at.session_state[TABLE_KEY] = json.dumps({"name": "a.csv", "packed": packed, "columns": [None, None, None]})
        at.run()
        assert sentence in said(at)[0]
