import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from passing import measured_of, pass_texts
from scipy import stats

from attention_sieve.core.comparison.differences import ROUNDING, PairedTests, layer_shift, paired_tests
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.hypotheses import CONSTANT_SPREAD, Criterion
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.texts.text import Text

NAN = float("nan")
NAMES = ("local", "block")
SHAPE = (9, 2, 3, 4)
TESTED = ("t", "p", "p_adjusted", "wilcoxon_p", "effect")
NUMBERS = ("mean_a", "mean_b", "difference", "low", "high", *TESTED)

# Quarters add up without rounding, so a mean does not depend on the order of the texts.
SOME_SCORES = arrays(
    np.float64,
    (5, 2, 3, 4),
    elements=st.integers(0, 40).map(lambda n: n / 4) | st.just(NAN),
    fill=st.nothing(),
)
CORRECTIONS = st.sampled_from(["none", "bh", "holm"])


def one_cell(a, b, **chosen) -> PairedTests:
    """Tests of one head; each side is its scores."""
    sides = (np.array(side, float).reshape(-1, 1, 1, 1) for side in (a, b))
    return paired_tests(*sides, ("local",), Criterion(**chosen))


def two_sides(seed=0, shape=SHAPE):
    """Scores of two checkpoints; some texts take no part in a role, others in none of one checkpoint."""
    generator = np.random.default_rng(seed)
    a = generator.gamma(4, 1, shape)
    b = a + generator.normal(0.3, 0.5, shape)
    a[generator.random(shape[:2]) < 0.2] = NAN
    b[generator.random(shape) < 0.1] = NAN
    return a, b


# Worked by hand


def test_three_texts_worked_by_hand():
    tests = one_cell([1, 2, 3, 8], [3, 5, 7, NAN])
    assert (tests.texts.item(), tests.mean_a.item(), tests.mean_b.item(), tests.difference.item()) == (3, 2, 5, 3)
    t = 3 * 3**0.5  # differences 2, 3 and 4: mean 3, standard deviation 1
    assert (tests.effect.item(), tests.t.item()) == pytest.approx((3, t))
    assert tests.p.item() == pytest.approx(1 - t / (2 + t**2) ** 0.5)  # both tails of Student's t with 2 degrees
    margin = 4.302652730 / 3**0.5  # its 97.5 % point, from a table
    assert (tests.low.item(), tests.high.item()) == pytest.approx((3 - margin, 3 + margin))
    assert tests.wilcoxon_p.item() == 2 / 2**3
    assert tests.differs.item()
    assert (tests.roles, tests.alpha, tests.correction) == (("local",), 0.05, "bh")


def test_a_p_value_of_exactly_alpha_is_no_difference():
    sides = [1, 2, 3], [2, 4, 7]
    p = one_cell(*sides, correction="none").p.item()
    assert not one_cell(*sides, correction="none", alpha=p).differs.item()
    assert one_cell(*sides, correction="none", alpha=np.nextafter(p, 1)).differs.item()


def test_the_correction_is_over_the_heads_of_one_role_or_of_all_that_have_a_p_value():
    a, b = two_sides()
    b[:, 0, 0, 0] = a[:, 0, 0, 0] + 2
    by_role, by_all = (paired_tests(a, b, NAMES, Criterion(family=family)) for family in ("role", "all"))
    tested = ~np.isnan(by_all.p)
    assert np.argwhere(~tested).tolist() == [[0, 0, 0]]
    np.testing.assert_allclose(by_all.p_adjusted[tested], stats.false_discovery_control(by_all.p[tested]), rtol=1e-12)
    for place, of_role in enumerate(tested):
        expected = stats.false_discovery_control(by_role.p[place][of_role])
        np.testing.assert_allclose(by_role.p_adjusted[place][of_role], expected, rtol=1e-12)
    assert by_all.differs[0, 0, 0]
    np.testing.assert_array_equal(by_all.differs[tested], by_all.p_adjusted[tested] < 0.05)


# Few texts, constant differences, rounding


@pytest.mark.parametrize("sides", [([], []), ([NAN, 1], [2, NAN]), ([3], [NAN])])
def test_without_texts_nothing_is_tested(sides):
    tests = one_cell(*sides)
    assert tests.texts.item() == 0
    assert all(np.isnan(getattr(tests, name).item()) for name in NUMBERS)
    assert not tests.differs.item()


def test_one_text_has_a_difference_but_no_test():
    tests = one_cell([1, NAN], [5, 6])
    assert (tests.texts.item(), tests.mean_a.item(), tests.mean_b.item(), tests.difference.item()) == (1, 1, 5, 4)
    assert all(np.isnan(getattr(tests, name).item()) for name in ("low", "high", *TESTED))
    assert not tests.differs.item()


@pytest.mark.parametrize(("shift", "differs"), [(0.0, False), (-0.5, True)])
def test_constant_differences_are_decided_by_themselves_alone(shift, differs):
    tests = one_cell([1, 2, 3], [1 + shift, 2 + shift, 3 + shift])
    assert all(np.isnan(getattr(tests, name).item()) for name in TESTED)
    assert (tests.difference.item(), tests.low.item(), tests.high.item()) == (shift, shift, shift)
    assert tests.differs.item() == differs


def test_constant_begins_at_a_thousandth_of_the_mean_difference():
    at_most, above = (one_cell([1, 1], [5 - spread, 5 + spread]) for spread in (0.0028, 0.0029))
    assert CONSTANT_SPREAD == 1e-3
    assert (np.isnan(at_most.p.item()), np.isnan(above.p.item())) == (True, False)


@pytest.mark.parametrize("dtype", ROUNDING)
def test_scores_that_differ_by_rounding_only_are_equal(dtype):
    a, _ = two_sides()
    generator, size = np.random.default_rng(1), ROUNDING[dtype] * (1 + a)
    noise = generator.uniform(0.1, 0.9, SHAPE)  # all of one sign: a test over many texts would find it
    below, above = (paired_tests(a, a + factor * noise * size, NAMES, rounding=ROUNDING[dtype]) for factor in (1, 20))
    np.testing.assert_array_equal(below.difference, 0)
    assert not below.differs.any()
    assert above.differs.all()


def test_scores_are_not_edited_and_float32_is_subtracted_in_float64():
    a, b = (side.astype(np.float32) for side in two_sides())
    for side in (a, b):
        side.setflags(write=False)
    single, double = (paired_tests(*sides, NAMES) for sides in ((a, b), (a.astype(float), b.astype(float))))
    for name in NUMBERS:
        assert getattr(single, name).dtype == np.float64
        np.testing.assert_allclose(getattr(single, name), getattr(double, name), rtol=1e-12)


@given(SOME_SCORES, SOME_SCORES, CORRECTIONS)
def test_exchanging_the_checkpoints_turns_every_sign_and_values_stay_in_their_ranges(a, b, correction):
    one, other = (paired_tests(*sides, NAMES, Criterion(correction=correction)) for sides in ((a, b), (b, a)))
    pairs = {name: name for name in ("p", "p_adjusted", "wilcoxon_p")} | {"mean_a": "mean_b"}
    for name, of_other in pairs.items():
        np.testing.assert_allclose(getattr(one, name), getattr(other, of_other), rtol=1e-12)
    for name, of_other in {"difference": "difference", "t": "t", "effect": "effect", "low": "high"}.items():
        np.testing.assert_allclose(getattr(one, name), -getattr(other, of_other), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(one.differs, other.differs)
    tested = ~np.isnan(one.p)
    for name in TESTED:
        np.testing.assert_array_equal(np.isnan(getattr(one, name)), ~tested)
    assert ((one.p[tested] >= 0) & (one.p_adjusted[tested] <= 1)).all()
    assert (one.p[tested] <= one.p_adjusted[tested] * (1 + 1e-12)).all()
    several = one.texts >= 2
    assert ((one.low <= one.difference) & (one.difference <= one.high))[several].all()
    np.testing.assert_allclose(one.difference, one.mean_b - one.mean_a, atol=1e-12)


def test_t_interval_and_wilcoxon_equal_scipys_test_of_each_head():
    a, b = two_sides()
    tests = paired_tests(a, b, NAMES, Criterion(alpha=0.1))
    assert np.unique(tests.texts).tolist() == [5, 6, 7]
    for cell in np.ndindex(SHAPE[1:]):
        first, second = a[:, *cell], b[:, *cell]
        expected = stats.ttest_rel(second, first, nan_policy="omit")
        assert (tests.t[cell], tests.p[cell]) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
        interval = expected.confidence_interval(0.9)
        assert (tests.low[cell], tests.high[cell]) == pytest.approx((interval.low, interval.high), rel=1e-10)
        signed = stats.wilcoxon(second, first, nan_policy="omit").pvalue
        assert tests.wilcoxon_p[cell] == pytest.approx(signed, rel=1e-10)
        assert tests.texts[cell] == (~np.isnan(second - first)).sum()


def test_two_halves_of_a_corpus_under_one_checkpoint_differ_in_alpha_of_the_heads(shared):
    stored = np.load(shared / "reference" / "scores_qnli.npz")
    names = ("local", "delim_sep", "block")
    scores = np.stack([stored[name] for name in names], axis=1)
    generator, half, shares = np.random.default_rng(5), len(scores) // 2, []
    for _ in range(100):
        order = generator.permutation(len(scores))
        tests = paired_tests(scores[order[:half]], scores[order[half : 2 * half]], names, Criterion(correction="none"))
        shares.append(tests.differs[~np.isnan(tests.p)].mean())
    assert abs(np.mean(shares) - 0.05) < 4 * np.std(shares) / len(shares) ** 0.5


WORDS = "the black cat quickly chased two birds a dog ran where it sat she does eat red apples".split()  # noqa: SIM905


def test_a_checkpoint_does_not_differ_from_itself_in_other_batches(loaded):
    """The padding of a batch makes for other rounding."""
    checkpoint = loaded("bert")
    texts = pass_texts(checkpoint, [Text((" ".join(WORDS[:n]),)) for n in range(3, 18)])
    batches = texts, *[[text] for text in texts]
    together, *alone = (role_scores(measured_of(checkpoint, batch), ScoreSettings()).scores for batch in batches)
    tests, unrounded = (
        paired_tests(together, np.concatenate(alone), ROLES, rounding=rounding)
        for rounding in (ROUNDING["float32"], 0.0)
    )
    assert np.nanmax(np.abs(unrounded.difference)) > 0
    assert np.nanmax(np.abs(tests.difference)) == 0
    assert not tests.differs.any()


# How one role's score moves


def test_a_shift_equals_scipys_test_of_the_mean_over_heads():
    a, b = two_sides(8)
    b[:, 0][np.isnan(b[:, 0])] = 3  # a text takes part in a layer with all of its heads
    shift = layer_shift(a, b, NAMES, "local", alpha=0.1)
    takes_part = ~np.isnan(a[:, 0, 0, 0])
    first, second = (side[takes_part, 0] for side in (a, b))
    whole = stats.ttest_rel(second.mean(axis=(1, 2)), first.mean(axis=(1, 2)))
    assert (shift.role, shift.texts) == ("local", takes_part.sum())
    assert shift.p == pytest.approx(whole.pvalue, rel=1e-10)
    assert shift.overall == pytest.approx((second - first).mean())
    for layer in range(SHAPE[2]):
        of_layer = stats.ttest_rel(second.mean(axis=2)[:, layer], first.mean(axis=2)[:, layer])
        interval = of_layer.confidence_interval(0.9)
        assert shift.mean[layer] == pytest.approx((second - first)[:, layer].mean())
        assert (shift.low[layer], shift.high[layer]) == pytest.approx((interval.low, interval.high))


def test_equal_scores_shift_by_nothing():
    a, _ = two_sides()
    shift = layer_shift(a, a * (1 + 1e-7), NAMES, "local")
    assert (shift.overall, shift.mean.tolist()) == (0, [0, 0, 0])
    assert np.isnan(shift.p)


@pytest.mark.parametrize("n_texts", [0, 1, 4])
def test_a_role_of_too_few_texts_has_no_p_value(n_texts):
    a = np.full((n_texts, 2, 3, 4), NAN)
    a[:1] = 1
    shift = layer_shift(a, a + 1, NAMES, "block")
    assert shift.texts == min(n_texts, 1)
    assert np.isnan(shift.p)
    assert np.isnan([*shift.low, *shift.high]).all()
    assert np.isnan(shift.overall) == (n_texts == 0)


@pytest.mark.parametrize("compared", [paired_tests, lambda a, b, roles: layer_shift(a, b, roles, "local")])
@pytest.mark.parametrize(
    ("other", "message"),
    [
        ((4, 2, 3, 4), "The reference has scores of 5 texts and the compared checkpoint of 4. Score the same texts"),
        ((5, 2, 6, 4), "The reference has 3 layers x 4 heads and the compared checkpoint 6 x 4, so there are no pairs"),
    ],
)
def test_scores_that_do_not_face_each_other_get_a_sentence(compared, other, message):
    with pytest.raises(AnalysisError) as error:
        compared(np.ones((5, 2, 3, 4)), np.ones(other), NAMES)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("sides", [(np.inf, 1), (1, -np.inf)])
def test_an_infinite_score_is_an_error(sides):
    a, b = (np.full(SHAPE, float(side)) for side in sides)
    for compared in (paired_tests, lambda a, b, roles: layer_shift(a, b, roles, "local")):
        with pytest.raises(AnalysisError, match=r"^Some scores are infinite\."):
            compared(a, b, NAMES)
