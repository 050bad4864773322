import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_material import made_text, random_probe
from statsmodels.stats.proportion import proportion_confint

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.relations import ROOT, Dependencies, dependencies
from attention_sieve.core.texts.text import Text, read_file
from attention_sieve.core.texts.tokens import words_of
from attention_sieve.core.tree_probes.probe import TreeProbeSettings, at_offset, best_offset, offset_scores, uas
from attention_sieve.core.tree_probes.texts import (
    NO_CANDIDATE,
    PassedWords,
    attention_bytes,
    check_fits,
    left_out,
    little_data,
    n_left_out,
    probe_texts,
    split,
)


def tree(words, heads, relations):
    text = Text((words,))
    return Dependencies(words=words_of(text), heads=np.array(heads), relations=tuple(relations))


def judged(heads, counting=True):
    """A text by the candidates that are its heads, and which of its words count."""
    text = made_text(np.random.default_rng(0), heads)
    return replace(text, counts=np.broadcast_to(counting, len(heads)))


def test_uas_counts_words_besides_punctuation_over_all_texts():
    texts = [judged([2, 0, 2], [True, True, False]), judged([0, 1])]
    found = uas([np.array([2, 1, 1]), np.array([0, 1])], texts)
    assert (found.share, found.n_words, found.n_texts) == (3 / 4, 4, 2)
    assert (found.low, found.high) == (1 / 2, 1)
    with pytest.raises(AnalysisError, match="at least 2 texts with words besides punctuation to test on, got 1"):
        uas([np.array([0, 1])] * 2, [judged([0, 1]), judged([0, 1], False)])


def test_an_interval_over_texts_is_wider_where_their_words_are_right_together():
    right, wrong = np.zeros(10, int), np.ones(10, int)
    predicted = [right if place % 2 else wrong for place in range(40)]
    found = uas(predicted, [judged(right)] * 40)
    low, high = proportion_confint(200, 400, method="wilson")
    assert found.share == 0.5
    assert found.high - found.low > 2.5 * (high - low)
    # Of 40 texts that are right or wrong as a whole, the share is binomial.
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 40), rel=0.15)


def test_an_offset_ends_at_root_before_a_text_and_at_its_last_word_and_of_equal_ones_the_nearest_is_best():
    assert at_offset(4, 1).tolist() == [2, 3, 4, 4]
    assert at_offset(4, -2).tolist() == [0, 0, 1, 2]
    assert best_offset([judged([3, 4, 0, 0])]) == 2  # right twice, as -4 and -5 are
    assert best_offset([judged([2, 1])]) == 1  # right once, as -1 and all that lead past the end are


def test_offsets_reach_on_a_treebank_what_was_found_elsewhere(shared):
    path = shared / "data" / "pud" / "pud_en.clark_sd.jsonl.gz"
    trees = dependencies(read_file("trees.jsonl", gzip.decompress(path.read_bytes())))
    texts = [judged(np.where(one.heads == ROOT, 0, one.heads + 1)) for one in trees]
    baselines = json.loads((path.parent / "offset_baselines.json").read_text())["pud_sd"]["all"]
    n_words = sum(len(text.heads) for text in texts)
    assert n_words == baselines["n"]
    for offset, percent in baselines["acc_by_offset"].items():
        n_right = sum(int((at_offset(len(one.heads), int(offset)) == one.heads).sum()) for one in texts)
        assert 100 * n_right / n_words == pytest.approx(percent, abs=0.005)
    assert best_offset(texts) == baselines["best_offset"]


def test_the_best_offset_is_that_of_the_texts_learned_from():
    rng = np.random.default_rng(0)
    previous, following = made_text(rng, [0, 1, 2, 3, 4]), made_text(rng, [2, 3, 4, 5, 0])
    found = offset_scores([previous] * 3, [following, following])
    assert list(found) == [1, -1]
    assert found[1].share == 3 / 4  # of words 0, 2, 3 and 4; the last one's head is ROOT
    assert found[-1].share == 0
    assert list(offset_scores([following], [following, following])) == [1]


def test_texts_whose_attention_does_not_fit_are_refused_with_those_that_would():
    text = made_text(np.random.default_rng(0), [0, 1, 2, 3, 4])
    assert attention_bytes([5], 2, 3) == text.passed.attention.nbytes == 2 * 2 * 3 * 7 * 7
    n_words = [10, 30, 20, 40]
    check_fits(n_words, 2, 3, attention_bytes(n_words, 2, 3))
    with pytest.raises(
        AnalysisError, match=r"attention of 4 texts .* all from text 4 on, or those of 40 words and more"
    ):
        check_fits(n_words, 2, 3, attention_bytes([10, 30, 20], 2, 3))
    # 4,096 squared x 3 heads x 2 bytes are 96 MiB
    with pytest.raises(AnalysisError, match=r"takes 192 MB of memory, and at most 95 MB .* all from text 1 on"):
        check_fits([4094, 4094], 1, 3, 95 * 2**20)


@given(n_texts=st.integers(8, 60), share=st.floats(0.25, 0.75), seed=st.integers(0, 9))
def test_every_text_is_learned_from_or_tested_on(n_texts, share, seed):
    train, test = split(n_texts, share, seed)
    assert sorted([*train, *test]) == list(range(n_texts))
    assert len(test) == round(share * n_texts)
    assert split(n_texts, share, seed)[1].tolist() == test.tolist()


def test_another_seed_tests_on_other_texts_and_too_few_cannot_be_split():
    assert split(50, 0.5, 0)[1].tolist() != split(50, 0.5, 1)[1].tolist()
    with pytest.raises(AnalysisError, match="Of 5 texts, 4 would be for training and 1 for testing"):
        split(5, 0.25, 0)
    for share in (float("nan"), 1.0, 0.0):
        with pytest.raises(AnalysisError, match=f"test split is {share:g}. Give one between 0 and 1"):
            split(40, share, 0)


def test_texts_without_attention_are_left_out():
    trees = {1: tree("a b c .", [1, 3, ROOT, 2], ["x", "y", "root", "punct"])}
    passed = {1: made_text(np.random.default_rng(0), [0] * 4).passed}
    (found,) = probe_texts(passed, trees, {1: np.array([3, 1, 0, 2])}, [1, 0])
    assert found.passed is passed[1]
    assert found.heads.tolist() == [2, 4, 0, 3]
    assert found.counts.tolist() == [True, True, True, False]
    assert found.rows.tolist() == [3, 1, 0, 2]
    assert uas([found.heads] * 2, [found] * 2).share == 1


def cut_text():
    """Words a and d to f are passed; of these e's head is not, and f is punctuation."""
    of_text = tree("a b c d e f g", [ROOT, 0, 3, 0, 2, 3, 3], ["root", "x", "x", "x", "x", "punct", "x"])
    attention = made_text(np.random.default_rng(0), [0] * 4).passed.attention
    passed = {0: PassedWords(attention=attention, places=np.array([0, 3, 4, 5]))}
    (found,) = probe_texts(passed, {0: of_text}, {0: np.arange(7) + 10}, [0])
    return found


def test_words_without_tokens_or_whose_heads_have_none_are_left_out():
    found = cut_text()
    assert found.heads.tolist() == [0, 1, 4, 1, 3, 4, 4]
    assert found.counts.tolist() == [True, False, False, True, False, False, False]
    assert found.candidates.tolist() == [0, 1, 4, 5, 6]
    assert found.targets.tolist() == [0, 1, NO_CANDIDATE, 2]
    assert found.rows.tolist() == [10, 13, 14, 15]
    assert (found.n_learned, n_left_out([found, found])) == (3, 8)


def test_offsets_are_words_of_the_whole_text_and_judge_those_that_probes_judge():
    text = cut_text()
    scores = offset_scores([text] * 2, [text] * 2)
    # Of a and d: d stands three words after its head, though only one of the passed words, and a is the root.
    assert list(scores) == [1, -3]
    assert [(score.share, score.n_words) for score in scores.values()] == [(0, 4), (1, 4)]


def test_what_is_left_out_and_how_little_there_is_are_said():
    assert left_out(0) is None
    assert left_out(1_200).startswith("1,200 words are used for neither training nor testing")
    assert little_data(5_000, 300, 20) == []
    assert len(little_data(4_999, 300, 19)) == 2


def test_weights_that_depend_on_words_are_shown_as_norms():
    probe = random_probe()
    expected = np.linalg.norm([*probe.by_word[1, 0, 1, 2], *probe.by_word[1, 1, 1, 2], probe.constant[1, 1, 2]])
    assert probe.weights[1, 1, 2] == pytest.approx(expected)
    alone = replace(probe, by_word=probe.by_word[..., :0], root_vector=probe.root_vector[:0])
    np.testing.assert_array_equal(alone.weights, probe.constant)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"texts_per_step": 0}, "at least 1 as its texts a step, got 0"),
        ({"patience": -1}, "at least 1 as its patience, got -1"),
        ({"learning_rate": 0.0}, "learning rate is 0. Choose a number above 0"),
        ({"held_out": 1.0}, "validation split is 1. Give one between 0 and 1"),
        ({"seed": -1}, "seed is -1. Give a whole number from 0 to 9223372036854775807"),
    ],
)
def test_settings_out_of_range_are_refused(wrong, said):
    with pytest.raises(AnalysisError, match=said):
        TreeProbeSettings(**wrong)
