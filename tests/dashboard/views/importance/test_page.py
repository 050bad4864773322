"""The page Importance without a browser: what it computes, and what it says where a metric needs something else."""

import base64
import re

import numpy as np
import pytest
from reading import said, sent

from core.analysis import ablations, results
from core.checkpoints.find import find_checkpoint, load_checkpoint
from core.importance.effects import effects, kept_alone
from core.importance.metrics import label_score, mean_score
from core.importance.question import ablation_question
from core.texts.text import read_typed
from dashboard.views.importance import wording as words

TEXTS = "the cat sat on the mat.\na dog chased two black birds.\nshe does eat red apples."
N_TEXTS = 3
MANY = "\n".join([TEXTS] * 7)
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


def shown(at):
    return " ".join(each.value for each in at.markdown)


@pytest.mark.parametrize(("replaced", "replace"), [(words.ZERO, "zero"), (words.MEAN, "mean")])
def test_the_map_and_the_sentence_are_what_core_computes(opened, replaced, replace):
    folder, at = opened(**{"replaced by": replaced})
    assert not at.exception
    assert not said(at)
    expected = ablations(loaded(folder), read_typed(TEXTS), replace=replace)
    assert shown_map(at) == pytest.approx(expected.delta, abs=1e-6)
    layer, head = np.unravel_index(expected.delta.argmax(), expected.delta.shape)
    assert f"changes most without **L{layer} H{head}**: by {expected.delta.max():.2g}." in shown(at)
    (few,) = (each.value for each in at.info)
    assert few.startswith("There are 3 texts, and intervals and p-values need at least 20:")
    assert few.endswith(words.FEW)


def test_the_loss_of_a_language_model_may_fall_and_is_tested(opened):
    _, at = opened("MaskedLM", metric=words.LM)
    assert "At level" not in shown(at)
    folder, at = opened("MaskedLM", metric=words.LM, corpus_text=MANY)
    outcomes = results(loaded(folder), ablation_question("lm"), read_typed(MANY))
    expected = effects(outcomes, mean_score("loss"), [None] * 21)
    assert (expected.p_adjusted < 0.05).any()
    assert shown_map(at, "loss") == pytest.approx(expected.delta, abs=1e-5)
    differs = expected.p_adjusted < 0.05
    worse, better = (int((differs & (sign * expected.delta > 0)).sum()) for sign in (1, -1))
    assert f"the score gets worse without {worse} of 6 heads and better without {better}." in shown(at)


def test_a_labelled_table_is_scored_by_the_score_that_the_reader_picks(opened):
    folder, at = opened("SequenceClassification", {0: "no", 1: "so", 2: "yes"}, metric=words.LABELS)
    assert not at.exception
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
        assert f"With all heads on the {words.SCORE_NAMES[name]} is {expected.full:.3g};" in shown(at)


def test_labels_that_the_checkpoint_does_not_know_are_said(opened):
    _, at = opened("SequenceClassification", {0: "cats", 1: "dogs"}, metric=words.LABELS)
    at.file_uploader(key="labelled").upload("animals.csv", TABLE.encode())
    at.run()
    assert re.search('The table has the label "no", but .* knows 2 classes: "cats", "dogs"', said(at)[0])


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [(words.LM, "was saved without a language-model head"), (words.LABELS, "Upload a table of labelled texts")],
)
def test_a_metric_that_lacks_something_says_so_and_the_others_stay(opened, metric, sentence):
    _, at = opened(metric=metric)
    assert not at.exception
    assert any(sentence in each for each in (*said(at), *(each.value for each in (*at.info, *at.markdown))))
    at.button_group(key="metric").set_value([words.OUTPUT])
    at.run()
    assert not said(at)
    assert "The text vector changes most" in shown(at)


def test_each_layer_with_one_head_is_judged_on_the_other_half(opened):
    folder, at = opened(**{"keep one": "true"})
    table = at.dataframe[-1].value
    outcomes = results(loaded(folder), ablation_question("output", alone=True), read_typed(TEXTS))
    expected = kept_alone(outcomes, mean_score("change"), [None] * N_TEXTS)
    assert table["delta"].to_numpy() == pytest.approx(expected.delta, abs=1e-6)
    assert table["chosen on one half"].tolist() == [f"L{at} H{head}" for at, head in enumerate(expected.head[0])]


def test_the_card_of_a_head_says_its_place_once_the_page_has_computed_it(app, small):
    folder, texts = small("bert", hidden_dropout_prob=0.2), f"{TEXTS}\nwho ran on the mat?"
    link = {"checkpoint": folder, "corpus_text": texts, "head": "1-2", "text": "The cat sat."}
    assert "by importance" not in shown(app("inspect", **link))
    app("importance", **link)
    expected = ablations(loaded(folder), read_typed(texts)).delta
    place = 1 + int((expected > expected[1, 2]).sum())
    sentence = words.on_card(float(expected[1, 2]), place, 6, 4)
    assert sentence in shown(app("inspect", **link))
