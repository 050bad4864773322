"""Two sentences under one checkpoint: aligned words, attention that moves, and what it does to the output."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_words import looked
from small_checkpoints import TOKENIZERS

from attention_sieve.core.comparison.word_swap import (
    SentenceWord,
    aligned_sentences,
    aligned_words,
    largest_move,
    sentence_words,
    word_swap,
)
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import tokenize

KINDS = ("bert", "roberta", "gpt2", "albert", "t5", "xlnet", "llama")
SENTENCES = (
    "The trophy didn't fit, because it was too big.",
    "Unbelievable  cats! é 😀 (she) 我喜欢猫",
    "  . ",
    "e-mail me: x_1@y.z?!",
)


@pytest.fixture(scope="module")
def tokenizers():
    return {kind: TOKENIZERS[kind]() for kind in KINDS}


def attended(sentence, tokenizer, attention=None, *, seed=0):
    """A sentence with the given attention, or with random one of 2 layers and 3 heads."""
    tokens = tokenize(Text((sentence,)), tokenizer, 100)
    n_tokens = len(tokens.ids)
    if attention is None:
        attention = np.random.default_rng(seed).dirichlet(np.full(n_tokens, 0.4), size=(2, 3, n_tokens))
    return looked(attention, text=PassText(kind="self", source=tokens))


def swapped(tokenizer, a, b, **more):
    sides = (attended(a, tokenizer, **more), attended(b, tokenizer, seed=1))
    return word_swap((Text((a,)), Text((b,))), *sides), sides


def words(*names):
    return [
        SentenceWord(text=name, tokens=(number,), is_special=name.startswith("[")) for number, name in enumerate(names)
    ]


def rows(pairs):
    return [(pair.a and pair.a.text, pair.b and pair.b.text) for pair in pairs]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_token_belongs_to_one_word_and_the_words_are_the_sentence(kind, sentence, tokenizers):
    tokens = tokenize(Text((sentence,)), tokenizers[kind], 100)
    found = sentence_words(sentence, tokens)
    assert sorted(token for word in found for token in word.tokens) == list(range(len(tokens.ids)))
    assert "".join(word.text for word in found if not word.is_special) == "".join(sentence.split())


def test_a_word_before_a_full_stop_is_the_word_without_it_under_every_tokenizer(tokenizers):
    for tokenizer in tokenizers.values():
        sides = (Text(("The cat sat.",)), Text(("The cat sat quietly.",)))
        tokens = (PassText(kind="self", source=tokenize(text, tokenizer, 100)) for text in sides)
        changed = [pair for pair in aligned_sentences(sides, *tokens) if pair.is_changed]
        assert rows(changed) == [(None, "quietly")]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("too big .", "too small .", [("too", "too"), ("big", "small"), (".", ".")]),
        ("a b c", "a c", [("a", "a"), ("b", None), ("c", "c")]),
        (
            "the suitcase fell",
            "the suit case fell",
            [("the", "the"), ("suitcase", None), (None, "suit"), (None, "case"), ("fell", "fell")],
        ),
        ("he saw her", "she saw him", [("he", "she"), ("saw", "saw"), ("her", "him")]),
    ],
)
def test_words_are_aligned_by_hand(a, b, expected):
    assert rows(aligned_words(words(*a.split()), words(*b.split()))) == expected


@given(st.lists(st.sampled_from("abcd"), max_size=7), st.lists(st.sampled_from("abcd"), max_size=7))
def test_an_alignment_has_every_word_once_and_in_order(a, b):
    pairs = aligned_words(words(*a), words(*b))
    assert [pair.a.text for pair in pairs if pair.a] == a
    assert [pair.b.text for pair in pairs if pair.b] == b
    assert all(pair.a or pair.b for pair in pairs)
    assert all(not pair.is_changed for pair in aligned_words(words(*a), words(*a)))


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("the dog sat on the red mat.", "the dog sat on the black mat."),
        ("the unbelievable cat ran.", "the cats ran home."),
        ("the dog sat.", "the dog sat on the unbelievable mat."),
    ],
)
def test_what_moves_is_that_of_a_loop_over_words(kind, a, b, tokenizers):
    """Word by word in plain Python: sums over pieces, and half the absolute differences over all words of either."""
    swap, (first, second) = swapped(tokenizers[kind], a, b)
    for head in np.ndindex(2, 3):
        distances = []
        for row, query in enumerate(swap.words):
            differences = []
            for column, key in enumerate(swap.words):
                of = []
                for looked_at, from_, to in ((first, query.a, key.a), (second, query.b, key.b)):
                    share = 0.0
                    for token in from_.tokens if from_ and to else ():
                        for piece in to.tokens:
                            share += looked_at.attention[head][token][piece] / len(from_.tokens)
                    of.append(share)
                assert (swap.a[head][row, column], swap.b[head][row, column]) == pytest.approx(of, abs=1e-12)
                differences.append(of[1] - of[0])
            if query.a and query.b:
                np.testing.assert_allclose(swap.difference[head][row], differences, atol=1e-12)
                assert sum(differences) == pytest.approx(0, abs=1e-12)
                if not query.a.is_special:
                    distances.append(sum(map(abs, differences)) / 2)
            else:
                assert not swap.difference[head][row].any()
        assert swap.moved[head] == pytest.approx(sum(distances) / len(distances), abs=1e-12)
    assert ((swap.moved >= 0) & (swap.moved <= 1)).all()


def moved_by_hand(tokenizers):
    """[CLS] the dog sat [SEP] against [CLS] the cat sat [SEP], in one head."""
    a = np.full((1, 1, 5, 5), 0.2)
    b = a.copy()
    b[0, 0, 1] = 0.2, 0.2, 0.6, 0, 0  # "the" moves 0.4
    b[0, 0, 2] = 1, 0, 0, 0, 0  # "dog", now "cat", moves 0.8
    b[0, 0, 0] = 0, 0, 1, 0, 0  # a special token does not count
    sides = (attended("the dog sat", tokenizers["bert"], a), attended("the cat sat", tokenizers["bert"], b))
    return word_swap((Text(("the dog sat",)), Text(("the cat sat",))), *sides)


def test_what_moves_by_hand_and_the_unchanged_word_from_which_most_does(tokenizers):
    swap = moved_by_hand(tokenizers)
    assert rows(swap.words) == [("[CLS]",) * 2, ("the",) * 2, ("dog", "cat"), ("sat",) * 2, ("[SEP]",) * 2]
    assert swap.moved[0, 0] == pytest.approx((0.4 + 0.8 + 0) / 3)
    move = largest_move(swap, (0, 0))
    assert (move.row, move.moved, move.gains) == (1, pytest.approx(0.4), 2)
    assert move.loses in (3, 4)


def test_a_removed_head_has_no_number(tokenizers):
    attention = np.full((2, 3, 5, 5), 0.2)
    attention[1, 2] = np.nan
    swap, _ = swapped(tokenizers["bert"], "the dog sat", "the cat sat", attention=attention)
    assert np.argwhere(np.isnan(swap.moved)).tolist() == [[1, 2]]
    assert largest_move(swap, (1, 2)) is None


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (Text(("the dog sat",)), Text(("the dog sat",)), "have the same tokens, so nothing differs. Change a word"),
        (Text(("the dog", "sat")), Text(("the dog sat",)), "The first text is a pair."),
        (Text(("the dog sat",)), Text(("the dog", "sat")), "The second text is a pair."),
        (Text(("dog",)), Text(("the cat sat",)), "have no word in common"),
    ],
)
def test_sentences_that_cannot_be_compared_say_why(a, b, sentence, tokenizers):
    sides = (PassText(kind="self", source=tokenize(text, tokenizers["bert"], 100)) for text in (a, b))
    with pytest.raises(AnalysisError, match=sentence):
        aligned_sentences((a, b), *sides)


def test_a_sentence_that_is_drawn_in_part_is_refused_with_its_length(tokenizers):
    long, short = (attended(sentence, tokenizers["bert"]) for sentence in ("the dog sat", "the cat sat"))
    long = replace(long, overview=np.zeros((2, 3, 1, 1)))
    with pytest.raises(AnalysisError, match="The second sentence has 5 tokens, of which only a part is drawn"):
        word_swap((Text(("the cat sat",)), Text(("the dog sat",))), short, long)


def test_frequent_words_of_a_long_sentence_keep_their_partners():
    long = np.random.default_rng(0).choice(["the", "dog", "saw", "a", "cat"], 300).tolist()
    pairs = aligned_words(words(*long), words(*long[:100], "red", *long[100:]))
    assert rows(pair for pair in pairs if pair.is_changed) == [(None, "red")]
