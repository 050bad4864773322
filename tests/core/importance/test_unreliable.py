"""Where a first-order measure errs, by hand, and over the texts that are looked at where ablation is left out."""

from dataclasses import replace

import numpy as np
import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.analysis import IMPORTANCE_ANALYSIS
from attention_sieve.core.importance.finding import CheapMeasures, ImportanceFinding
from attention_sieve.core.importance.measures import Measure
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.per_text import LabelledText, TextOutputs, TextSlopes
from attention_sieve.core.importance.question import HEAD_OUTPUTS, slopes_question
from attention_sieve.core.importance.settings import ImportanceSettings, MetricSettings
from attention_sieve.core.importance.unreliable import some_texts, unreliable_heads
from attention_sieve.core.importance.usage import importance_summary
from attention_sieve.core.texts.text import Text

NAN = float("nan")
DAMAGE = [10, 1, 0.9, -0.2, -0.05, 8, NAN]
VALUES = [5, 0.05, 0.05, 0.2, 0.2, -1, NAN]
"""Of the greatest damage 10 the second is a tenth, of the greatest value 5 it has a hundredth; the fourth and the sixth
have the wrong sign, the fifth has it, too, but hardly matters."""
SIGNED = [False, True, False, True, False, True, False]


def marked(values, damage, name="relevance", has_sign=True):
    return unreliable_heads(name, np.array([values]), np.array([[damage]], float), has_sign=has_sign)[0].tolist()


def test_a_measure_errs_that_gives_nothing_or_the_wrong_sign_to_a_head_that_matters():
    assert marked(VALUES, DAMAGE) == SIGNED
    missed = [False, True, *[False] * 5]
    assert marked(np.abs(VALUES), DAMAGE, "gradient per text") == missed
    assert marked(VALUES, np.abs(DAMAGE), has_sign=False) == missed
    assert not any(marked(VALUES, np.array(DAMAGE) * 1e-6)), "all of it may be rounding"


def test_an_attribution_is_nothing_beside_the_damage_that_it_estimates():
    assert marked([2e-6, -1e-6, 1e-6], [11, 9, 0.5], "attribution against zero") == [True, True, False]
    assert marked([2e-6, -1e-6, 1e-6], [11, 9, 0.5]) == [False, True, False]


def test_texts_are_looked_at_all_over_the_corpus():
    assert some_texts(3).tolist() == [0, 1, 2]
    assert some_texts(15).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    assert some_texts(2, 1).tolist() == [0]


def mean_of(by_text):
    return lambda weights: np.tensordot(weights, by_text, axes=1) / weights.sum(axis=1)[:, None, None]


def finding(damage, value, settings, name="attribution against zero", documents=None):
    """What is found of one text a row: one head is beyond question, others have these damages and values."""
    damage, value = (np.array(numbers, float).reshape(len(numbers), 1, -1) for numbers in (damage, value))
    sure = np.full((len(damage), 1, 1), 10.0)
    damage, value = np.concatenate([sure, damage], axis=-1), np.concatenate([sure, value], axis=-1)
    items = tuple(LabelledText(Text((f"{row}",), document=documents and documents[row])) for row in range(len(damage)))
    cheap = CheapMeasures(measures=(Measure(name=name, over=mean_of(value)),), left_out=())
    found = ImportanceFinding(items, (None, cheap), settings)
    outcomes = tuple(TextOutcomes(full=np.zeros(1), without=damage[row][..., None]) for row in found.compared)
    return ImportanceFinding(items, (outcomes, cheap), settings)


LOSS = ImportanceSettings(metric_settings=MetricSettings(metric="lm"), resamples=500)


def test_a_head_is_marked_only_where_other_texts_like_these_would_mark_it():
    certain, doubtful = [1, 2, 3, 2, 1, 2], [9, -3, -2, -1, -1, -1]
    found = finding(np.transpose([certain, doubtful]), [[-1, -1]] * 6, LOSS)
    assert found.exact.tolist() == [[10, pytest.approx(11 / 6), pytest.approx(1 / 6)]]
    assert found.unreliable["attribution against zero"].tolist() == [[False, True, False]]
    assert found.unreliable_heads("attribution against zero") == [(0, 1)]
    table = IMPORTANCE_ANALYSIS.table(found).set_index(["measure", "head"]).loc["attribution against zero"]
    assert table["exact"].to_numpy() == pytest.approx([NAN, 11 / 6, NAN], nan_ok=True)


def test_whole_documents_are_drawn():
    by_text, estimates = [[2]] * 10 + [[-2]] * 2, [[-1]] * 12
    assert finding(by_text, estimates, LOSS).unreliable["attribution against zero"][0, 1]
    documents = ["a"] * 10 + ["b"] * 2
    assert not finding(by_text, estimates, LOSS, documents=documents).unreliable["attribution against zero"][0, 1]


@pytest.mark.parametrize(
    ("name", "settings", "is_marked"),
    [
        ("relevance", LOSS, True),
        ("gradient per text", LOSS, False),
        ("relevance", replace(LOSS, metric_settings=MetricSettings(metric="output")), False),
        ("attribution against zero", replace(LOSS, replace="mean"), None),
        ("attribution against mean", replace(LOSS, replace="mean"), True),
        ("confidence", LOSS, None),
    ],
)
def test_a_sign_counts_where_it_means_something_and_an_estimate_for_the_ablation_that_it_is_of(
    name, settings, is_marked
):
    unreliable = finding([[2]] * 5, [[-1]] * 5, settings, name).unreliable
    assert (unreliable[name][0, 1] if name in unreliable else None) == is_marked


def test_without_ablation_eight_texts_are_compared_and_the_command_says_so():
    settings = replace(LOSS, no_ablation=True)
    damage = [[2] if row % 2 == 0 else [-100] for row in range(15)]
    found = finding(damage, [[-1]] * 15, settings)
    assert found.exact.tolist() == [[10, 2]], "every second text is looked at"
    assert found.unreliable_heads("attribution against zero") == [(0, 1)]
    assert [measure.name for measure in found.measures] == ["attribution against zero"]
    facts = IMPORTANCE_ANALYSIS.facts(found, settings)
    assert facts["estimates compared with ablation"] == "over 8 of 15 texts"
    assert list(importance_summary(found)) == [
        "First-order estimates that are unreliable, by ablation on 8 texts:",
        f"{'attribution against zero':<26}L0 H1",
    ]


def test_of_many_marked_heads_five_are_named():
    found = finding([[2, 3, 4, 5, 6, 7, 8]] * 4, [[-1] * 7] * 4, replace(LOSS, no_ablation=True))
    assert list(importance_summary(found))[1].endswith("L0 H7, L0 H6, L0 H5, L0 H4, L0 H3 and 2 more")


def test_where_no_head_can_be_ablated_the_measures_stay_without_marks():
    slopes = TextSlopes(
        signed=np.ones((1, 2)), absolute=np.ones((1, 2)), gradient=np.ones((1, 2, 3)), n_tokens=4, loss=np.array(0.5)
    )
    outputs = TextOutputs(total=np.ones((1, 2, 3)), squares=np.ones((1, 2, 3)), n_tokens=4)

    def ask(question, items, doing=None):
        if question is slopes_question("lm") or question is HEAD_OUTPUTS:
            return (slopes if question is slopes_question("lm") else outputs,) * len(items)
        raise AnalysisError("Not here.")

    items, settings = (LabelledText(Text(("a",))),), replace(LOSS, no_ablation=True)
    outcomes, cheap = IMPORTANCE_ANALYSIS.answers(ask, items, settings)
    assert outcomes is None
    assert dict(cheap.left_out)["a comparison with ablation"] == "Not here."
    found = ImportanceFinding(items, (outcomes, cheap), settings)
    assert (found.unreliable, found.exact) == ({}, None)
    assert IMPORTANCE_ANALYSIS.table(found)["unreliable"].isna().all()
