"""Masks evaluated tile by tile, against the whole mask that transformers makes for its own SDPA path."""

from itertools import product

import numpy as np
import pytest
import torch
from passing import Recorder
from transformers.masking_utils import (
    and_masks,
    bidirectional_mask_function,
    causal_mask_function,
    sdpa_mask,
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)

import attention_sieve.core.attention.masks
from attention_sieve.core.attention.masks import TileMask, add_tensor, attention_mask_function
from attention_sieve.core.attention.observed import observed_attention
from attention_sieve.core.attention.observers import Pass, current_pass

N_TEXTS, N_TOKENS = 3, 7
FUNCTIONS = {
    "bidirectional": bidirectional_mask_function,
    "causal": causal_mask_function,
    "sliding window": sliding_window_causal_mask_function(3),
    "sliding window, both ways": sliding_window_bidirectional_mask_function(2),
    "causal, first keys hidden": and_masks(causal_mask_function, lambda batch, head, query, key: key > 1),
}
REAL = torch.tensor([5, 7, 2])
PADDINGS = {
    "none": None,
    "right": torch.arange(N_TOKENS) < REAL[:, None],
    "left": torch.arange(N_TOKENS) >= N_TOKENS - REAL[:, None],
}


def slices(n):
    return [slice(start, stop) for start in range(n) for stop in range(start + 1, n + 1)]


def allowed_in_tile(mask, texts, queries, n_keys=N_TOKENS):
    """Where a tile's logits stay as they are."""
    n_visible = mask.n_visible_keys(queries, n_keys)
    logits = torch.ones((texts.stop - texts.start, 2, queries.stop - queries.start, n_visible))
    mask.add_to(logits, texts, queries)
    assert ((logits == 1) | (logits < -1e38)).all()
    assert torch.equal(logits[:, 0], logits[:, 1])
    return torch.nn.functional.pad(logits[:, 0] == 1, (0, n_keys - n_visible))


@pytest.mark.parametrize("kept", [attention_sieve.core.attention.masks.KEPT_ENTRIES, 30, 0])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_tile_equals_its_part_of_the_whole_mask(function, padding, kept, monkeypatch):
    monkeypatch.setattr(attention_sieve.core.attention.masks, "KEPT_ENTRIES", kept)
    sizes = {"batch_size": N_TEXTS, "q_length": N_TOKENS, "kv_length": N_TOKENS}
    mask = attention_mask_function(**sizes, mask_function=FUNCTIONS[function], attention_mask=PADDINGS[padding])
    if (function, padding) == ("bidirectional", "none"):
        assert mask is None
        return
    whole = sdpa_mask(
        **sizes,
        mask_function=FUNCTIONS[function],
        attention_mask=PADDINGS[padding],
        allow_is_causal_skip=False,
        allow_is_bidirectional_skip=False,
    )[:, 0]
    for _, texts, queries in product(range(2), slices(N_TEXTS), slices(N_TOKENS)):
        assert torch.equal(allowed_in_tile(mask, texts, queries), whole[texts, queries]), (texts, queries)


def test_a_models_own_code_has_the_whole_mask_as_a_tensor():
    sizes = {"batch_size": N_TEXTS, "q_length": N_TOKENS, "kv_length": N_TOKENS}
    mask = attention_mask_function(**sizes, mask_function=causal_mask_function)
    whole = sdpa_mask(**sizes, mask_function=causal_mask_function, allow_is_causal_skip=False).expand(
        N_TEXTS, 1, -1, -1
    )
    chosen = torch.rand(whole.shape) < 0.5
    assert (mask.shape, mask.dtype, mask.ndim) == (whole.shape, torch.bool, 4)
    assert torch.equal(mask & chosen, whole & chosen)
    assert torch.equal(mask.masked_fill(chosen, value=False), whole & ~chosen)
    assert torch.equal(mask[..., :3], whole[..., :3])
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = mask.no_such_thing


@pytest.mark.parametrize("function", ["causal", "sliding window"])
def test_queries_that_follow_cached_keys_see_them(function):
    sizes = {"batch_size": 1, "q_length": 3, "kv_length": 7, "q_offset": 4}
    mask = attention_mask_function(**sizes, mask_function=FUNCTIONS[function])
    whole = sdpa_mask(**sizes, mask_function=FUNCTIONS[function], allow_is_causal_skip=False)[:, 0]
    for queries in slices(3):
        assert torch.equal(allowed_in_tile(mask, slice(0, 1), queries), whole[:, queries])


def test_only_a_plain_causal_mask_lets_keys_be_left_away():
    sizes = {"batch_size": N_TEXTS, "q_length": N_TOKENS, "kv_length": N_TOKENS}
    for name, function in FUNCTIONS.items():
        mask = attention_mask_function(**sizes, mask_function=function, attention_mask=PADDINGS["left"])
        assert mask.is_causal == (name == "causal")
        assert mask.n_visible_keys(slice(2, 4), N_TOKENS) == (4 if name == "causal" else N_TOKENS)


def test_a_tile_is_evaluated_once_for_all_layers():
    evaluated = []

    def causal(*places):
        evaluated.append(places)
        return FUNCTIONS["causal"](*places)

    sizes = {"batch_size": N_TEXTS, "q_length": N_TOKENS, "kv_length": N_TOKENS}
    mask = attention_mask_function(**sizes, mask_function=causal, attention_mask=PADDINGS["right"])
    allowed_in_tile(mask, slice(0, 3), slice(0, 4))
    n_evaluated = len(evaluated)
    for _ in range(2):
        allowed_in_tile(mask, slice(0, 3), slice(0, 4))
    assert len(evaluated) == n_evaluated > 0


@pytest.mark.parametrize("shape", [(3, 1, 7, 7), (1, 1, 7, 7), (3, 2, 7, 7), (3, 1, 1, 7)])
@pytest.mark.parametrize("kind", ["bool", "numbers"])
def test_a_mask_a_model_made_by_itself_is_cut_to_the_tile(kind, shape):
    generator = torch.manual_seed(2)
    mask = torch.rand(shape, generator=generator) < 0.5 if kind == "bool" else torch.randn(shape, generator=generator)
    for texts, queries in product(slices(3), slices(7)):
        logits = torch.zeros((texts.stop - texts.start, 2, queries.stop - queries.start, 6))
        add_tensor(logits, mask, texts, queries)
        expected = mask.expand(3, 2, 7, 7)[texts, :, queries, :6]
        assert torch.equal(logits == 0, expected) if kind == "bool" else torch.equal(logits, expected)


def through_the_door(query, mask, **chosen):
    recorder = Recorder(wants_entropy=True)
    token = current_pass.set(Pass(observers=[recorder]))
    try:
        with torch.inference_mode():
            observed_attention(torch.nn.Identity(), query, query, query, mask, **chosen)
    finally:
        current_pass.reset(token)
    (tile,) = recorder.tiles
    return tile


def test_entropy_stays_a_number_where_a_row_sees_nothing_at_all():
    """In a sliding window late padding sees only padding; its row is noise, but no score may turn into NaN by it."""
    for n_tokens in (10, 19, 41):
        padding = (torch.arange(n_tokens) < 2)[None]
        sizes = {"batch_size": 1, "q_length": n_tokens, "kv_length": n_tokens}
        own = attention_mask_function(**sizes, mask_function=FUNCTIONS["sliding window"], attention_mask=padding)
        assert isinstance(own, TileMask)
        whole = sdpa_mask(**sizes, mask_function=FUNCTIONS["sliding window"], attention_mask=padding)
        least = torch.zeros(whole.shape).masked_fill(~whole, torch.finfo(torch.float32).min)
        query = torch.randn((1, 2, n_tokens, 4), generator=torch.manual_seed(0))
        for mask in (own, whole, least, least.masked_fill(~whole, -torch.inf)):
            tile = through_the_door(query, mask)
            assert torch.isfinite(tile.entropy).all()
            seen = tile.probabilities[:, :, :2]
            torch.testing.assert_close(tile.entropy[:, :, :2], torch.special.entr(seen).sum(-1))
            assert np.isfinite(tile.probabilities.numpy()).all()
