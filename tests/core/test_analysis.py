"""The calls of the table of contents, each against the rooms that it names."""

import numpy as np
import pytest

from attention_sieve.core import analysis
from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.comparison.differences import paired_tests
from attention_sieve.core.errors import AnalysisError, TextTooLong
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import AblationSettings, MetricSettings
from attention_sieve.core.relations.analysis import prediction_question
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.texts.text import Text, read_typed

TEXTS = read_typed("The black cat quickly chased two birds on the mat.\nShe ran.\nWho sat on it? ||| A red dog sat.")


@pytest.fixture(scope="module")
def checkpoint(guessing):
    return load_checkpoint(find_checkpoint(str(guessing)), device="cpu")


def found(checkpoint, texts, of_pass=None):
    return find(ROLE_ANALYSIS, checkpoint, texts, of_pass=of_pass).scored.scores


def test_scores_come_in_the_order_of_the_texts(checkpoint):
    scores = found(checkpoint, TEXTS)
    assert scores.shape == (3, len(ROLES), 2, 3)
    np.testing.assert_allclose(found(checkpoint, TEXTS[::-1])[::-1], scores, rtol=1e-4, atol=1e-5)


def test_a_checkpoint_compared_with_itself_differs_nowhere_and_with_a_head_off_somewhere(checkpoint):
    scores = found(checkpoint, TEXTS)
    assert not paired_tests(scores, scores, ROLES).differs.any()
    off = found(checkpoint, TEXTS, PassSettings(off=((0, 1),)))
    tests = paired_tests(scores, off, ROLES)
    assert np.nanmax(np.abs(tests.mean_b - tests.mean_a)[:, 1]) > 0


def test_the_mean_is_another_replacement_than_zero_and_labels_are_needed_for_the_metric_labels(checkpoint):
    def ablated(**how):
        return find(ABLATION_ANALYSIS, checkpoint, list(map(LabelledText, TEXTS)), AblationSettings(**how)).effects

    of_lm = MetricSettings(metric="lm")
    by_zero, by_mean = (ablated(of_metric=of_lm, replace=how) for how in ("zero", "mean"))
    assert by_zero.delta.shape == (2, 3)
    assert by_zero.full == pytest.approx(by_mean.full)
    assert not np.allclose(by_zero.delta, by_mean.delta)
    with pytest.raises(AnalysisError, match="The metric labels needs labels"):
        MetricSettings(metric="labels").score_of(list(map(LabelledText, TEXTS)))


def test_a_head_has_no_distance_from_itself(checkpoint):
    distances = find(SIMILARITY_ANALYSIS, checkpoint, TEXTS)
    np.testing.assert_allclose(np.einsum("lhlh->lh", distances.mean), 0, atol=1e-7)


def test_a_text_that_is_too_long_is_named_and_an_attention_without_a_tree_refused(checkpoint, loaded):
    with pytest.raises(TextTooLong, match="Text 2 has 62 tokens"):
        found(checkpoint, [TEXTS[0], Text(("the cat " * 30,))])
    with pytest.raises(AnalysisError, match="Cross-attention is between two texts"):
        analysis.results(loaded("t5"), prediction_question("mean"), [], PassSettings("cross"))
