"""Texts of the planted models' tasks: what is predicted follows from what stands there."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planted import tasks
from benchmarks.planted.vocabulary import AUXILIARIES, VERBS, vocabulary

MAKERS = {
    "lagged": partial(tasks.lagged, lag=3),
    "before the next": partial(tasks.lagged, lag=-1),
    "repeated": tasks.repeated,
    "period": partial(tasks.repeated_at, period=18),
    "told again": tasks.told_again,
    "always": tasks.always,
    "commonest": partial(tasks.commonest, n_segments=1),
    "commonest of a segment": partial(tasks.commonest, n_segments=2),
    "after stops": partial(tasks.after_stops, host="gpt2"),
    "sentences": tasks.sentences,
    "asked": tasks.asked,
}
seeds = st.integers(0, 10_000).map(np.random.default_rng)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
@given(random=seeds)
def test_each_text_has_as_many_words_and_some_are_predicted(maker, random):
    text = maker(random)
    assert len(text.words) == tasks.N_WORDS
    assert 4 <= len(text.predicted) < tasks.N_WORDS
    assert 0 < min(text.predicted) <= max(text.predicted) < tasks.N_WORDS


@given(random=seeds, lag=st.integers(1, 15))
def test_a_lagged_word_is_that_so_many_before_it_and_none_nearer(random, lag):
    text = tasks.lagged(random, lag)
    for at in text.predicted:
        assert text.words[at] == text.words[at - lag]
        assert text.words.count(text.words[at]) == 2


@given(random=seeds)
def test_a_repeated_word_follows_the_same_word_as_the_first_time(random):
    text = tasks.repeated(random)
    for at in text.predicted:
        first = text.words.index(text.words[at])
        assert first < at
        assert text.words[at - 1] == text.words[first - 1]


@given(random=seeds)
def test_an_auxiliary_has_one_verb_of_its_class_before_it_which_comes_again(random):
    text = tasks.sentences(random)
    for at in text.predicted:
        number = AUXILIARIES.index(text.words[at - 1])
        of_class = {word for word in text.words[:at] if word in VERBS[number * 8 : number * 8 + 8]}
        assert of_class == {text.words[at]}


@given(random=seeds)
def test_where_a_word_is_told_again_it_has_stood_before(random):
    text = tasks.told_again(random)
    for at in text.predicted:
        assert text.words[at] == "again"
        assert text.words[at - 1] in text.words[: at - 1]


@given(random=seeds)
def test_a_decoder_predicts_the_next_token_and_an_encoder_the_one_at_the_mask(random):
    text = tasks.commonest(random, n_segments=2)
    next_token, masked = tasks.task("gpt2", [text]), tasks.task("bert", [text])
    ids, scored = np.array(next_token.tokens[0]), np.array(next_token.scored[0])
    assert ids[scored + 1].tolist() == list(next_token.targets[0])
    hidden = np.array(vocabulary("bert"))[np.array(masked.tokens[0])]
    assert set(hidden[list(masked.scored[0])]) == {"[MASK]"}
    assert (hidden == "[MASK]").sum() == len(text.predicted)
    assert [vocabulary("bert")[number] for number in masked.targets[0]] == [text.words[at] for at in text.predicted]
    assert masked.segments[0].index(1) == hidden.tolist().index("[SEP]") + 1
