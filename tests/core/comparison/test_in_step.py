"""Two passes in step: the divergence against SciPy on transformers' own eager maps, and what becomes of errors."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from naive import eager_maps
from passing import SELF, measures_in, measures_of, with_relations
from scipy.spatial.distance import jensenshannon
from small_checkpoints import save
from transformers import AutoModel

import attention_sieve.core.comparison.in_step
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.comparison.in_step import MOST, compare_batch, row_divergence
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.texts import prepare, same_tokens
from attention_sieve.core.roles.measures import USUAL
from attention_sieve.core.texts.text import Text

TEXTS = (
    Text(("The quick cat sat on the old mat.", "She drinks hot coffee.")),
    Text(("She slowly ate the red apple.",)),
    Text(("A bird.",)),
)
STEPPING = ("bert", "gpt2", "llama", "gpt_oss", "mpnet", "mistral")
"""An encoder and decoders, grouped queries, attention sinks, a softmax that is tapped, and windows."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """pair(family) -> two checkpoints of one shape with other weights."""
    made = {}

    def loaded(family, dtype="float32"):
        if (family, dtype) not in made:
            folders = [save(family, tmp_path_factory.mktemp(family) / f"seed {seed}", seed=seed) for seed in (1, 2)]
            made[family, dtype] = [load_checkpoint(find_checkpoint(str(folder)), dtype=dtype) for folder in folders]
        return made[family, dtype]

    return loaded


def prepared(checkpoint, texts=TEXTS, settings=SELF):
    return with_relations([prepare(checkpoint, text, settings) for text in texts], texts)


def compared(a, b, texts=TEXTS, settings=SELF):
    return compare_batch(a, b, prepared(a, texts, settings), prepared(b, texts, settings), settings, settings)


def eager_divergence(a, b, text, settings):
    """Mean over queries of SciPy's divergence between rows of the eager maps [layer head]."""
    maps = []
    for checkpoint in (a, b):
        # PyTorch has no grouped product of float64 matrices for the experts of gpt_oss.
        dtype = torch.float32 if checkpoint.files.model_type == "gpt_oss" else torch.float64
        model = AutoModel.from_pretrained(checkpoint.files.folder, attn_implementation="eager", dtype=dtype).eval()
        inputs = model_inputs(checkpoint, [text])
        if settings.kind == "encoder":
            maps.append(eager_maps(model.get_encoder(), inputs)[1]["self"][:, 0].numpy())
        else:
            maps.append(eager_maps(model, inputs)[1][settings.kind][:, 0].numpy())
    p, q = maps
    return np.nan_to_num(jensenshannon(p, q, axis=-1) ** 2).mean(-1)


@pytest.mark.parametrize("family", STEPPING)
def test_the_divergence_equals_scipys_on_eager_maps_and_the_scores_are_those_of_each_pass_alone(family, pair):
    a, b = pair(family)
    found = compared(a, b)
    expected = [eager_divergence(a, b, text, SELF) for text in prepared(a)]
    np.testing.assert_allclose(found.divergence, expected, atol=1e-6)
    assert found.divergence.min() > 1e-4
    assert found.divergence.max() <= MOST
    for checkpoint, measures in ((a, found.a), (b, found.b)):
        np.testing.assert_allclose(
            measures_in(measures), measures_of(checkpoint, prepared(checkpoint)), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_so_it_does_for_each_attention_of_an_encoder_decoder(kind, pair):
    a, b = pair("bart")
    settings = PassSettings(kind)
    texts = (TEXTS[0], Text(("She ate.", "A bird sat on the old red mat.")))
    found = compared(a, b, texts, settings)
    expected = [eager_divergence(a, b, text, settings) for text in prepared(a, texts, settings)]
    np.testing.assert_allclose(found.divergence, expected, atol=1e-6)


@pytest.mark.parametrize(("family", "entries"), [("bert", 50), ("bert", 700), ("gpt2", 50), ("mpnet", 50)])
def test_small_tiles_give_the_same(family, entries, pair, small_tiles):
    a, b = pair(family)
    whole = compared(a, b, TEXTS[1:])
    small_tiles(entries)
    tiled = compared(a, b, TEXTS[1:])
    np.testing.assert_allclose(tiled.divergence, whole.divergence, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_equal_checkpoints_have_no_difference_at_all(dtype, pair):
    a, _ = pair("bert", dtype)
    found = compared(a, a)
    np.testing.assert_allclose(measures_in(found.a), measures_in(found.b), rtol=1e-5, atol=1e-6)
    assert found.divergence.max() < 1e-6


def test_a_model_behind_the_door_and_one_that_is_tapped_go_in_step(pair, small_tiles):
    (a, _), (b, _) = pair("albert"), pair("deberta-v2")
    texts = (TEXTS[1], TEXTS[2])
    assert all(map(same_tokens, prepared(a, texts), prepared(b, texts)))
    small_tiles(50)
    expected = [eager_divergence(a, b, *sides) for sides in zip(prepared(a, texts), (SELF, SELF))]
    np.testing.assert_allclose(compared(a, b, texts).divergence, expected, atol=1e-6)


def test_a_planted_change_is_found_in_its_head_and_in_no_earlier_one(tmp_path, folders):
    folder = save("bert", tmp_path / "planted")
    model = AutoModel.from_pretrained(folder)
    size = model.config.hidden_size // model.config.num_attention_heads
    with torch.no_grad():
        model.encoder.layer[1].attention.self.query.weight[size : 2 * size] = torch.randn(
            (size, model.config.hidden_size), generator=torch.Generator().manual_seed(3)
        )
    model.save_pretrained(folder)
    a, b = (load_checkpoint(find_checkpoint(str(path))) for path in (folders("bert"), folder))
    found = compared(a, b)
    changed = np.zeros((2, 3), bool)
    changed[1, 1] = True
    np.testing.assert_array_equal((found.divergence > 1e-6).all(0), changed)
    np.testing.assert_array_equal((found.divergence > 1e-6).any(0), changed)
    local = USUAL.measures.index("local")
    a_local, b_local = (measures_in(side)[:, local] for side in (found.a, found.b))
    np.testing.assert_array_equal((np.abs(a_local - b_local) > 1e-5).any(0), changed)


def test_texts_whose_tokens_differ_have_scores_and_no_divergence(pair):
    (a, _), (b, _) = pair("bert"), pair("gpt2")
    found = compared(a, b)
    assert np.isnan(found.divergence).all()
    assert found.divergence.shape == (3, 2, 3)
    np.testing.assert_allclose(measures_in(found.b), measures_of(b, prepared(b)), rtol=1e-5, atol=1e-6)


def test_texts_with_the_same_tokens_keep_their_places_among_others(pair):
    a, b = pair("bert")
    texts_a, texts_b = prepared(a), prepared(b)
    texts_b[1] = prepared(b, [Text(("She ate the red apple slowly.",))])[0]
    found = compare_batch(a, b, texts_a, texts_b, SELF, SELF)
    whole = compared(a, b)
    assert np.isnan(found.divergence[1]).all()
    np.testing.assert_allclose(found.divergence[[0, 2]], whole.divergence[[0, 2]], atol=1e-6)
    np.testing.assert_allclose(measures_in(found.a), measures_in(whole.a), rtol=1e-5, atol=1e-6)


def test_checkpoints_of_another_shape_have_scores_and_no_divergence(pair, tmp_path):
    a, _ = pair("bert")
    wide = load_checkpoint(find_checkpoint(str(save("bert", tmp_path / "wide", num_hidden_layers=3))))
    found = compared(a, wide)
    assert found.divergence is None
    shapes = [measures_in(side).shape for side in (found.a, found.b)]
    assert shapes == [(3, len(USUAL.measures), 2, 3), (3, len(USUAL.measures), 3, 3)]


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("at", [0, 1])
def test_an_error_of_either_pass_is_raised_and_ends_both(failing, at, pair, monkeypatch):
    a, b = pair("bert")

    class Failure(Exception):
        pass

    model = (a, b)[failing].model

    def fails(module, *rest):
        raise Failure(failing)

    hook = model.encoder.layer[at].register_forward_pre_hook(fails)
    try:
        with pytest.raises(Failure, match=str(failing)):
            compared(a, b)
    finally:
        hook.remove()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("compared")]
    assert compared(a, b).divergence.max() > 0


def test_a_pass_that_shows_fewer_tiles_is_an_error_and_no_wait_for_ever(pair, monkeypatch):
    a, b = pair("bert")
    observes = attention_sieve.core.comparison.in_step._Observes
    shown = observes.observe
    monkeypatch.setattr(observes, "observe", lambda self, tile: shown(self, tile) if tile.layer == 0 else None)
    found = compared(a, b)
    assert (found.divergence[:, 1] == 0).all()
    calls = []

    def all_but_every_third(self, tile):
        calls.append(tile)
        if len(calls) % 3:
            shown(self, tile)

    monkeypatch.setattr(observes, "observe", all_but_every_third)
    with pytest.raises(RuntimeError, match="out of step"):
        compared(a, b)


@given(st.integers(1, 30), st.integers(0, 10_000), st.floats(0.01, 50))
def test_rows_are_symmetric_bounded_and_scipys(n_keys, seed, sharpness):
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.softmax(sharpness * torch.randn((4, n_keys), generator=generator), -1) for _ in range(2))
    found = row_divergence(a, b)
    torch.testing.assert_close(found, row_divergence(b, a), rtol=0, atol=0)
    assert 0 <= found.min() <= found.max() <= MOST
    assert (row_divergence(a, a) == 0).all()
    expected = np.nan_to_num(jensenshannon(a.double().numpy(), b.double().numpy(), axis=-1) ** 2)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)
