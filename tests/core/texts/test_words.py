from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_checkpoints import TOKENIZERS

from attention_sieve.core.comparison.words import common_words, word_attention
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import (
    CLS_WORD,
    FIRST_WORD,
    OTHER_SPECIAL,
    SPECIAL,
    SPECIALS,
    Words,
    tokenize,
    word_map,
    words_of,
)

KINDS = ("bert", "roberta", "gpt2", "albert", "t5", "xlnet", "llama")
PAIR = Text(("Unbelievable  cats!", "She doesn't, however, eat."))
PAIR_WORDS = (SPECIALS, "Unbelievable", "cats!", "She", "doesn't,", "however,", "eat.")


@pytest.fixture(scope="module")
def tokenizers():
    return {kind: TOKENIZERS[kind]() for kind in KINDS}


def random_attention(tokens, n_chosen=2, seed=0):
    attention = np.random.default_rng(seed).random((n_chosen, len(tokens.ids), len(tokens.ids)))
    return attention / attention.sum(axis=2, keepdims=True)


def between_words(text, tokenizer, max_tokens=10_000):
    tokens = tokenize(text, tokenizer, max_tokens, truncate=True)
    return word_attention(text, tokens, random_attention(tokens))


def test_attention_between_words_worked_by_hand(tokenizers):
    text = Text(("unbelievable cats",))
    tokens = tokenize(text, tokenizers["bert"], 20)
    assert tokens.tokens == ("[CLS]", "un", "##believ", "##able", "cat", "##s", "[SEP]")
    attention = np.arange(49.0).reshape(1, 7, 7)
    found = word_attention(text, tokens, attention)
    assert (found.words, found.segments) == ((SPECIALS, "unbelievable", "cats"), (SPECIAL, 0, 0))
    query, key = [[0, 6], [1, 2, 3], [4, 5]], [[0, 6], [1, 2, 3], [4, 5]]
    expected = [[attention[0][np.ix_(q, k)].sum() / len(q) for k in key] for q in query]
    np.testing.assert_allclose(found.attention[0], expected)
    assert expected[1][2] == (11 + 12 + 18 + 19 + 25 + 26) / 3


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_the_same_under_every_tokenizer(kind, tokenizers):
    found = between_words(PAIR, tokenizers[kind])
    assert found.words == PAIR_WORDS
    assert found.segments == (SPECIAL, 0, 0, 1, 1, 1, 1)


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert", "llama"])
def test_a_token_belongs_to_the_word_that_holds_its_first_character(kind, tokenizers):
    tokens = tokenize(PAIR, tokenizers[kind], 100)
    for token, (segment, (start, end)) in enumerate(zip(tokens.segments, tokens.spans)):
        attention = np.zeros((1, len(tokens.ids), len(tokens.ids)))
        attention[:, :, token] = 1
        found = word_attention(PAIR, tokens, attention).attention[0].max(axis=0)
        assert np.count_nonzero(found) == 1
        word = PAIR_WORDS[found.argmax()]
        if segment == SPECIAL:
            assert word == SPECIALS
        elif end > start:
            assert PAIR.segments[segment][start] in word
            assert found.argmax() in ((1, 2), (3, 4, 5, 6))[segment]


def test_a_blank_belongs_to_the_word_before_it_or_to_the_first(tokenizers):
    tokens = tokenize(Text(("dog cat",)), tokenizers["bert"], 20)
    assert tokens.tokens == ("[CLS]", "dog", "cat", "[SEP]")
    attention = np.eye(4)[None]
    for span, row in (((4, 4), [0, 1, 0]), ((3, 3), [0, 1, 0]), ((3, 4), [0, 1, 0]), ((0, 0), [0, 1, 0])):
        blank = replace(tokens, spans=np.array([(0, 0), (0, 3), span, (0, 0)]))
        found = word_attention(Text(("dog cat",)), blank, attention)
        assert found.attention[0, 1].tolist() == row, span
        assert found.attention[0, 2].tolist() == [0, 0, 0]  # a word without a token


def test_words_that_a_file_brought_may_hold_blanks(tokenizers):
    text = Text(("New York sat  on it",), (("New York", "sat ", "on", "it"),))
    found = between_words(text, tokenizers["bert"])
    assert found.words == (SPECIALS, "New York", "sat ", "on", "it")
    tokens = tokenize(text, tokenizers["bert"], 100)
    starts = {"New York": 0, "sat ": 9, "on": 14, "it": 17}
    belongs = word_attention(text, tokens, np.eye(len(tokens.ids))[None]).attention[0]
    np.testing.assert_allclose(belongs, np.eye(5), atol=1e-12)
    for word, (name, start) in enumerate(starts.items(), start=1):
        own = (tokens.segments == 0) & (tokens.spans[:, 0] >= start) & (tokens.spans[:, 1] <= start + len(name))
        seen = np.zeros((1, len(tokens.ids), len(tokens.ids)))
        seen[:, :, own] = 1
        np.testing.assert_array_equal(np.flatnonzero(word_attention(text, tokens, seen).attention[0, 0]), [word])


def test_a_tokenizer_that_adds_nothing_leaves_the_specials_empty(tokenizers):
    found = between_words(Text(("a black cat",)), tokenizers["gpt2"])
    assert found.words[0] == SPECIALS
    np.testing.assert_array_equal(found.attention[:, 0], 0)
    np.testing.assert_array_equal(found.attention[:, :, 0], 0)
    np.testing.assert_allclose(found.attention[:, 1:].sum(axis=2), 1)


SEGMENT = st.text("ab é日😀-'.,!\u200b", max_size=12).map(lambda typed: f"a{typed}".strip())


@given(kind=st.sampled_from(KINDS), segments=st.lists(SEGMENT, min_size=1, max_size=2))
@settings(deadline=None)
def test_rows_sum_to_one_where_the_word_has_a_token(tokenizers, kind, segments):
    text = Text(tuple(segments))
    tokens = tokenize(text, tokenizers[kind], 1_000)
    found = word_attention(text, tokens, random_attention(tokens))
    assert found.words[1:] == tuple(word for segment in segments for word in segment.split())
    rows = found.attention.sum(axis=2)
    assert (np.isclose(rows, 1, atol=1e-12) | (rows == 0)).all()
    np.testing.assert_array_equal(rows[:, 0] == 0, (tokens.segments != SPECIAL).all())
    counted = word_attention(text, tokens, np.ones((1, len(tokens.ids), len(tokens.ids))))
    assert counted.attention[0].max(axis=0).sum() == pytest.approx(len(tokens.ids))  # each token, as a key, in one word


# Words, and the tokens that make them


def test_words_of_a_text_stand_between_blanks_or_are_its_own():
    between = words_of(PAIR)
    assert between.shown(PAIR) == ("Unbelievable", "cats!", "She", "doesn't,", "however,", "eat.")
    assert between.segments.tolist() == [0, 0, 1, 1, 1, 1]
    assert between.spans.tolist()[:3] == [[0, 12], [14, 19], [0, 3]]
    own = Text(("New York sat  on it", "Do n't"), (("New York", "sat ", "on", "it"), ("Do", "n't")))
    brought = words_of(own)
    assert brought.shown(own) == ("New York", "sat ", "on", "it", "Do", "n't")
    assert brought.spans.tolist() == [[0, 8], [9, 13], [14, 16], [17, 19], [0, 2], [3, 6]]


def test_the_words_of_tokens_worked_by_hand(tokenizers):
    text = Text(("unbelievable cats", "do n't"))
    tokens = tokenize(text, tokenizers["bert"], 30)
    cut = ("[CLS]", "un", "##believ", "##able", "cat", "##s", "[SEP]", "do", "n", "'", "t", "[SEP]")
    assert tokens.tokens == cut
    found = word_map(words_of(text), tokens)
    assert found.n_words == 4
    assert found.word_numbers.tolist() == [CLS_WORD, 2, 2, 2, 3, 3, OTHER_SPECIAL, 4, 5, 5, 5, OTHER_SPECIAL]
    assert found.has_tokens.tolist() == [True] * 4


def test_words_of_a_parser_may_leave_characters_between_them(tokenizers):
    """A token that begins in no word goes to the word before it, in its segment, or to the segment's first."""
    text = Text(("(a) dog, cat", "- it"))
    words = Words(segments=np.array([0, 0, 1]), spans=np.array([[1, 2], [4, 7], [2, 4]]))
    tokens = tokenize(text, tokenizers["bert"], 30)
    assert tokens.tokens[1:7] == ("(", "a", ")", "dog", ",", "cat")
    assert word_map(words, tokens).word_numbers.tolist() == [0, 2, 2, 2, 3, 3, 3, 1, 4, 4, 1]


@given(kind=st.sampled_from(KINDS), segments=st.lists(SEGMENT, min_size=1, max_size=2))
@settings(deadline=None)
def test_between_the_words_of_a_map_stands_the_same_attention(tokenizers, kind, segments):
    """Another way to the same numbers: all special tokens as one word, and two sums instead of two products."""
    text = Text(tuple(segments))
    tokens = tokenize(text, tokenizers[kind], 1_000)
    attention = random_attention(tokens)
    found = word_map(words_of(text), tokens)
    to_word = np.stack(
        [attention[:, :, found.word_numbers == word].sum(-1) for word in range(2, 2 + found.n_words)], -1
    )
    rows = [to_word[:, found.word_numbers == word] for word in range(2, 2 + found.n_words)]
    between = np.stack([row.sum(1) / max(row.shape[1], 1) for row in rows], 1)
    np.testing.assert_allclose(between, word_attention(text, tokens, attention).attention[:, 1:, 1:], atol=1e-12)
    is_special = tokens.segments == SPECIAL
    np.testing.assert_array_equal(found.word_numbers < FIRST_WORD, is_special)
    np.testing.assert_array_equal(found.word_numbers[is_special] == CLS_WORD, tokens.is_cls[is_special])


def test_words_beyond_a_cut_have_no_tokens_and_can_be_left_out(tokenizers):
    tokens = tokenize(LONG, tokenizers["bert"], 23, truncate=True)
    found = word_map(words_of(LONG), tokens)
    assert found.n_words == 31 + 41
    expected = np.isin(np.arange(found.n_words) + FIRST_WORD, found.word_numbers)
    np.testing.assert_array_equal(found.has_tokens, expected)
    assert 0 < expected[:31].sum() < 31
    assert 0 < expected[31:].sum() < 41
    fewer, kept = found.tokenized_only()
    np.testing.assert_array_equal(kept, np.flatnonzero(expected))
    assert fewer.n_words == len(kept)
    assert fewer.has_tokens.all()
    is_word = found.word_numbers >= FIRST_WORD
    np.testing.assert_array_equal(fewer.word_numbers[~is_word], found.word_numbers[~is_word])
    np.testing.assert_array_equal(
        kept[fewer.word_numbers[is_word] - FIRST_WORD], found.word_numbers[is_word] - FIRST_WORD
    )


def test_a_segment_of_tokens_without_a_word_is_an_error(tokenizers):
    tokens = tokenize(PAIR, tokenizers["bert"], 100)
    words = Words(segments=np.array([0]), spans=np.array([[0, 12]]))
    with pytest.raises(ValueError, match=r"Segment 1 has tokens and no word"):
        word_map(words, tokens)


# A text that was cut


LONG = Text(("cat " * 30 + "unbelievable", "she eats " * 20 + "it"))


def test_words_beyond_a_cut_are_left_out(tokenizers):
    found = between_words(LONG, tokenizers["bert"], 23)
    tokens = tokenize(LONG, tokenizers["bert"], 23, truncate=True)
    ends = [tokens.spans[tokens.segments == side, 1].max() for side in (0, 1)]
    kept = [segment[:end].split() for segment, end in zip(LONG.segments, ends)]
    assert len(found.words) == 1 + len(kept[0]) + len(kept[1]) < 23
    assert found.segments == (SPECIAL, *[0] * len(kept[0]), *[1] * len(kept[1]))
    np.testing.assert_allclose(found.attention.sum(axis=2), 1)


def test_common_words_are_those_before_the_earlier_cut(tokenizers):
    a, b = between_words(LONG, tokenizers["bert"], 23), between_words(LONG, tokenizers["roberta"], 30)
    assert a.words != b.words
    both = common_words(a, b)
    assert both.a.words == both.b.words
    n_words = len(both.a.words)
    assert both.n_left_out == (len(a.words) - n_words) + (len(b.words) - n_words) > 0
    for side in (0, 1):
        counts = [one.segments.count(side) for one in (a, b, both.a)]
        assert counts[2] == min(counts[:2])
    places = [place for place in range(len(a.words)) if (a.segments[place], a.words[place]) == (1, "she")]
    kept = [place for place in range(n_words) if (both.a.segments[place], both.a.words[place]) == (1, "she")]
    first, second = places[0], kept[0]
    np.testing.assert_array_equal(both.a.attention[:, second, 0], a.attention[:, first, 0])
    np.testing.assert_array_equal(both.a.attention[:, 0, second], a.attention[:, 0, first])


def test_whole_texts_have_all_words_in_common(tokenizers):
    a, b = (between_words(PAIR, tokenizers[kind]) for kind in ("bert", "llama"))
    both = common_words(a, b)
    assert both.n_left_out == 0
    for one, other in ((a, both.a), (b, both.b)):
        np.testing.assert_array_equal(one.attention, other.attention)


# Errors


def test_words_without_a_token_under_either_are_left_out(tokenizers):
    text = Text(("a black cat",))
    a, b = (between_words(text, tokenizers[kind]) for kind in ("bert", "gpt2"))
    for first, second in ((a, b), (b, a)):
        found = common_words(first, second)
        assert found.a.words == found.b.words == ("a", "black", "cat")
        assert found.n_left_out == 1  # the special tokens
        assert (found.a.attention.sum(axis=2) > 0).all()
    assert common_words(b, b).n_left_out == 0
    np.testing.assert_allclose(common_words(a, b).b.attention.sum(axis=2), 1)
    assert (common_words(a, b).a.attention.sum(axis=2) < 1).all()


def test_attention_of_a_part_of_a_text_is_an_error(tokenizers):
    tokens = tokenize(PAIR, tokenizers["bert"], 100)
    with pytest.raises(ValueError, match=f"Attention between 3 tokens for a text of {len(tokens.ids)}"):
        word_attention(PAIR, tokens, np.ones((2, 3, 3)))


def test_words_of_two_texts_are_an_error(tokenizers):
    a, b = (between_words(Text((segment,)), tokenizers["bert"]) for segment in ("a cat", "a dog"))
    with pytest.raises(ValueError, match="those of two texts"):
        common_words(a, b)
