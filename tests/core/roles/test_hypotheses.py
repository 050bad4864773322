from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.hypotheses import FEWEST, LEAST_GAIN, Criterion, HeadTests, role_tests, untested

TEXTS, LAYERS, HEADS = 9, 3, 4
ROLES = ("local", "block")
NAN = float("nan")
NUMBERS = ("mean", "std", "t", "p", "p_adjusted", "low", "high")

# Quarters add up without rounding, so a mean does not depend on the order of the texts.
SOME_SCORES = arrays(
    np.float64,
    (5, 2, 3, 4),
    elements=st.integers(0, 40).map(lambda n: n / 4) | st.just(NAN),
    fill=st.nothing(),
)


def verdicts_of(scores, roles, chosen, uniform=1.0) -> HeadTests:
    return role_tests(scores, roles, chosen, uniform)


def criterion(**chosen) -> Criterion:
    return Criterion(**{"correction": "none", **chosen})


def one_cell(*scores: float, **chosen) -> HeadTests:
    return verdicts_of(np.array(scores, float).reshape(-1, 1, 1, 1), ("local",), criterion(**chosen))


def random_scores(seed: int = 0, shape: tuple[int, ...] = (TEXTS, len(ROLES), LAYERS, HEADS)) -> np.ndarray:
    """Scores around tau = 3, a fifth of them NaN."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(generator.uniform(2, 5, shape[1:]), 1, shape)
    scores[generator.random(shape) < 0.2] = NAN
    return scores


# Worked by hand


def test_three_texts_worked_by_hand():
    tests = one_cell(2, 4, 6)
    assert (tests.texts.item(), tests.mean.item(), tests.std.item()) == (3, 4, 2)
    t = 3**0.5 / 2
    assert tests.t.item() == pytest.approx(t)
    assert tests.p.item() == pytest.approx(0.5 - t / (2 * (2 + t**2) ** 0.5))  # the tail of Student's t with 2 degrees
    margin = 4.302652730 * 2 / 3**0.5  # its 97.5 % point, from a table
    assert (tests.low.item(), tests.high.item()) == pytest.approx((4 - margin, 4 + margin))
    assert not tests.holds.item()
    assert one_cell(2, 4, 6, method="mean").holds.item()


def test_a_p_value_of_exactly_alpha_does_not_hold():
    p = one_cell(4, 5, 6).p.item()
    assert not one_cell(4, 5, 6, alpha=p).holds.item()
    assert one_cell(4, 5, 6, alpha=np.nextafter(p, 1)).holds.item()


def test_the_corrected_p_value_decides():
    scores = np.array([3.9, 4.1, 4.3, 3.2])[:, None, None, None] + np.linspace(0, -2, 12).reshape(1, 3, 4)
    raw, corrected = (verdicts_of(scores, ("local",), Criterion(correction=name)) for name in ("none", "holm"))
    assert corrected.holds.sum() < raw.holds.sum()
    np.testing.assert_array_equal(corrected.holds, corrected.p_adjusted < 0.05)


# The rule of a role


def test_a_role_needs_a_score_above_that_of_uniform_attention():
    scores = np.array([3.4, 3.6, 3.5, 3.7]).reshape(-1, 1, 1, 1)
    uniform = np.array([3.5, 3.4, 3.6, 3.6]).reshape(-1, 1, 1) / 1.1
    role, paper = (role_tests(scores, ("block",), criterion(rule=rule), uniform) for rule in ("role", "paper"))
    differences = stats.ttest_1samp([-0.1, 0.2, -0.1, 0.1], 0, alternative="greater").pvalue
    assert role.p_uniform.item() == paper.p_uniform.item() == pytest.approx(differences)
    assert role.p_role.item() == role.p_uniform.item() > role.p.item() == paper.p_role.item()
    assert (role.holds.item(), paper.holds.item()) == (False, True)


@given(SOME_SCORES, st.floats(1 + LEAST_GAIN, 10))
@settings(deadline=None, max_examples=40)
def test_uniform_attention_that_scores_one_changes_nothing_where_tau_is_clearly_above_it(scores, tau):
    role, paper = (verdicts_of(scores, ROLES, Criterion(tau=tau, rule=rule)) for rule in ("role", "paper"))
    np.testing.assert_allclose(role.p_role, paper.p_role, rtol=1e-9)
    np.testing.assert_array_equal(role.holds, paper.holds)


def test_a_constant_score_far_above_uniform_leaves_the_decision_to_the_other_test():
    scores = np.full((12, 1, 1, 1), 4.0)
    uniform = np.tile([3.0, 3.6, 3.5, 3.2], 3).reshape(-1, 1, 1)
    tests = role_tests(scores, ("block",), criterion(), uniform)
    assert tests.constant.item()
    assert np.isnan(tests.p.item())
    assert tests.p_role.item() == tests.p_uniform.item()
    below = role_tests(scores, ("block",), criterion(tau=5.0), uniform)
    assert (below.p_role.item(), below.holds.item()) == (1.0, False)


def test_a_constant_score_has_to_be_above_tau_by_more_than_rounding():
    just, clearly = (one_cell(*[3 * (1 + margin)] * 10) for margin in (0.0009, 0.0011))
    assert (just.holds.item(), clearly.holds.item()) == (False, True)


@pytest.mark.parametrize("correction", ["bh", "holm"])
def test_the_family_of_a_role_is_its_heads(correction):
    scores = random_scores()
    together = verdicts_of(scores, ROLES, Criterion(correction=correction))
    for place, role in enumerate(ROLES):
        alone = verdicts_of(scores[:, [place]], (role,), Criterion(correction=correction, family="all"))
        np.testing.assert_array_equal(together.p_adjusted[place], alone.p_adjusted[0])


def test_the_family_of_a_role_keeps_the_share_of_its_false_heads_below_alpha():
    """Together with a role that many heads hold, a role without any true head has too many false ones."""
    generator = np.random.default_rng(5)
    any_false = {"role": [], "all": []}
    for _ in range(150):
        scores = generator.normal(3, 1, (6, 2, 3, 5))
        scores[:, 1] += 3
        for family, of_runs in any_false.items():
            of_runs.append(verdicts_of(scores, ROLES, Criterion(family=family)).holds[0].any())
    at_most = 0.05 + 4 * (0.05 * 0.95 / 150) ** 0.5  # four standard errors above alpha
    assert np.mean(any_false["role"]) < at_most < np.mean(any_false["all"])


# Few texts and constant scores


def test_without_texts_nothing_is_tested():
    tests = one_cell(NAN, NAN)
    assert tests.texts.item() == 0
    assert all(np.isnan(getattr(tests, name)).all() for name in NUMBERS)
    assert not (tests.holds | tests.constant).any()
    assert not one_cell(NAN, method="mean").holds.any()
    empty = verdicts_of(np.empty((0, 2, 3, 4)), ROLES, Criterion())
    assert empty.texts.tolist() == np.zeros((2, 3, 4)).tolist()
    assert not empty.holds.any()


@pytest.mark.parametrize("ddof", [0, 1])
def test_one_text_has_a_mean_but_no_test(ddof):
    tests = one_cell(NAN, 7, ddof=ddof)
    assert (tests.texts.item(), tests.mean.item()) == (1, 7)
    assert all(np.isnan(getattr(tests, name)).all() for name in NUMBERS[2:])
    assert not (tests.holds | tests.constant).any()
    assert one_cell(NAN, 7, method="mean", ddof=ddof).holds.item()


@pytest.mark.parametrize(("value", "holds"), [(4.0, True), (3.0, False), (2.0, False), (0.0, False)])
@pytest.mark.parametrize("ddof", [0, 1])
def test_a_constant_score_is_decided_by_its_mean_alone(value, holds, ddof):
    tests = one_cell(*[value] * 10, ddof=ddof)
    assert tests.constant.item()
    assert tests.holds.item() == holds
    assert np.isnan([tests.t.item(), tests.p.item(), tests.p_adjusted.item()]).all()
    assert (tests.low.item(), tests.high.item()) == (value, value)


def test_a_constant_score_over_fewer_than_ten_texts_has_neither_a_p_nor_the_role():
    tests = one_cell(*[4.0] * 9)
    assert tests.constant.item()
    assert (np.isnan(tests.p_role.item()), tests.holds.item()) == (True, False)
    varied = role_tests(
        np.full((4, 1, 1, 1), 9.0), ("block",), criterion(), np.array([3, 3.6, 3.5, 3.2])[:, None, None]
    )
    assert varied.p_uniform.item() < 0.01
    assert (np.isnan(varied.p_role.item()), varied.holds.item()) == (True, False)
    assert one_cell(*[4.0] * 9, method="mean").holds.item()


def test_with_documents_as_units_tests_are_those_of_documents_of_equal_size():
    scores, document = random_scores()[:, :, :1], np.repeat(np.arange(4), 3)
    scores = np.nan_to_num(np.concatenate([scores] * 3)[:12], nan=3.0)
    found = role_tests(scores, ROLES, Criterion(), 1.0, document)
    by_document = role_tests(scores.reshape(4, 3, *scores.shape[1:]).mean(axis=1), ROLES, Criterion(), 1.0)
    for name in ("texts", "mean", "std", "p", "p_uniform", "p_adjusted", "low", "high"):
        np.testing.assert_allclose(getattr(found, name), getattr(by_document, name), rtol=1e-6, err_msg=name)


def test_constant_begins_at_a_thousandth_of_the_mean():
    below, above = (one_cell(4 - spread, 4 + spread, ddof=0) for spread in (0.0039, 0.0041))
    assert (below.constant.item(), above.constant.item()) == (True, False)
    assert (np.isnan(below.p.item()), np.isnan(above.p.item())) == (True, False)
    assert below.low.item() < 4 < below.high.item()


def test_a_constant_score_stands_outside_the_correction():
    scores = random_scores(shape=(2 * FEWEST, len(ROLES), LAYERS, HEADS))
    expected = verdicts_of(scores, ROLES, Criterion(correction="holm")).p_adjusted
    with_constant = np.concatenate([scores, np.full_like(scores[:, :1], 9)], axis=1)
    found = verdicts_of(with_constant, (*ROLES, "delimiter"), Criterion(correction="holm"))
    np.testing.assert_array_equal(found.p_adjusted[:2], expected)
    assert found.holds[2].all()


def test_untested_says_why_a_role_was_not_decided():
    scores = np.full((5, 3, 2, 4), NAN)
    scores[:1, 1], scores[:2, 2] = 4, 4
    roles = ("block", "syntactic:dobj", "local")
    assert untested(verdicts_of(scores, roles, criterion())) == {
        "block": "it needs pairs of segments, and these are single texts",
        "syntactic:dobj": "only 1 text takes part, and a test needs at least 2",
    }
    assert list(untested(verdicts_of(scores, roles, criterion(method="mean")))) == ["block"]


# Invariants


def test_scores_are_not_edited_and_float32_is_added_in_float64():
    scores = random_scores(shape=(2_000, 2, 3, 4)).astype(np.float32)
    scores.setflags(write=False)
    single, double = (verdicts_of(given_scores, ROLES, Criterion()) for given_scores in (scores, scores.astype(float)))
    for name in NUMBERS:
        assert getattr(single, name).dtype == np.float64
        np.testing.assert_allclose(getattr(single, name), getattr(double, name), rtol=1e-12)


def test_a_small_spread_around_a_large_mean_is_not_cancelled():
    assert one_cell(1e9 + 1, 1e9 + 2, 1e9 + 3).std.item() == 1


# Outside numbers


@pytest.mark.parametrize("ddof", [0, 1])
def test_t_p_and_intervals_equal_scipys_of_each_head(ddof):
    scores = random_scores()
    tests = verdicts_of(scores, ROLES, criterion(tau=2.5, alpha=0.1, ddof=ddof))
    for cell in np.ndindex(scores.shape[1:]):
        column = scores[:, *cell]
        column = column[~np.isnan(column)]
        assert tests.texts[cell] == len(column)
        if ddof == 1:
            expected = stats.ttest_1samp(column, 2.5, alternative="greater")
            assert (tests.t[cell], tests.p[cell]) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
        interval = stats.ttest_1samp(column, 0).confidence_interval(0.9)
        assert (tests.low[cell], tests.high[cell]) == pytest.approx((interval.low, interval.high), rel=1e-10)


def test_far_tails_are_not_rounded_to_zero():
    column = 5 + np.linspace(0, 0.1, 20)
    expected = stats.ttest_1samp(column, 3, alternative="greater").pvalue
    assert 0 < one_cell(*column).p.item() == pytest.approx(expected, rel=1e-8)


def test_the_population_deviation_raises_t_by_the_root_of_k_over_k_minus_1():
    scores = random_scores()
    population, sample = (verdicts_of(scores, ROLES, criterion(ddof=ddof)) for ddof in (0, 1))
    k = sample.texts
    np.testing.assert_allclose(population.t, sample.t * np.sqrt(k / (k - 1)))
    np.testing.assert_allclose(population.std, np.nanstd(scores, axis=0))
    np.testing.assert_allclose(sample.std, np.nanstd(scores, axis=0, ddof=1))


@pytest.mark.parametrize(("correction", "theirs"), [("bh", "fdr_bh"), ("holm", "holm")])
def test_corrections_equal_statsmodels_on_the_p_values_there_are(correction, theirs):
    scores = random_scores()
    scores[1:, 0, 1, 2] = NAN
    tests = verdicts_of(scores, ROLES, Criterion(correction=correction, family="all"))
    tested = ~np.isnan(tests.p)
    assert np.argwhere(~tested).tolist() == [[0, 1, 2]]
    expected = multipletests(tests.p[tested], method=theirs)[1]
    np.testing.assert_allclose(tests.p_adjusted[tested], expected, rtol=1e-12)
    assert np.isnan(tests.p_adjusted[0, 1, 2])


# What the authors' code gives


def reference(shared: Path, task: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Their scores of 20 texts, NaN where a text has no pair of a relation, and their names of the roles."""
    arrays_ = np.load(shared / "reference" / f"scores_{task}.npz")
    names = tuple(name for name in arrays_ if arrays_[name].ndim == 3)
    scores = np.stack([arrays_[name] for name in names], axis=1)
    for role, name in enumerate(names):
        if name.startswith("syn_"):
            absent = np.setdiff1d(np.arange(len(scores)), arrays_["part_" + name.split("_")[1]])
            scores[absent, role] = NAN
    return scores, names


@pytest.mark.parametrize("n_texts", [20, 64])
def test_at_most_alpha_of_the_heads_with_a_role_are_false_where_scores_are_shaped_like_real_ones(n_texts, shared):
    """Corpora drawn from the authors' scores, scaled to a mean of 1.5 tau for a third of the heads, else of tau."""
    scores, names = reference(shared, "qnli")
    known = [place for place in range(len(names)) if not np.isnan(scores[:, place]).any()]
    real, roles, is_true = scores[:, known], tuple(names[place] for place in known), np.zeros((6, 12), bool)
    is_true[:2] = True
    population = real / real.mean(axis=0) * np.where(is_true, 4.5, 3.0)
    generator, shares = np.random.default_rng(7), []
    for _ in range(75):
        drawn = population[generator.integers(len(population), size=n_texts)]
        holds = verdicts_of(drawn, roles, Criterion(family="role")).holds
        shares.append((holds & ~is_true).sum(axis=(1, 2)) / np.maximum(1, holds.sum(axis=(1, 2))))
    of_roles = dict(zip(roles, np.mean(shares, axis=0)))
    assert {"local", "delim", "block", "syn_all"} <= of_roles.keys()
    assert 0 < max(of_roles.values()) < 0.05, of_roles


@pytest.mark.parametrize(("task", "n_roles"), [("qnli", 12), ("sst-2", 11)])
def test_authors_p_values_and_labels_are_reproduced(task, n_roles, shared):
    scores, names = reference(shared, task)
    assert len(names) == n_roles
    p_values, labels = (np.load(shared / "reference" / f"{kind}_{task}.npz") for kind in ("pvals", "labels"))
    for index, tau in enumerate(p_values["taus"].tolist()):
        tests, means = (
            verdicts_of(scores, names, criterion(tau=tau, ddof=0, method=m, rule="paper")) for m in ("test", "mean")
        )
        theirs = np.stack([p_values[name][index] for name in names])
        np.testing.assert_allclose(tests.p[~tests.constant], theirs[~tests.constant], atol=1e-4)
        given_by_test, given_by_mean = (np.stack([labels[f"{k}_{n}"][index] for n in names]) for k in ("pval", "avg"))
        assert not (tests.holds != given_by_test)[~tests.constant].any()
        np.testing.assert_array_equal(means.holds, given_by_mean)


# Errors


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"tau": 0.0}, "tau is 0.0. Choose a number above 0."),
        ({"tau": NAN}, "tau is nan."),
        ({"tau": float("inf")}, "tau is inf."),
        ({"alpha": 0.0}, "alpha is 0.0. Choose a number between 0 and 1, for example 0.05."),
        ({"alpha": 1.0}, "alpha is 1.0."),
        ({"correction": "bonferroni"}, "correction is 'bonferroni'. Choose one of: bh, holm, none."),
        ({"ddof": 2}, "ddof is 2. Choose one of: 0, 1."),
        ({"method": "avg"}, "method is 'avg'. Choose one of: test, mean."),
    ],
)
def test_a_criterion_refuses_what_it_cannot_mean(chosen, message):
    refused = Criterion()
    for name, value in chosen.items():  # past the type checker of these tests, which readers do not have
        object.__setattr__(refused, name, value)
    with pytest.raises(AnalysisError) as error:
        refused.__post_init__()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("infinite", [(np.inf,), (-np.inf,), (np.inf, -np.inf)])
def test_an_infinite_score_is_an_error(infinite):
    with pytest.raises(AnalysisError, match=r"^Some scores are infinite\. Check that"):
        one_cell(4, *infinite, 5)


def test_a_missing_role_name_is_an_error():
    with pytest.raises(ValueError, match="1 role names for 2 roles"):
        verdicts_of(random_scores(), ("local",), Criterion())


def test_a_share_is_tested_against_tau_and_against_zero_as_scipy_does():
    shares = np.random.default_rng(2).normal([[[-0.1, 0.05, 0.6]]], 0.2, (14, 1, 1, 3))
    tests = role_tests(shares, ("local",), Criterion(tau=0.05, correction="none"), np.zeros((14, 1, 1)))
    for head in range(3):
        of_head = shares[:, 0, 0, head]
        for name, threshold in (("p", 0.05), ("p_uniform", 0)):
            expected = stats.ttest_1samp(of_head, threshold, alternative="greater").pvalue
            assert getattr(tests, name)[0, 0, head] == pytest.approx(expected)
    np.testing.assert_array_equal(tests.p_role, tests.p)  # above tau is above uniform attention, too
    assert tests.holds.ravel().tolist() == [False, False, True]
