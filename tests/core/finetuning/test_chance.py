"""A result on the validation texts beside what one and the same answer gets."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, pearsonr

from attention_sieve.core.finetuning.chance import against_chance
from attention_sieve.core.running import Progress, Validation, ValidationResult
from attention_sieve.core.statistics.means import correlation_interval

OF_30 = Validation(30, 16 / 30, None)
AT_STEP_9 = ValidationResult(9, 0.7, 16 / 30, None)
AT_STEP_5 = ValidationResult(5, 0.6, 27 / 30, None)
CLASSES = Progress("finished", 9, 9, None, (), (AT_STEP_5, AT_STEP_9), (5, 9), "", validation=OF_30)


def test_16_of_30_right_is_not_above_a_majority_of_16():
    beside = against_chance(CLASSES)
    assert (beside.value, beside.chance, beside.step) == (16 / 30, 16 / 30, 9)
    assert beside.interval == pytest.approx(tuple(binomtest(16, 30).proportion_ci(method="wilson")))
    assert not beside.is_above
    assert beside.in_words == "95% interval 0.361 to 0.698, 30 texts; the most frequent class alone: 0.533"


def test_the_result_of_a_saved_step_is_the_last_one_up_to_it():
    assert against_chance(CLASSES, 8).step == 5
    assert against_chance(CLASSES, 8).is_above
    assert against_chance(CLASSES, 4) is None


def test_an_interval_that_begins_at_the_majority_is_not_above_it():
    low = float(binomtest(16, 30).proportion_ci(method="wilson").low)
    exactly = replace(CLASSES, validation=Validation(30, float(against_chance(CLASSES).interval[0]), None))
    assert exactly.validation.majority == pytest.approx(low)
    assert not against_chance(exactly).is_above
    assert against_chance(replace(exactly, validation=Validation(30, low - 1e-9, None))).is_above


def test_nothing_is_said_of_a_run_without_its_validation_texts_or_without_a_result():
    assert against_chance(replace(CLASSES, validation=None)) is None
    assert against_chance(replace(CLASSES, held_out=())) is None


def test_the_interval_of_a_correlation_is_scipys():
    chance = np.random.default_rng(3)
    for n in (4, 9, 60):
        x = chance.normal(size=n)
        found = pearsonr(x, x + chance.normal(size=n))
        interval = correlation_interval(found.statistic, n, 0.1)
        assert interval == pytest.approx(tuple(found.confidence_interval(0.9)), abs=1e-12)
    assert correlation_interval(0.9, 3, 0.05) == (-1, 1)
    assert correlation_interval(1.0, 9, 0.05) == (1, 1)


def test_a_correlation_is_above_chance_where_its_interval_is_above_0_and_never_where_it_is_not_defined():
    values = replace(CLASSES, validation=Validation(30, None, 2.0))
    for r, is_above in ((0.37, True), (0.35, False), (-0.9, False), (None, False)):
        beside = against_chance(replace(values, held_out=(ValidationResult(9, 1.0, None, r),)))
        assert (beside.value, beside.is_above) == (r, is_above)
    assert beside.in_words == "30 texts; chance: 0"
