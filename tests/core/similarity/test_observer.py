"""Divergences between heads, inside the pass, against SciPy on transformers' own eager maps in float64."""

import numpy as np
import pytest
import torch
from eager_words import eager
from hypothesis import given
from hypothesis import strategies as st
from passing import SELF, prepare
from scipy.spatial.distance import jensenshannon, squareform
from scipy.stats import entropy
from small_checkpoints import N_DECODER_HEADS, N_DECODER_LAYERS, N_HEADS, N_LAYERS, save
from transformers import AutoModel

import attention_sieve.core.similarity.observer
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.similarity.distances import MAP_ENTRIES, MOST, DistanceSettings, sampled_queries
from attention_sieve.core.similarity.observer import divergences, text_distances
from attention_sieve.core.texts.text import Text

TEXTS = (
    Text(("The quick cat sat on the old mat.", "She drinks hot coffee.")),
    Text(("She slowly ate the red apple.",)),
    Text(("A bird.",)),
)
SEEN = ("bert", "gpt2", "llama", "gpt_oss", "mpnet", "mistral")
"""An encoder and decoders, grouped queries, attention sinks, a softmax that is tapped, and windows."""


def prepared(checkpoint, texts=TEXTS, settings=SELF):
    return [prepare(checkpoint, text, settings) for text in texts]


def found(checkpoint, texts=TEXTS, settings=SELF, **how):
    """What is found of each text, in order."""
    batches = list(text_distances(checkpoint, prepared(checkpoint, texts, settings), settings, DistanceSettings(**how)))
    by_place = dict(one for batch in batches for one in batch)
    return [by_place[place] for place in range(len(texts))]


def scipys(maps):
    """The divergences of every two heads [pair] from maps [layer head query key]."""
    heads = maps.reshape(-1, *maps.shape[2:])
    pairs = [(a, b) for a in range(len(heads)) for b in range(a + 1, len(heads))]
    return np.array([np.nan_to_num(jensenshannon(heads[a], heads[b], axis=-1) ** 2).mean() for a, b in pairs])


def expected(checkpoint, texts=TEXTS, settings=SELF):
    return [scipys(eager(checkpoint, text, settings)) for text in prepared(checkpoint, texts, settings)]


@pytest.mark.parametrize("family", SEEN)
def test_divergences_equal_scipys_on_eager_maps(family, loaded):
    checkpoint = loaded(family)
    for one, of_text, text in zip(found(checkpoint), expected(checkpoint), prepared(checkpoint), strict=True):
        np.testing.assert_allclose(one.pairs, of_text, atol=1e-6)
        assert 1e-4 < one.pairs.max() <= MOST
        assert one.n_queries == len(text.queries.ids)


def test_in_double_precision_they_are_scipys_to_the_last_digits(loaded):
    checkpoint = loaded("bert", "float64")
    for one, of_text in zip(found(checkpoint), expected(checkpoint), strict=True):
        np.testing.assert_allclose(one.pairs, of_text, atol=1e-13)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_so_they_do_for_each_attention_of_an_encoder_decoder(kind, loaded):
    settings = PassSettings(kind)
    texts = (TEXTS[0], Text(("She ate.", "A bird sat on the old red mat.")))
    seen = found(loaded("bart"), texts, settings)
    for one, of_text in zip(seen, expected(loaded("bart"), texts, settings), strict=True):
        np.testing.assert_allclose(one.pairs, of_text, atol=1e-6)
    shape = (N_LAYERS, N_HEADS) if kind == "encoder" else (N_DECODER_LAYERS, N_DECODER_HEADS)
    assert seen[0].relative.shape == (*shape, shape[1])
    # A target is read by the decoder alone, a source by the encoder, and cross-attention asks from the target.
    lengths = [len(text.queries.ids) for text in prepared(loaded("bart"), texts, settings)]
    assert [one.n_queries for one in seen] == lengths


@pytest.mark.parametrize(
    ("family", "entries"), [("bert", 50), ("bert", 700), ("gpt2", 50), ("gpt_oss", 50), ("mpnet", 50)]
)
def test_small_tiles_and_small_groups_of_pairs_give_the_same(family, entries, loaded, monkeypatch, small_tiles):
    whole = found(loaded(family))
    small_tiles(entries)
    monkeypatch.setattr(attention_sieve.core.similarity.observer, "PAIR_ENTRIES", entries)
    for one, other in zip(found(loaded(family)), whole, strict=True):
        np.testing.assert_allclose(one.pairs, other.pairs, atol=1e-6)
        np.testing.assert_allclose(one.relative, other.relative, rtol=5e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_divergences_within_a_layer_equal_scipys_relative_entropy(family, loaded):
    checkpoint = loaded(family)
    for one, text in zip(found(checkpoint), prepared(checkpoint), strict=True):
        maps = eager(checkpoint, text, SELF)
        of_layers = [[[entropy(a, b, axis=-1).mean() for b in of_layer] for a in of_layer] for of_layer in maps]
        np.testing.assert_allclose(one.relative, of_layers, rtol=5e-6, atol=1e-6)
        assert np.abs(one.relative - one.relative.swapaxes(1, 2)).max() > 1e-3


def test_smoothed_rows_are_the_authors(loaded):
    checkpoint = loaded("bert")
    for one, text in zip(found(checkpoint, smoothed=True), prepared(checkpoint), strict=True):
        maps = eager(checkpoint, text, SELF)
        np.testing.assert_allclose(one.pairs, scipys(0.999 * maps + 0.001 / maps.shape[-1]), atol=1e-6)
        assert np.abs(one.pairs - scipys(maps)).max() > 1e-5


def test_a_long_text_is_looked_at_in_a_sample_of_its_rows(loaded):
    checkpoint = loaded("bert")
    (text,) = prepared(checkpoint, TEXTS[:1])
    queries = sampled_queries(len(text.queries.ids), len(text.keys.ids), N_LAYERS * N_HEADS, rows=4)
    assert len(set(queries)) == 4
    assert queries.max() < len(text.queries.ids)
    one = found(checkpoint, rows=4)[0]
    np.testing.assert_allclose(one.pairs, scipys(eager(checkpoint, text, SELF)[:, :, queries]), atol=1e-6)
    assert one.n_queries == len(text.queries.ids)


def test_the_rows_of_a_text_fit_into_the_memory_that_is_named():
    np.testing.assert_array_equal(sampled_queries(5, 7, 6), range(5))
    assert len(sampled_queries(5, 7, MAP_ENTRIES // 14)) == 2
    assert len(sampled_queries(5, 700, MAP_ENTRIES)) == 1
    np.testing.assert_array_equal(sampled_queries(500, 7, 6), sampled_queries(500, 7, 6))


def test_batches_hold_no_more_maps_than_named(loaded):
    of_20_tokens = DistanceSettings(rows=MAP_ENTRIES // (20 * N_LAYERS * N_HEADS))
    batches = list(text_distances(loaded("bert"), prepared(loaded("bert"), TEXTS * 2), SELF, of_20_tokens))
    assert len(batches) > 2
    assert len(list(text_distances(loaded("bert"), prepared(loaded("bert"), TEXTS * 2), SELF))) == 1


def test_a_head_planted_twice_is_found_and_lies_at_no_distance(tmp_path):
    folder = save("bert", tmp_path / "planted")
    model = AutoModel.from_pretrained(folder)
    size = model.config.hidden_size // model.config.num_attention_heads
    attention = model.encoder.layer[1].attention.self
    with torch.no_grad():
        for part in (attention.query, attention.key):
            for values in (part.weight, part.bias):
                values[2 * size : 3 * size] = values[:size]
    model.save_pretrained(folder)
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    for one in found(checkpoint):
        square = squareform(one.pairs).reshape(N_LAYERS, N_HEADS, N_LAYERS, N_HEADS)
        assert square[1, 0, 1, 2] < 1e-6
        assert (square < 1e-6).sum() == N_LAYERS * N_HEADS + 2
        np.testing.assert_allclose(one.relative[1, 0, 2], 0, atol=1e-6)


@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 30), st.integers(0, 10_000), st.floats(0.01, 50))
def test_pairs_are_symmetric_bounded_and_scipys(n_maps, n_rows, n_keys, seed, sharpness):
    generator = torch.Generator().manual_seed(seed)
    maps = torch.softmax(sharpness * torch.randn((n_maps, n_rows, n_keys), generator=generator), -1)
    maps = maps + attention_sieve.core.similarity.observer.FLOOR
    pairs = divergences(maps, (maps.log() * maps).sum(-1)).numpy()
    turned = divergences(maps.flip(0), (maps.log() * maps).sum(-1).flip(0)).numpy()
    np.testing.assert_allclose(squareform(turned)[::-1, ::-1], squareform(pairs), atol=1e-6)
    assert 0 <= pairs.min() <= pairs.max() <= MOST
    np.testing.assert_allclose(pairs, scipys(maps.double().numpy()[None]), atol=1e-6)
