"""Codes of tokens and positions, and what rotary embeddings tell of distances."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from benchmarks.planted import stream
from benchmarks.planted.hosts import read_twice, twice
from benchmarks.planted.rotary import NEAR, THETA, Rotary, distance_weights


def test_two_codes_have_a_small_inner_product():
    codes = stream.codes(128, stream.CODE)
    products = (codes @ codes.T).fill_diagonal_(0)
    assert torch.allclose(codes.norm(dim=1), torch.ones(128))
    assert products.abs().max() < 0.25


@pytest.mark.parametrize("tokens", [-3, 0, 1, 24])
def test_a_shift_turns_the_code_of_a_position_into_that_of_another(tokens):
    places = np.arange(30.0, 90.0)
    moved = stream.position_codes(places) @ stream.shift(tokens).T
    torch.testing.assert_close(moved, stream.position_codes(places - tokens))


def test_no_other_position_has_a_code_alike():
    codes = stream.position_codes(np.arange(stream.POSITIONS))
    assert (codes @ codes.T).fill_diagonal_(0).abs().max() < 0.3


def test_what_is_read_of_a_stream_held_twice_is_the_stream():
    random = torch.Generator().manual_seed(0)
    written, read = torch.randn(3, 5, generator=random), torch.randn(4, 5, generator=random)
    torch.testing.assert_close(twice(written, 12) @ read_twice(read, 12).T, written @ read.T)
    assert twice(written, 12).sum(-1).abs().max() < 1e-5


@pytest.mark.parametrize(("distance", "is_avoided"), [(1, False), (17, False), (0, True)])
def test_rotary_scores_of_transformers_tell_the_distance_to_the_stated_error(distance, is_avoided):
    size, n_tokens = 128, 100
    config = LlamaConfig(
        hidden_size=size, num_attention_heads=1, rope_parameters={"rope_type": "default", "rope_theta": THETA}
    )
    rotary, error = Rotary(size), distance_weights(size, distance, is_avoided)[2]
    query, key = rotary.query(distance, is_avoided=is_avoided), torch.zeros(size)
    key[rotary.fast()] = 1
    cos, sin = LlamaRotaryEmbedding(config)(query, torch.arange(n_tokens)[None])
    queries, keys = apply_rotary_pos_emb(*(part.expand(1, 1, n_tokens, -1) for part in (query, key)), cos, sin)
    scores = (queries @ keys.transpose(-1, -2))[0, 0]
    places = torch.arange(n_tokens)
    apart = places[:, None] - places
    torch.testing.assert_close(
        scores[apart == distance], torch.full((n_tokens - distance,), -1.0 if is_avoided else 1.0), atol=1e-4, rtol=0
    )
    others = scores[apart >= NEAR].abs() if is_avoided else scores[(apart >= 0) & (apart != distance)]
    assert others.max() <= error + 1e-4
    assert error < 0.3
