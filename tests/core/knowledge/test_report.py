import numpy as np
import pytest
from planted_concepts import made_task, planted_vectors
from scipy.stats import binomtest, pearsonr

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.labels import labels_of
from attention_sieve.core.knowledge.probes.baselines import LENGTH, MAJORITY, WORDS, baselines
from attention_sieve.core.knowledge.report import (
    LAYER,
    code_lengths,
    corrected,
    features_of,
    selectivity,
    task_report,
    texts_of,
)
from attention_sieve.core.knowledge.task import Task, TaskExample
from attention_sieve.core.knowledge.vectors import Vectors
from attention_sieve.core.texts.text import Text

SHAPE = (2, 3)
PLANTED = (1, 2)
SEEDS = range(8)
SIZES = (200, 60, 80)


def vectors_of(task, planted=(PLANTED,), **how):
    heads = planted_vectors(task, SHAPE, 4, planted, **how)
    layers = planted_vectors(task, (SHAPE[0], 1), 7, seed=9)[:, :, 0]
    return Vectors(heads=heads, layers=layers)


def reported(task=None, **how):
    task = task or made_task(sizes=SIZES)
    vectors = vectors_of(task, **how)
    return task, vectors, task_report(task, vectors)


def test_a_planted_concept_is_found_in_its_head_and_only_there():
    tasks = [made_task(seed=seed, name=f"task {seed}") for seed in range(3)]
    reports = [
        task_report(task, vectors_of(task, planted=[(place, 1)] if place < 2 else []))
        for place, task in enumerate(tasks)
    ]
    found = [report.grid(p_values) < 0.05 for report, p_values in zip(reports, corrected(reports))]
    assert [np.argwhere(one).tolist() for one in found] == [[[0, 1]], [[1, 1]], []]
    best = reports[0].best_head
    assert (reports[0].layer[best], reports[0].head[best]) == (0, 1)


def test_accuracy_interval_and_p_value_of_a_place_by_scipy():
    _, _, report = reported(strength=1.0)
    place = report.best_head
    n_right = int(report.right[place].sum())
    assert report.accuracy[place] == n_right / report.n_test
    interval = binomtest(n_right, report.n_test).proportion_ci(0.95, "wilson")
    assert (report.low[place], report.high[place]) == pytest.approx((interval.low, interval.high))
    majority = report.baselines[0].predicted == report.gold
    only_head, only_majority = (report.right[place] & ~majority).sum(), (~report.right[place] & majority).sum()
    wanted = binomtest(int(only_head), int(only_head + only_majority), alternative="greater").pvalue
    assert report.p_values[0, place] == pytest.approx(wanted)


def test_places_are_all_heads_and_then_all_layers():
    _, _, report = reported()
    assert list(zip(report.layer.tolist(), report.head.tolist())) == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, LAYER), (1, LAYER)
    ]  # fmt: skip
    assert (report.n_train, report.n_validation, report.n_test) == SIZES
    assert report.grid(report.accuracy).shape == SHAPE
    assert report.n_unsolved == 0
    assert report.head[report.best_layer] == LAYER


def test_the_best_head_is_chosen_without_the_test_part():
    task, vectors, report = reported(planted=(), seed=4)
    labels = labels_of(task)
    vectors.heads[labels.test, 0, 0] = labels.gold[labels.test, None] * 50
    again = task_report(task, vectors)
    assert again.best_head == report.best_head
    np.testing.assert_array_equal(again.strength, report.strength)
    np.testing.assert_array_equal(again.validation, report.validation)


def test_heads_that_the_best_does_not_clearly_beat_are_its_rivals():
    _, _, settled = reported(strength=2.0)
    assert not settled.rivals.any()
    _, _, report = reported(planted=[(0, 1), PLANTED], strength=1.0)
    right = report.right
    for place in range(len(report.head)):
        only_best = int((right[report.best_head] & ~right[place]).sum())
        only_other = int((right[place] & ~right[report.best_head]).sum())
        test = binomtest(only_best, max(1, only_best + only_other), alternative="greater")
        may_be_as_good = only_best + only_other == 0 or test.pvalue >= 0.05
        assert report.rivals[place] == (report.is_head[place] and place != report.best_head and may_be_as_good)
    assert report.rivals[[1, 5]].sum() == 1  # the one of the two that is not the best
    _, _, numbers = reported(made_task(is_regression=True, sizes=SIZES), planted=[(0, 1), PLANTED])
    assert (numbers.rivals <= (numbers.high >= numbers.accuracy[numbers.best_head])).all()
    assert numbers.rivals[[1, 5]].sum() == 1


def test_random_labels_have_no_selectivity_within_its_interval():
    covered, found = 0, []
    for seed in SEEDS:
        task, vectors, report = reported(made_task(seed=seed, sizes=(60, 20, 200)), planted=(), seed=seed + 100)
        selective = selectivity(task, vectors, report, seed)
        covered += int(((selective.low <= 0) & (selective.high >= 0)).sum())
        found.append(selective.selectivity.mean())
    assert abs(np.mean(found)) < 0.02
    n_intervals = len(SEEDS) * (SHAPE[0] * SHAPE[1] + SHAPE[0])
    assert 0.9 < covered / n_intervals <= 1


def test_a_planted_concept_is_selective_and_takes_fewer_bits_than_the_uniform_code():
    task, vectors, report = reported(strength=3.0)
    selective, planted = selectivity(task, vectors, report), report.best_head
    assert selective.selectivity[planted] == pytest.approx(report.accuracy[planted] - selective.control[planted])
    assert selective.low[planted] > 0.2
    bits, uniform = code_lengths(task, vectors)
    assert uniform == 200
    assert bits[planted] < 0.7 * uniform
    assert (np.delete(bits, planted) > 0.99 * uniform).all()


def test_three_baselines_and_what_each_sees():
    rng = np.random.default_rng(0)
    rows = [
        (part, n_rows) for part, n_rows in zip(("train", "validation", "test"), (200, 60, 100)) for _ in range(n_rows)
    ]
    label = [str(rng.choice(3, p=(0.5, 0.3, 0.2))) for _ in rows]
    by_length = [
        TaskExample(Text((" ".join(["word"] * (3 + 5 * int(one))),)), one, part) for (part, _), one in zip(rows, label)
    ]
    words = ("red", "tan", "jet")
    by_word = [TaskExample(Text((f"the {words[int(one)]} one",)), one, part) for (part, _), one in zip(rows, label)]
    for examples, knows in ((by_length, {LENGTH}), (by_word, {WORDS})):
        task = Task("made", tuple(examples))
        found = {one.name: one.score for one in baselines(task, labels_of(task))}
        gold = [example.label for example in task.examples_in("test")]
        assert found[MAJORITY] == gold.count("0") / 100
        for name in knows:
            assert found[name] > 0.95
    assert found[LENGTH] < 0.7


def test_a_regression_is_reported_by_pearson_with_fishers_interval():
    _, _, report = reported(made_task(is_regression=True, sizes=SIZES))
    place = report.best_head
    theirs = pearsonr(report.predicted[place], report.gold)
    interval = theirs.confidence_interval(0.95)
    assert report.accuracy[place] == pytest.approx(theirs.statistic)
    assert (report.low[place], report.high[place]) == pytest.approx((interval.low, interval.high))
    assert np.isnan(report.p_values).all()
    assert np.isnan(report.baselines[0].score)


def test_a_removed_head_has_no_result():
    task, vectors, report = reported()
    vectors.heads[:, 0, 1] = np.nan
    again = task_report(task, vectors)
    for values in (again.strength, again.validation, again.accuracy, again.low, again.high, again.p_values[0]):
        assert np.flatnonzero(np.isnan(values)).tolist() == [1]
    others = np.arange(8) != 1
    np.testing.assert_array_equal(again.accuracy[others], report.accuracy[others])
    assert np.isnan(selectivity(task, vectors, again).selectivity[1])
    bits, _ = code_lengths(task, vectors)
    assert np.flatnonzero(np.isnan(bits)).tolist() == [1]


def test_a_pair_is_read_segment_by_segment():
    examples = tuple(
        TaskExample(Text((f"one {row}", f"two {row}")), str(row % 2), part)
        for row, part in enumerate(["train"] * 20 + ["validation"] * 12 + ["test"] * 11)
    )
    task = Task("pairs", examples)
    texts = texts_of(task)
    assert [text.segments[0] for text in (texts[0], texts[42], texts[43], texts[85])] == [
        "one 0", "one 42", "two 0", "two 42"
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    vectors = Vectors(heads=rng.normal(size=(86, 2, 3, 4)), layers=rng.normal(size=(86, 2, 5)))
    heads, layers = features_of(task, vectors)
    assert (heads.shape, layers.shape) == ((43, 2, 3, 8), (43, 2, 10))
    np.testing.assert_array_equal(heads[7, 1, 2, 4:], vectors.heads[7, 1, 2] * vectors.heads[50, 1, 2])
    assert task_report(task, vectors).n_test == 11


def test_a_mix_of_texts_and_pairs_is_refused():
    examples = (TaskExample(Text(("one",)), "a", "train"), TaskExample(Text(("one", "two")), "b", "train"))
    with pytest.raises(AnalysisError, match="mixed mixes single texts and pairs"):
        texts_of(Task("mixed", examples))
