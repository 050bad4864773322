"""Importance: its views that compare, without a browser."""

import re

import numpy as np
import pandas as pd
import pytest
from reading import command_of, data_of, said
from scipy.stats import pearsonr, spearmanr

from attention_sieve.__main__ import main
from attention_sieve.core.importance.agreement import Agreement, Correlation, TwoSets
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS, BACKUP_COLUMNS
from attention_sieve.core.importance.backups import BackupAnswers, BackupFinding
from attention_sieve.core.importance.finding import CheapMeasures, ImportanceFinding
from attention_sieve.core.importance.measures import Measure
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import ImportanceSettings, MetricSettings
from attention_sieve.core.statistics.by_role import compare_by_role
from attention_sieve.core.texts.text import Text, read_typed
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.files.provenance import lines_of
from attention_sieve.dashboard.samples import read_sample
from attention_sieve.dashboard.state import HEADS
from attention_sieve.dashboard.views import by_role as heads_by_role
from attention_sieve.dashboard.views.importance import agreement, backups, by_role, two_sets
from attention_sieve.dashboard.views.importance import wording as words

NAN = float("nan")


@pytest.fixture
def opened(app):
    """opened(tab, **link) -> the page with that tab open."""

    def of(tab, **link):
        return app("importance", **{"importance details": tab} | link)

    return of


def told(at, part):
    """The paragraph with that part, without what keeps Markdown from reading it."""
    return next(each.value for each in at.markdown if part in each.value)


def table(at, column):
    return next(each.value for each in at.dataframe if column in each.value)


def test_every_measure_is_compared_with_ablation_and_settings_change_only_what_they_should(opened, small, monkeypatch):
    at = opened(agreement.TAB, checkpoint=small("bert", num_hidden_layers=3))
    assert "Over 9 heads, " in told(at, "comes closest to the order of ablation")
    assert any(
        "ablation: change of the text vector without the head (rank)" in each.proto.spec
        for each in at.get("vega_lite_chart")
    )
    before = table(at, "spearman")
    assert set(before["measure"]) == set(agreement.ABOUT) - {"attribution against zero", "attribution against mean"}
    assert before.groupby("measure").size().unique().tolist() == [1 + 3]
    over_all = before[before["layer"] == "all"]
    assert (over_all["low"] <= over_all["high"]).all()
    at.toggle(key="normalise").set_value(True).run()
    after = table(at, "spearman")
    changed = {name for name in set(before["measure"]) if not rows_of(before, name).equals(rows_of(after, name))}
    assert changed == {"gradient per token", "gradient per text", "gradient per batch"}
    within = after["layer"] != "all"
    np.testing.assert_allclose(after["spearman"][within], before["spearman"][within])  # a norm leaves a layer's order
    at.selectbox(key="cheap measure").set_value("flap").run()
    assert any(agreement.ABOUT["flap"] in each.value for each in at.caption)
    arrived = [re.search("([0-9]+)% reaches the tokens", each.value) for each in at.caption]
    assert [95 < int(found[1]) < 105 for found in arrived if found] == [True], "biases take little"
    monkeypatch.setattr("attention_sieve.core.importance.finding.agreements", None)
    at.session_state[HEADS] = [(2, 1)]
    at.run()  # another head costs no new comparison


def words_lost(sets, alone, together):
    """A finding of one text over the heads of a layer: what the loss is without each, and without those of each set."""
    answers = BackupAnswers(
        sets=tuple(tuple((0, head) for head in heads) for heads in sets),
        distances=np.zeros((1, len(alone), 1, len(alone))),
        alone=(TextOutcomes(full=np.zeros(1), without=np.array(alone, float)[None, :, None]),),
        together=np.array(together, float)[None, :, None],
    )
    return BackupFinding((LabelledText(Text(("a",))),), answers, BACKUP_ANALYSIS.settings)


def test_sentences_say_which_heads_stand_in_for_one_another():
    found = words_lost([(0, 1), (1, 2), (0, 2)], [0.1, -0.2, 3], [6.5, 7, 3.1])
    assert backups.summary(found) == (
        "Without **L0 H1, L0 H2** together the loss rises by 7, without one of them alone by at most 3: they may stand "
        "in for one another. So does 1 further set of 3."
    )
    assert backups.numbers(found, 0) == "Together minus the sum of each alone: 6.6."
    assert backups.summary(words_lost([(0, 1)], [1, 2], [3])) == (
        "1 set of heads that look at the same: none does clearly more damage together than its heads do alone."
    )


def test_heads_that_look_at_the_same_are_switched_off_together_and_a_text_vector_is_not_enough(
    opened, small, tmp_path, monkeypatch
):
    at = opened(backups.TAB, checkpoint=small("bert", "MaskedLM"), metric="predicted words")
    assert backups.NONE_ALIKE in told(at, "look at the same, so")
    folder = small("bert", "MaskedLM", initializer_range=0.02)  # all heads attend nearly evenly
    at = opened(backups.TAB, checkpoint=folder)
    assert [each.value for each in at.info if "text vector" in each.value] == [backups.OF_VECTORS]
    texts = "the cat sat on the mat.\na dog chased two birds."
    at = opened(backups.TAB, checkpoint=folder, metric="predicted words", corpus_text=texts)
    assert not said(at)
    shown = table(at, "beyond")
    assert list(shown) == list(BACKUP_COLUMNS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.jsonl").write_bytes(lines_of(read_typed(texts)))
    (line,) = command_of(at, "table of sets of heads")
    assert main(line) == 0
    pd.testing.assert_frame_equal(
        shown.reset_index(drop=True), pd.read_parquet("backups.parquet"), check_dtype=False, rtol=1e-4, atol=1e-6
    )


def test_heads_for_which_a_measure_errs_are_named_with_what_it_gives_and_what_ablation_gives():
    settings = ImportanceSettings(metric_settings=MetricSettings(metric="lm"), resamples=100)
    damage, values = np.array([[9.0, 8, 7, 6, 5, 4, 3]]), np.array([[9.0, -8, -7, -6, -5, -4, -3]])
    measure = Measure(name="relevance", over=lambda weights: np.repeat(values[None], len(weights), axis=0))
    cheap = CheapMeasures(measures=(measure,), left_out=())
    outcomes = (TextOutcomes(full=np.zeros(1), without=damage[..., None]),)
    found = ImportanceFinding((LabelledText(Text(("a",))),), (outcomes, cheap), settings)
    assert agreement.unreliable(found, "relevance") == (
        "First-order estimate unreliable for L0 H1 (-8; switched off 8), L0 H2 (-7; switched off 7), L0 H3 (-6; "
        "switched off 6), L0 H4 (-5; switched off 5), L0 H5 (-4; switched off 4) and 1 more: it gives nothing or the "
        "wrong sign, as slopes do where a softmax or a prediction is saturated."
    )
    assert agreement.unreliable(found, "confidence") == ""


def rows_of(rows, measure):
    return rows[rows["measure"] == measure].reset_index(drop=True)


def test_with_predicted_words_attribution_is_compared_too_and_what_is_not_allowed_is_named(opened, small):
    folder = small("gpt2", "CausalLM")
    at = opened(agreement.TAB, checkpoint=folder, metric="predicted words")
    measures = set(table(at, "spearman")["measure"])
    assert {"attribution against zero", "attribution against mean"} <= measures
    at = opened(agreement.TAB, checkpoint=small("deberta-v2"))
    named = [each.value.replace("\\", "") for each in at.info if each.value.startswith("Without ")]
    assert [each.split(":")[0] for each in named] == [
        "Without gradients",
        "Without wanda-sp and flap",
        "Without relevance",
    ]
    assert set(table(at, "spearman")["measure"]) == {"confidence"}


def test_the_map_writes_the_roles_of_each_head_and_the_table_compares_them(opened):
    at = opened(by_role.TAB, tau="1.5")
    views = [data_of(view.proto.json) for view in at.get("bidi_component") if view.proto.json]
    shown = next(view for view in views if view.get("label", "").endswith(", with their roles"))
    letters = "".join(letter for row in shown["cells"] for letter in row)
    rows = table(at, "superiority").set_index("role")
    for role in ("local", "delimiter"):
        look = LOOKS[role]
        assert letters.count(look.letter) == rows.loc[look.label, "n_holding"]
    assert (rows["n_holding"] + rows["n_others"] == 72).all()
    assert shown["details"][0]["label"] == by_role.ROLES
    assert f"**delimiter** ({rows.loc['delimiter', 'n_holding']} heads of 72)" in told(at, "**delimiter**")


def test_two_samples_are_compared_over_texts_that_are_in_one_of_them_only(opened, small, tmp_path, monkeypatch):
    few = small("bert", max_position_embeddings=400)
    at = opened(two_sets.TAB, corpus="sample pairs and texts", checkpoint=few)
    assert any("64 texts are left for the first set" in each.value for each in at.caption)
    assert list(table(at, "second_change").columns[:3]) == ["layer", "head", "name"]
    rows = table(at, "second_change").sort_values(["layer", "head"])
    monkeypatch.chdir(tmp_path)
    pairs, texts = read_sample("pairs"), read_sample("texts")
    for name, of_set in (("first", pairs), ("second", texts)):
        (tmp_path / f"{name}.jsonl").write_bytes(lines_of(of_set))
    for column, line in zip(("first", "second"), command_of(at, "heads on two sets of texts")):
        assert main(line) == 0
        np.testing.assert_allclose(rows[column], pd.read_parquet(f"{column}.parquet")["without"], rtol=1e-4, atol=1e-6)
    summary = told(at, "Pearson's correlation of the changes")
    assert summary.startswith("6 heads, 64 texts against 64 texts: ")
    assert f"**{pearsonr(rows['first'], rows['second'])[0]:.2f} (95% interval" in summary
    assert f"(Spearman) {spearmanr(rows['first'], rows['second'])[0]:.2f} (95%" in summary


def test_a_second_set_of_the_same_texts_gets_a_sentence_and_a_file_is_awaited(opened, small):
    texts = "\n".join(text.segments[0] for text in read_sample("texts")[:4])
    at = opened(two_sets.TAB, checkpoint=small("bert", max_position_embeddings=400), corpus_text=texts)
    assert said(at) == [two_sets.SAME]
    at.selectbox(key="second set").set_value(two_sets.UPLOAD).run()
    assert [each.value for each in at.info if "second set" in each.value] == [two_sets.WAIT]


def test_a_second_table_is_read_with_the_columns_of_the_first(opened, small):
    folder = small("bert", "SequenceClassification", id2label={0: "no", 1: "yes"}, max_position_embeddings=400)
    first = "sentence,label\nthe cat sat,no\na dog ran,yes\ntwo birds,yes\na cat,no"
    second = "id,sentence,label\n1,she ate apples,no\n2,the mat is red,yes\n3,a bird,no\n4,one dog,yes"
    at = opened(two_sets.TAB, checkpoint=folder, metric=words.LABELS)
    at.file_uploader(key="labelled").upload("first.csv", first.encode())
    at.run()
    assert [each.value for each in at.info if each.value == two_sets.WAIT_TABLE]
    at.file_uploader(key="second table").upload("second.csv", second.encode())
    at.run()
    assert said(at) == []
    assert "6 heads, 4 texts against 4 texts" in told(at, "4 texts against 4 texts")
    at.file_uploader(key="second table").upload(
        "other.csv", b"sentence,label\na bird,perhaps\na cat,no\na dog,yes\nit sat,no"
    )
    at.run()
    assert len(said(at)) == 1
    assert "perhaps" in said(at)[0]


def compared(measure, value, low, high):
    return Agreement(measure=measure, spearman=np.array([value]), low=np.array([low]), high=np.array([high]))


def test_sentences_say_what_the_numbers_carry():
    one, other = compared("flap", 0.5, 0.4, 0.6), compared("wanda-sp", 0.9, NAN, NAN)
    assert agreement.summary([one], 12) == (
        "Over 12 heads, **flap** comes closest to the order of ablation: Spearman's correlation 0.50 "
        "(95% interval 0.40 to 0.60)."
    )
    said_of_two = agreement.summary([one, other, compared("confidence", NAN, NAN, NAN)], 12)
    assert "**wanda-sp** comes closest to the order of ablation: Spearman's correlation 0.90. " in said_of_two
    assert said_of_two.endswith("Farthest from it is **flap** with 0.50 (95% interval 0.40 to 0.60).")
    assert agreement.summary([compared("flap", NAN, NAN, NAN)], 12) == agreement.NOTHING
    nothing = Correlation(value=NAN, low=NAN, high=NAN)
    changes = (np.zeros((1, 2)), np.ones((1, 2)))
    found = TwoSets(changes=changes, pearson=nothing, spearman=nothing, within=(NAN, 1.0))
    assert two_sets.summary(found, 2, (1, 3)) == (
        "2 heads, 1 text against 3 texts: in one of the sets all heads change the score by the same amount, so there "
        "is no correlation."
    )


def test_a_difference_that_only_follows_the_layers_is_said_to():
    importance = np.random.default_rng(0).normal(size=(4, 6)) + 10 * np.arange(4)[:, None]
    holds = np.zeros((3, 4, 6), bool)
    holds[0, 2:] = holds[0, 1, 3] = True
    holds[1, 0] = True
    found = compare_by_role(importance, holds, ["delimiter", "local", "block"])
    delimiter, local, block = heads_by_role.summary(found, 0.05).splitlines()
    assert "**delimiter** (13 heads of 24): ahead in" in delimiter
    assert delimiter.endswith("and no longer significant.")
    assert "no layer has heads of both sides" in local
    assert block == "- **block** (0 heads of 24): nothing to compare."
