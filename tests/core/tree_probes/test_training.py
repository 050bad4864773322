from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from passing import SELF, pass_texts, whole_map
from probe_material import (
    DIMENSION,
    among_unread,
    by_the_formula,
    made_text,
    made_texts,
    random_heads,
    random_probe,
    with_attention,
)

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import prepare, queries_text
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import words_of
from attention_sieve.core.tree_probes import training as probe_training
from attention_sieve.core.tree_probes.features import check_kind, embedded_words, word_attention_maps, word_pieces
from attention_sieve.core.tree_probes.probe import TreeProbeSettings, uas
from attention_sieve.core.tree_probes.texts import NO_CANDIDATE
from attention_sieve.core.tree_probes.training import predicted_heads, scores, train

NO_VECTORS = np.zeros((1, 0), np.float32)
TABLE = np.random.default_rng(7).normal(size=(6, DIMENSION)).astype(np.float32)


def trained(texts, settings, table=NO_VECTORS):
    (last,) = deque(train(texts, table, settings), maxlen=1)
    return last


@pytest.mark.parametrize(("table", "rows"), [(TABLE, [1, 5, 0, 2, 5]), (NO_VECTORS, None)])
def test_scores_are_those_of_the_formula_written_out_pair_by_pair(table, rows):
    text = made_text(np.random.default_rng(0), [2, 0, 2, 3, 2], rows=rows)
    probe = random_probe(dimension=table.shape[1])
    np.testing.assert_allclose(scores(probe, text, table), by_the_formula(probe, text, table), rtol=1e-4, atol=1e-4)


def test_texts_of_other_lengths_beside_it_change_nothing_of_a_text():
    texts, probe = made_texts(40, rows=None), random_probe(dimension=0)
    together = predicted_heads(probe, texts, NO_VECTORS)
    alone = [scores(probe, text, NO_VECTORS).argmax(-1) for text in texts]
    assert [found.tolist() for found in together] == [found.tolist() for found in alone]
    assert len({len(found) for found in together}) > 3


def test_a_head_that_attends_from_words_to_their_heads_is_found():
    found = trained(made_texts(60, planted=(1, 2)), TreeProbeSettings(learning_rate=0.05, epochs=8))
    w, u = found.probe.weights
    assert np.unravel_index(u.argmax(), u.shape) == (1, 2)
    others = np.append(np.delete(u.ravel(), 5), w)
    assert u[1, 2] > 2 * np.abs(others).max()
    test = made_texts(20, seed=1, planted=(1, 2))
    assert uas(predicted_heads(found.probe, test, NO_VECTORS), test).share > 0.97


def by_kind(rng):
    """Words of row 1 are found by one head, those of row 2 by another."""
    heads = random_heads(rng, int(rng.integers(4, 9)))
    rows = rng.integers(1, 3, len(heads))
    text, other = (made_text(rng, heads, planted=head) for head in ((0, 0), (1, 1)))
    one, other = text.passed.attention, other.passed.attention
    attention = np.where((rows == 1)[:, None], one[:, :, 2:], other[:, :, 2:])
    return replace(with_attention(text, np.concatenate([one[:, :, :2], attention], axis=2)), rows=rows)


def test_words_say_which_head_to_follow_where_attention_alone_cannot():
    rng = np.random.default_rng(3)
    texts, test = [by_kind(rng) for _ in range(60)], [by_kind(rng) for _ in range(20)]
    table = np.array([[0, 0], [1, 0], [0, 1]], np.float32)
    settings = TreeProbeSettings(words=True, learning_rate=0.1, epochs=8)
    by_words = trained(texts, settings, table).probe
    u = by_words.by_word[1, 1]
    assert u[0, 0, 0] > 3 > 0 > u[0, 0, 1]  # by the word's own kind
    assert u[1, 1, 1] > 3 > 0 > u[1, 1, 0]
    assert not by_words.constant.any()
    assert uas(predicted_heads(by_words, test, table), test).share > 0.97
    assert trained(texts[:10], replace(settings, bias=True, epochs=1), table).probe.constant.any()


def test_the_same_seed_gives_the_same_probe_and_another_one_another():
    texts = made_texts(30, planted=(1, 2))
    texts = [replace(text, rows=np.arange(len(text.heads)) % 6) for text in texts]
    settings = TreeProbeSettings(words=True, epochs=2)
    first, again, other = (trained(texts, replace(settings, seed=seed), TABLE) for seed in (1, 1, 2))
    for name in ("constant", "by_word", "root_vector", "root_parts"):
        np.testing.assert_allclose(getattr(first.probe, name), getattr(again.probe, name), rtol=1e-5, atol=1e-6)
    assert first.epochs == again.epochs
    assert np.abs(first.probe.by_word - other.probe.by_word).max() > 0


def test_before_the_first_step_every_candidate_is_as_likely():
    texts = made_texts(20)
    first = next(train(texts, NO_VECTORS, TreeProbeSettings(epochs=1, held_out=0.5)))
    order = np.random.default_rng(0).permutation(20)
    n_words = np.array([len(texts[place].heads) for place in order[:10]])
    assert first.n_held_out == first.n_texts == 10
    assert first.epochs[0].held_out_loss == pytest.approx((n_words * np.log(n_words + 1)).sum() / n_words.sum())
    assert first.epochs[0].loss is None


def test_training_ends_after_patience_and_keeps_the_best():
    # Nothing to be learned, and steps so large that what is not there is learned all the same.
    found = trained(made_texts(24), TreeProbeSettings(learning_rate=0.5, patience=2, epochs=50))
    losses = [epoch.held_out_loss for epoch in found.epochs]
    assert len(losses) < 50
    assert found.is_finished
    assert found.best == int(np.argmin(losses)) == len(losses) - 1 - 2


def test_whoever_stops_has_the_best_so_far_and_knows_how_much_was_seen():
    texts = made_texts(300, planted=(1, 2))
    course = []
    for training in train(texts, NO_VECTORS, TreeProbeSettings(epochs=3)):
        course.append(training)
        if len(training.epochs) == 2 and training.done < training.n_texts:
            break
    assert [(len(one.epochs), one.done) for one in course] == [(1, 100), (1, 200), (2, 270), (2, 100)]
    assert [(one.epoch, one.n_seen) for one in course] == [(1, 100), (1, 200), (1, 270), (2, 370)]
    assert not course[0].probe.constant.any()
    assert (course[0].best, course[-1].best) == (0, 1)
    assert course[-1].probe.constant[1, 1, 2] > 0
    assert not course[-1].is_finished


def test_words_that_were_not_passed_change_nothing():
    texts = made_texts(40, planted=(1, 2))
    rng = np.random.default_rng(5)
    places = [np.sort(rng.choice(12, len(text.heads), replace=False)) for text in texts]
    unread = [among_unread(text, of_text, 12) for text, of_text in zip(texts, places)]
    settings = TreeProbeSettings(learning_rate=0.05, epochs=3)
    found, same = trained(texts, settings), trained(unread, settings)
    np.testing.assert_allclose(found.probe.constant, same.probe.constant, rtol=1e-5, atol=1e-6)
    assert found.epochs == same.epochs
    for text, of_text, heads in zip(texts, places, predicted_heads(found.probe, unread, NO_VECTORS)):
        (alone,) = predicted_heads(found.probe, [text], NO_VECTORS)
        assert heads[of_text].tolist() == [0 if head == 0 else of_text[head - 1] + 1 for head in alone]
        assert (np.delete(heads, of_text) == NO_CANDIDATE).all()


def test_a_word_whose_head_was_not_passed_is_a_candidate_and_not_learned_from():
    rng = np.random.default_rng(0)
    # The fifth word was not passed; the second is its dependent.
    text = among_unread(made_text(rng, [0, 1, 1, 3]), [0, 1, 2, 3], 5)
    text = replace(text, heads=np.array([0, 5, 1, 3, 1]))
    assert text.targets.tolist() == [0, NO_CANDIDATE, 1, 3]
    assert scores(random_probe(dimension=0), text, NO_VECTORS).shape == (4, 5)
    first = next(train([text] * 6, NO_VECTORS, TreeProbeSettings(epochs=1, learning_rate=1e-9)))
    assert first.epochs[0].held_out_loss == pytest.approx(np.log(5))
    assert first.epochs[1].loss == pytest.approx(np.log(5))


def test_texts_are_worked_on_in_parts_of_a_bounded_size_with_the_same_result(monkeypatch):
    rng = np.random.default_rng(2)
    sizes = [3, 4, 30, 3, 5, 4, 3, 28, 6, 3]
    texts = [made_text(rng, random_heads(rng, size), planted=(1, 2)) for size in sizes * 3]
    settings = TreeProbeSettings(texts_per_step=9, learning_rate=0.05, epochs=3)
    whole = trained(texts, settings)
    predicted = predicted_heads(whole.probe, texts, NO_VECTORS)
    monkeypatch.setattr(probe_training, "ENTRIES", 6 * 9 * 9 * 3)
    assert [found.tolist() for found in predicted_heads(whole.probe, texts, NO_VECTORS)] == [
        found.tolist() for found in predicted
    ]
    in_parts = trained(texts, settings)
    np.testing.assert_allclose(in_parts.probe.constant, whole.probe.constant, rtol=1e-3, atol=1e-5)


def test_too_few_texts_teach_nothing():
    with pytest.raises(
        AnalysisError, match="at least 2 training texts besides its validation texts; of 3, 2 are for validation"
    ):
        train(made_texts(3), NO_VECTORS, TreeProbeSettings())


TEXTS = [
    Text(("unbelievable cats sat",)),
    Text(("the black cat",), (("the", "black", "cat"),)),
    Text(("a dog ran", "unbelievably red coffee house")),
]


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
def test_attention_between_words_sums_over_their_pieces_and_averages_from_them(loaded, family):
    checkpoint = loaded(family)
    prepared = pass_texts(checkpoint, TEXTS)
    words = [words_of(text) for text in TEXTS]
    found = dict(one for batch in word_attention_maps(checkpoint, prepared, words, SELF) for one in batch)
    assert sorted(found) == [0, 1, 2]
    for place, (text, of_text) in enumerate(zip(prepared, words)):
        tokens = text.queries
        inside = [[] for _ in range(2 + len(of_text.segments))]  # [CLS], the other special tokens, then each word
        for token, (segment, (start, end)) in enumerate(zip(tokens.segments, tokens.spans)):
            at = start if start < end else start - 1  # what is blank belongs to the word before it
            before = (of_text.segments == segment) & (of_text.spans[:, 0] <= at)
            own = 1 - tokens.is_cls[token] if segment == -1 else 2 + np.flatnonzero(before)[-1]
            inside[own].append(token)
        maps = whole_map(checkpoint, text)
        for row, queries in enumerate(inside):
            for column, keys in enumerate(inside):
                cells = maps[:, :, queries][..., keys]
                expected = cells.sum(-1).mean(-1) if queries else np.zeros(maps.shape[:2])
                np.testing.assert_allclose(found[place].attention[:, :, row, column], expected, atol=2e-3)
        assert found[place].attention.shape[2:] == (2 + len(of_text.segments),) * 2
        assert found[place].places.tolist() == list(range(len(of_text.segments)))


def test_vectors_of_words_are_means_over_their_input_embeddings(loaded):
    checkpoint = loaded("bert")
    prepared = pass_texts(checkpoint, TEXTS)
    pieces = [word_pieces(text, words_of(of_text)) for text, of_text in zip(prepared, TEXTS)]
    assert [len(word) for word in pieces[0]] == [3, 2, 1]
    found = embedded_words(checkpoint, pieces)
    embeddings = checkpoint.model.get_input_embeddings().weight.detach().numpy()
    for text, rows in zip(pieces, found.rows):
        for word, row in zip(text, rows):
            np.testing.assert_allclose(found.table[row], embeddings[list(word)].mean(0), rtol=1e-6)
    assert len(found.table) == 1 + len({word for text in pieces for word in text})
    assert not found.table[0].any()
    blank = Text(("the \u200b cat",), (("the", "\u200b", "cat"),))
    (prepared,) = pass_texts(checkpoint, [blank])
    pieces = word_pieces(prepared, words_of(blank))
    assert [len(word) for word in pieces] == [1, 0, 1]
    assert embedded_words(checkpoint, [pieces]).rows[0].tolist()[1] == 0


def test_an_encoder_is_probed_on_the_first_segment_of_a_pair_and_cross_attention_on_none(loaded):
    with pytest.raises(AnalysisError, match="Cross-attention goes from one text to another"):
        check_kind("cross")
    checkpoint, settings = loaded("t5"), PassSettings("encoder")
    text = Text(("the cat sat", "a dog"))
    words = words_of(queries_text(text, "encoder"))
    ((found,),) = word_attention_maps(checkpoint, [prepare(checkpoint, text, settings)], [words], settings)
    assert found[1].attention.shape[2:] == (5, 5)


def test_words_without_tokens_take_no_place_in_attention(loaded):
    checkpoint = loaded("bert")
    words = ("a", "\u200b", *["cat"] * 60)
    text = Text((" ".join(words),), (words,))
    prepared = prepare(checkpoint, text, SELF, truncate=True)
    ((found,),) = word_attention_maps(checkpoint, [prepared], [words_of(text)], SELF)
    n_passed = checkpoint.max_tokens - 2
    assert found[1].places.tolist() == [0, *range(2, n_passed + 1)]
    # Each word is one token and has the others' attention: [CLS], [SEP], and in between the words in their order.
    order = [0, n_passed + 1, *range(1, n_passed + 1)]
    expected = whole_map(checkpoint, prepared)[:, :, order][..., order]
    np.testing.assert_allclose(found[1].attention, expected, atol=2e-3)
