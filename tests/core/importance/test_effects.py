import numpy as np
import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.effects import Draws, effects, kept_alone
from attention_sieve.core.importance.metrics import TextOutcomes, label_score, mean_score
from attention_sieve.core.importance.verdicts import changes, verdicts


def losses(without, full=None):
    """Outcomes of one number a text, from [text layer head]."""
    full = np.zeros(len(without)) if full is None else full
    return [TextOutcomes(full=np.array([f]), without=w[..., None]) for f, w in zip(full, without)]


def test_a_change_and_its_verdict_are_those_of_its_head_alone(chance):
    logits, classes = chance.normal(size=(400, 2, 3, 2)), chance.integers(2, size=400).astype(float)
    full = chance.normal(size=(400, 2)) + 2 * np.stack([1 - classes, classes], axis=1)
    score = label_score("matthews", classes, 2)
    outcomes = [TextOutcomes(full=f, without=w) for f, w in zip(full, logits)]
    found = effects(outcomes, score, [None] * 400, "none", resamples=999)
    for head in np.ndindex(2, 3):
        alone = verdicts(changes(score, full, logits[:, head[0], [head[1]]], [None] * 400), 999)
        for name in ("low", "high", "p"):
            assert getattr(found, name)[head] == pytest.approx(getattr(alone, name)[0])
    np.testing.assert_allclose(found.delta, found.without - found.full)
    np.testing.assert_array_equal(found.p_adjusted, found.p)


def test_a_head_without_an_effect_has_p_1_and_a_sure_one_the_smallest(chance):
    without = np.zeros((120, 1, 3))
    without[:, 0, 1] = chance.uniform(1, 2, 120)
    without[:, 0, 2] = chance.normal(size=120) * 1e-3
    found = effects(losses(without), mean_score("loss"), [None] * 120, "bh")
    assert found.p[0, 0] == 1
    assert found.p[0, 1] == pytest.approx(2 / 10_000)
    assert found.p[0, 1] < found.p[0, 2]
    assert found.p_adjusted[0, 1] == pytest.approx(3 * 2 / 10_000)


def test_documents_are_drawn_whole():
    draws = Draws(["a", "a", "b", None, "b"], n_drawn=30)
    assert draws.n_units == 3
    np.testing.assert_array_equal(draws.weights[:, 0], draws.weights[:, 1])
    np.testing.assert_array_equal(draws.weights[:, 2], draws.weights[:, 4])
    assert (draws.weights[:, [0, 2, 3]].sum(1) == 3).all()


def test_the_head_left_alone_is_judged_on_texts_that_it_was_not_chosen_on():
    without = np.ones((4, 2, 3))
    without[::2, 0, 1] = 0  # best on even texts, no better on odd ones
    without[:, 1, 2] = 0.5  # best everywhere
    found = kept_alone(losses(without), mean_score("loss"), [None] * 4)
    np.testing.assert_array_equal(found.head, [[1, 2], [0, 2]])
    np.testing.assert_allclose(found.effects.without, [1, 0.5])
    np.testing.assert_allclose(found.effects.delta, [1, 0.5])
    assert found.effects.p.shape == found.effects.p_adjusted.shape == (2,)
    with pytest.raises(AnalysisError, match="at least 2 texts, or documents"):
        kept_alone(losses(without), mean_score("loss"), ["a"] * 4)


@pytest.mark.parametrize("name", ["f1", "loss"])
def test_a_removed_head_has_no_change_and_is_in_no_correction(chance, name):
    logits, classes = chance.normal(size=(400, 2, 3, 2)), np.arange(400) % 2.0
    full, score = chance.normal(size=(400, 2)), label_score(name, classes, 2)

    def of_heads(correction):
        outcomes = [TextOutcomes(full=f, without=w) for f, w in zip(full, logits)]
        return effects(outcomes, score, [None] * 400, correction, resamples=999)

    whole = of_heads("none")
    logits[:, 1, 0] = np.nan
    found = of_heads("holm")
    for field in ("without", "delta", "low", "high", "p", "p_adjusted"):
        assert np.argwhere(np.isnan(getattr(found, field))).tolist() == [[1, 0]]
    left = ~np.isnan(found.p)
    np.testing.assert_allclose(found.p[left], whole.p[left])
    assert found.p_adjusted[left].min() == pytest.approx(min(1, 5 * found.p[left].min()))
