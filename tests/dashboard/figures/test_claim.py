"""The lines of the heads of a claim."""

import numpy as np
from claim_figures import FIGURES, made_claim
from drawn import rows

from attention_sieve.dashboard.figures.claim import MOST, claim_strips


def test_each_head_has_its_score_interval_and_what_it_has_to_beat():
    finding = made_claim([0.7, 0.3, 0.55], fixed=0.2)
    figure = claim_strips(finding)
    heads = rows(figure, "head")
    assert heads["name"].tolist() == ["L0 H0", "L0 H1", "L0 H2"]
    for name in ("mean", "low", "high"):
        column = "value" if name == "mean" else name
        np.testing.assert_allclose(heads[column].astype(float), getattr(finding.tests, name).ravel())
    assert heads["holds"].tolist() == [verdict == "holds" for verdict in finding.verdicts]
    beside = rows(figure, "beside").groupby("what")["value"].apply(list)
    np.testing.assert_allclose(beside["permuted keys"], finding.permuted_mean)
    np.testing.assert_allclose(beside["at a fixed period"], [0.2] * 3)
    assert rows(figure, "line")[["label", "value"]].values.tolist() == [["tau", 0.5], ["uniform attention", 0.0]]
    assert "L0 H0 0.70, permuted keys 0.07, at a fixed period 0.20: holds" in figure.description


def test_uniform_attention_is_1_on_the_scale_of_scores():
    lines = rows(FIGURES["scores"], "line").set_index("label")["value"]
    assert (lines["tau"], lines["uniform attention"]) == (3, 1)


def test_of_many_heads_those_with_the_highest_scores_are_drawn_and_the_others_counted():
    heads = rows(FIGURES["many heads"], "head")
    assert len(heads) == MOST
    assert heads["name"].iloc[0] == "L0 H6"
    assert "6 heads with lower scores left out" in FIGURES["many heads"].description
