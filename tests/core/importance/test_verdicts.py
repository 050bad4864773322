"""The test of a change: how often it finds one where there is none, and its interval and p-value by other paths."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binomtest

from attention_sieve.core.importance.metrics import label_score
from attention_sieve.core.importance.verdicts import (
    LEAST_OF_ONE_SIZE,
    LEAST_UNITS,
    NOTHING,
    Changes,
    changes,
    pseudo_values,
    verdicts,
)
from attention_sieve.core.importance.wording import verdict_facts, without_verdict

N_HEADS = 1_000
FEW = 999
LAWS = {
    "normal": lambda chance, shape: chance.normal(size=shape),
    "lognormal": lambda chance, shape: chance.lognormal(size=shape) - np.exp(0.5),
    "t(3)": lambda chance, shape: chance.standard_t(3, size=shape),
    "nine tenths 0, lognormal": lambda chance, shape: (
        (chance.random(shape) < 0.1) * (chance.lognormal(size=shape) - np.exp(0.5))
    ),
    "nine tenths 0, else 1 or -1": lambda chance, shape: (
        (chance.random(shape) < 0.1) * chance.choice([-1.0, 1.0], size=shape)
    ),
}
"""Changes of a head that does not matter: their mean is 0."""
OF_ONE_SIZE = "nine tenths 0, else 1 or -1"


def of_values(values, *, one_size=False):
    return Changes(delta=values.mean(axis=0), by_unit=values, differs=values != 0, one_size=one_size)


def excludes_zero(found):
    return (found.low > 0) | (found.high < 0)


@pytest.mark.parametrize(
    ("law", "n_texts"),
    [*((law, 20) for law in LAWS), *((law, 200) for law in list(LAWS)[3:])],
)
def test_a_head_that_does_not_matter_is_found_at_most_as_often_as_said(chance, law, n_texts):
    """Fewer texts than a verdict needs show that the bound is one for real changes: simulated ones need no more."""
    values = of_values(LAWS[law](chance, (n_texts, N_HEADS)), one_size=law == OF_ONE_SIZE)
    found = verdicts(values, FEW, least=LEAST_OF_ONE_SIZE)
    assert (found.p <= 0.05).mean() < 0.06 + 2 * np.sqrt(0.06 * 0.94 / N_HEADS)


def test_a_head_that_matters_is_found_nearly_as_often_as_by_students_t(chance):
    from scipy.stats import ttest_1samp

    values = chance.normal(0.25, 1, size=(LEAST_UNITS, N_HEADS))
    power = (verdicts(of_values(values), FEW).p <= 0.05).mean()
    assert power > (ttest_1samp(values, 0).pvalue <= 0.05).mean() - 0.06 > 0.6


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["normal", "ones", "lognormal", "twos"]),
    st.floats(-0.35, 0.35),
    st.sampled_from([LEAST_UNITS, 141]),
)
@example(1056, "normal", 0.0, LEAST_UNITS)
def test_the_interval_excludes_0_exactly_where_p_is_at_most_005(seed, law, shift, n_texts):
    chance = np.random.default_rng(seed)
    shape = (n_texts, 12)
    values = {
        "normal": lambda: chance.normal(shift, 1, size=shape),
        "lognormal": lambda: chance.lognormal(size=shape) - 1.65 + shift,
        "ones": lambda: chance.choice([-1.0, 0, 1], p=[0.3 - shift / 2, 0.4, 0.3 + shift / 2], size=shape),
        "twos": lambda: chance.choice([-2.0, -1, 1, 2], p=[0.2 - shift / 4, 0.3, 0.3, 0.2 + shift / 4], size=shape),
    }[law]()
    found, mean = verdicts(of_values(values, one_size=law == "ones"), FEW), values.mean(axis=0)
    assert (excludes_zero(found) == (found.p <= 0.05)).all()
    is_inside = (found.low <= mean) & (mean <= found.high)
    # Among 100 drawn changes one may be so close to 0 that it is none, and 99 are too few.
    n_changed = (abs(values) > NOTHING * abs(values).max(axis=0)).sum(axis=0)
    assert (is_inside | ((n_changed < LEAST_UNITS) & np.isnan(found.low) & np.isnan(found.p))).all()


def test_sign_flips_by_all_of_them():
    """With 20 texts of which 10 change by 1, 2, 4, ... all 1,024 flips can be written down."""
    values = np.zeros((20, 1))
    values[:10, 0] = [1, -1, 1, 1, 1, 1, -1, 1, 1, 1]
    every = np.array(list(product([-1, 1], repeat=10))) @ np.abs(values[:10, 0])
    exact = (np.abs(every) >= values.sum()).mean()
    assert exact == pytest.approx(binomtest(2, 10).pvalue)
    assert verdicts(of_values(values, one_size=True)).p[0] == pytest.approx(exact, abs=0.01)


def test_the_interval_of_an_accuracy_is_agresti_and_mins():
    """Of 100 texts 12 become wrong and 3 right: by the formula of their section 4, with half a text in each cell."""
    values = np.zeros((100, 1))
    values[:12], values[12:15] = -1, 1
    found = verdicts(of_values(values, one_size=True))
    right, wrong, n = 3.5, 12.5, 102
    error = np.sqrt((right + wrong) - (right - wrong) ** 2 / n) / n
    assert (found.low[0], found.high[0]) == pytest.approx(
        ((right - wrong) / n - 1.959964 * error, (right - wrong) / n + 1.959964 * error)
    )
    assert found.p[0] == pytest.approx(binomtest(3, 15).pvalue, abs=0.01)


def test_the_bootstrap_t_one_resample_after_another():
    """Changes that are skewed to the right and mostly below 0: the bootstrap-t is the stricter test, above the mean."""
    n_texts, n_drawn = 120, 80
    values = np.random.default_rng(3).exponential(size=(n_texts, 1)) - 1.2
    found = verdicts(of_values(values))
    chance, mean, error = np.random.default_rng(11), values.mean(), values.std(ddof=1) / np.sqrt(n_texts)
    drawn = values[chance.integers(n_texts, size=(20_000, n_drawn)), 0]
    t = (drawn.mean(axis=1) - mean) / (drawn.std(axis=1, ddof=1) / np.sqrt(n_drawn))
    observed = mean / error
    assert found.p[0] == pytest.approx(2 * min((t >= observed).mean(), (t <= observed).mean()), abs=0.01)
    assert found.high[0] == pytest.approx(mean - np.quantile(t, 0.025) * error, abs=0.03)


def test_too_few_texts_have_no_verdict_and_a_sentence(chance):
    values = chance.normal(3, 1, size=(LEAST_OF_ONE_SIZE - 1, 4))
    found = verdicts(of_values(values))
    assert np.isnan([found.low, found.high, found.p]).all()
    assert without_verdict(values[0], found.p, [None] * 19).startswith(
        "There are 19 texts, and intervals and p-values need at least 100, or 20 for the accuracy of single texts: "
    )
    assert "There is 1 document, and" in without_verdict(values[0], found.p, ["a"] * 19)
    assert not without_verdict(values[0], values[0], [None] * 20)


def test_changes_need_a_hundred_texts_and_those_of_one_size_by_definition_twenty(chance):
    n_texts = LEAST_UNITS - 1
    values = chance.normal(3, 1, size=(n_texts, 3))
    found = verdicts(of_values(values))
    assert np.isnan([found.low, found.high, found.p]).all()
    assert without_verdict(values[0], found.p, [None] * n_texts).startswith(
        "No change has an interval and a p-value. There are 99 texts, and at least 100 are needed: "
    )
    values[:, 1], values[:, 2] = 0, chance.choice([-1, 1], size=n_texts)
    found = verdicts(of_values(values))
    assert np.isnan(found.p).tolist() == [True, False, True], "one size, but by chance"
    documents = [str(place) for place in range(n_texts)]
    assert without_verdict(values[0], found.p, documents).startswith(
        "2 of 3 changes have no interval and no p-value. There are 99 documents, and at least 100 are needed: "
    )
    assert not np.isnan(verdicts(of_values(np.vstack([values, values[:1]]))).p).any()
    assert not np.isnan(verdicts(of_values(values[:, 2:], one_size=True)).p).any()


@pytest.mark.parametrize(("n_documents", "has_verdict"), [(20, False), (100, True)])
def test_documents_of_five_texts_are_not_of_one_size_though_they_may_look_so(chance, n_documents, has_verdict):
    """One more text right in 30% of documents, three fewer in 10%: a mean of 0. In one of 20 documents in eight, no
    document has three fewer, and all changes seem to be of one size."""
    n_heads = N_HEADS // 4
    change = chance.choice([0, 1, -3], p=[0.6, 0.3, 0.1], size=(n_documents, n_heads))
    full = np.repeat([[1, 0, 0, 1, 1]], n_documents, axis=0)
    without = np.array([[1, 0, 0, 1, 1], [1, 1, 0, 1, 1], [0, 0, 0, 0, 0]])[np.abs(change) - (change < 0)]
    names = np.repeat(np.arange(n_documents), 5).astype(str).tolist()

    def logits(right):
        return np.stack([1 - right, right], axis=-1).astype(float)

    by_text = logits(np.swapaxes(without, 1, 2).reshape(-1, n_heads))
    score = label_score("accuracy", np.ones(len(names)), 2)
    found = verdicts(changes(score, logits(full.ravel()), by_text, names), FEW, least=40)
    assert np.isfinite(found.p).any() == has_verdict
    if has_verdict:
        assert (found.p <= 0.05).sum() < 0.07 * np.isfinite(found.p).sum()


def test_a_head_that_changes_few_texts_by_different_amounts_has_no_verdict(chance):
    values = np.zeros((200, 4))
    values[: LEAST_UNITS - 1, 0] = chance.normal(size=LEAST_UNITS - 1)
    values[:LEAST_UNITS, 1] = chance.normal(size=LEAST_UNITS)
    values[:3, 2] = 1
    found = verdicts(of_values(values))
    assert np.isnan(found.p).tolist() == [True, False, True, False]
    assert np.isnan(found.low).tolist() == [True, False, True, True]
    assert found.p[3] == 1, "nothing changes"
    facts = verdict_facts(values[0], found.p, [None] * 200, 99)
    assert "99 resamples, at least 0.02" in facts["test"]
    assert facts["without a verdict"].startswith(
        "2 of 4 changes have no interval and no p-value. A head has to change at least 100 of the 200 texts: "
    )


@pytest.mark.parametrize("name", ["matthews", "f1", "accuracy", "loss"])
@pytest.mark.parametrize("documents", [[None] * 30, [str(place // 2) for place in range(30)]])
def test_contributions_are_those_of_scores_with_one_text_or_document_left_out(chance, name, documents):
    classes = chance.integers(3, size=30).astype(float)
    full, without = chance.normal(size=(30, 3)), chance.normal(size=(30, 2, 2, 3))
    found = changes(label_score(name, classes, 3), full, without, documents)
    units = np.array([place if name is None else int(name) for place, name in enumerate(documents)])
    delta = label_score(name, classes, 3).of(without) - label_score(name, classes, 3).of(full)
    np.testing.assert_allclose(found.delta, delta)
    n_units = units.max() + 1
    by_hand = []
    for unit in range(n_units):
        rest = units != unit
        score = label_score(name, classes[rest], 3)
        by_hand.append(n_units * delta - (n_units - 1) * (score.of(without[rest]) - score.of(full[rest])))
    by_hand = np.array(by_hand)
    np.testing.assert_allclose(found.by_unit, by_hand + delta - by_hand.mean(axis=0), atol=1e-9)
    assert found.by_unit.mean(axis=0) == pytest.approx(delta)


def test_the_jackknife_of_a_correlation_agrees_with_scipys_standard_error(chance):
    """Fisher: the standard error of r is about (1 - r^2) / sqrt(n - 1) for normal values."""
    labels = chance.normal(size=2_000)
    values = (labels + chance.normal(size=2_000))[:, None]
    score = label_score("pearson", labels, 0)
    by_text = pseudo_values(score, values, [None] * 2_000)
    r = np.corrcoef(labels, values[:, 0])[0, 1]
    assert by_text.mean() == pytest.approx(r)
    assert by_text.std(ddof=1) / np.sqrt(2_000) == pytest.approx((1 - r**2) / np.sqrt(1_999), rel=0.1)


def test_another_wrong_class_is_no_change_of_an_accuracy():
    full, without = np.eye(3)[[0] * 30], np.eye(3)[[2] * 10 + [1] * 3 + [0] * 17][:, None]
    found = verdicts(changes(label_score("accuracy", np.ones(30), 3), full, without, [None] * 30))
    assert found.p[0] == pytest.approx(0.25, abs=0.02), "3 of 3 become right: 2 / 2^3"
