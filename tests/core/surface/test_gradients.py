"""Gradients by attention against autograd on transformers' own eager maps, which keep every one of them."""

import numpy as np
import pytest
import torch
from passing import SELF
from small_checkpoints import save_with_head

import attention_sieve.core.surface.gradients
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.metric import masked_tokens
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.surface.gradients import attention_gradients, check_gradients
from attention_sieve.core.surface.per_text import KEY_KINDS
from attention_sieve.core.texts.text import Text

TEXTS = (
    Text(("the two dogs ran, who sat on a mat.",)),
    Text(("who sat on the mat?", "a black cat, unbelievably.")),
    Text(("eat!",)),
)


@pytest.fixture(scope="module")
def guessing(tmp_path_factory):
    """guessing(family) -> a small random checkpoint in float64 that guesses masked tokens, loaded once."""
    made = {}

    def checkpoint(family):
        if family not in made:
            folder = save_with_head(family, tmp_path_factory.mktemp(family), "MaskedLM", dtype="float64")
            made[family] = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype="float64")
        return made[family]

    return checkpoint


def found_of(checkpoint, prepared, settings=SELF, **options):
    batches = attention_gradients(checkpoint, prepared, settings, **options)
    return [found for _, found in sorted((one for batch in batches for one in batch), key=lambda one: one[0])]


def by_autograd(checkpoint, text, masked, off=()):
    """|dL/dA| [layer head query key] of one text alone, with some heads' slices of the projection's input set to 0."""
    model = type(checkpoint.full_model).from_pretrained(
        checkpoint.files.folder, attn_implementation="eager", dtype=torch.float64
    )
    for layer, head in off:
        close(model.eval(), layer, head, checkpoint.attentions["self"].n_heads)
    ids = torch.tensor(text.source.ids)[None]
    wanted = ids[0, masked].clone()
    ids[0, masked] = checkpoint.tokenizer.mask_token_id
    types = {"token_type_ids": torch.tensor(text.source.type_ids)[None]} if checkpoint.takes_type_ids else {}
    output = model.eval()(input_ids=ids, output_attentions=True, **types)
    loss = -torch.log_softmax(output.logits[0, masked], -1)[range(len(masked)), wanted].mean()
    return torch.stack([of[0] for of in torch.autograd.grad(loss, output.attentions)]).abs().numpy()


def close(model, layer, head, n_heads):
    def zero(_, inputs):
        values = inputs[0].clone()
        size = values.shape[-1] // n_heads
        values[..., head * size : (head + 1) * size] = 0
        return (values,)

    model.base_model.encoder.layer[layer].attention.output.dense.register_forward_pre_hook(zero)


def mean_by_kind(gradients, checkpoint, text, masked):
    tokenizer, ids = checkpoint.tokenizer, text.source.ids
    is_sep = ids == tokenizer.sep_token_id
    is_cls = (ids == tokenizer.cls_token_id) & ~is_sep
    is_sign = np.array([token in (".", ",") for token in text.source.tokens])
    is_sign[masked] = False
    kinds = (is_cls, is_sep, is_sign, ~(is_cls | is_sep | is_sign))
    blank = np.full(len(gradients), np.nan)
    return np.stack([gradients[..., of].mean((1, 2, 3)) if of.any() else blank for of in kinds])


@pytest.mark.parametrize(
    ("family", "in_tiles"), [("bert", False), ("bert", True), ("roberta", True), ("distilbert", False)]
)
def test_gradients_are_those_of_autograd_on_eager_maps(family, in_tiles, guessing, small_tiles):
    checkpoint = guessing(family)  # whose check at loading wants one tile
    if in_tiles:
        small_tiles(150, 2)
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    assert len({text.n_tokens for text in prepared}) > 1, "some shall be padded"
    for text, found in zip(prepared, found_of(checkpoint, prepared), strict=True):
        masked = masked_tokens(text.source)
        expected = mean_by_kind(by_autograd(checkpoint, text, masked), checkpoint, text, masked)
        np.testing.assert_allclose(found.importance, expected, rtol=1e-9, atol=1e-12)
        assert found.n_masked == len(masked)


def test_a_masked_full_stop_is_no_punctuation(guessing):
    checkpoint = guessing("bert")
    text = prepare(checkpoint, Text(("who ran. a dog sat on the mat. it is",)), SELF)
    stops = [place for place, token in enumerate(text.source.tokens) if token == "."]
    seed = next(seed for seed in range(1000) if set(masked_tokens(text.source, seed)) == set(stops))
    (found,) = found_of(checkpoint, [text], seed=seed)
    gradients = by_autograd(checkpoint, text, np.array(stops))
    assert np.isnan(found.importance[KEY_KINDS.index("punctuation")]).all()
    other = gradients[..., 1:-1].mean((1, 2, 3))
    np.testing.assert_allclose(found.importance[KEY_KINDS.index("other")], other, rtol=1e-9)


def test_a_head_that_is_off_counts_with_no_gradient(guessing):
    checkpoint, off = guessing("bert"), ((0, 1), (1, 2))
    text = prepare(checkpoint, TEXTS[1], SELF)
    (found,) = found_of(checkpoint, [text], PassSettings(off=off))
    masked = masked_tokens(text.source)
    gradients = by_autograd(checkpoint, text, masked, off)
    assert all((gradients[head] == 0).all() for head in off)
    np.testing.assert_allclose(found.importance, mean_by_kind(gradients, checkpoint, text, masked), rtol=1e-9)


def test_keys_beyond_a_window_do_not_count(guessing):
    checkpoint = guessing("modernbert")
    text = prepare(checkpoint, TEXTS[1], SELF)
    (found,) = found_of(checkpoint, [text])
    gradients = by_autograd(checkpoint, text, masked_tokens(text.source))
    place = np.arange(text.n_tokens)
    seen = np.abs(place[:, None] - place) <= 3  # the second layer's
    assert not seen.all()
    other = KEY_KINDS.index("other")
    is_other = np.array([t not in (".", ",") for t in text.source.tokens]) & ~text.source.is_cls & ~text.source.is_sep
    expected = gradients[1][:, seen & is_other].mean()
    # ModernBERT's eager path takes its softmax in float32.
    assert found.importance[other, 1] == pytest.approx(expected, rel=1e-4)
    assert found.importance[other, 0] == pytest.approx(gradients[0][..., is_other].mean(), rel=1e-4)


def test_shared_keys_and_values_are_told_apart_by_their_heads(guessing):
    from attention_sieve.core.surface.gradients import _KindSums

    checkpoint = guessing("bert")
    text = prepare(checkpoint, TEXTS[1], SELF)
    n_tokens, n_heads, n_kv_heads, n_channels = text.n_tokens, 6, 2, 5
    chance = torch.Generator().manual_seed(0)
    by_output = torch.randn((1, n_tokens, n_heads, n_channels), generator=chance, dtype=torch.float64)
    values = torch.randn((1, n_kv_heads, n_tokens, n_channels), generator=chance, dtype=torch.float64)
    attention = torch.rand((1, n_heads, n_tokens, n_tokens), generator=chance, dtype=torch.float64).requires_grad_()
    outputs = torch.einsum("bhqk,bhkc->bqhc", attention, values[:, [0, 0, 0, 1, 1, 1]])
    (gradients,) = torch.autograd.grad((outputs * by_output).sum(), attention)
    masked = np.array([2, 5])
    found = _KindSums(checkpoint, [text], [masked], (".", ",")).mean(0, by_output, values)[0].numpy()
    expected = mean_by_kind(gradients.abs().numpy(), checkpoint, text, masked)
    np.testing.assert_allclose(found, expected[:, 0], rtol=1e-12)


def test_no_gradient_reaches_the_weights(guessing):
    checkpoint = guessing("bert")
    found_of(checkpoint, [prepare(checkpoint, TEXTS[0], SELF)])
    assert all(weights.grad is None for weights in checkpoint.full_model.parameters())


def test_a_text_is_masked_alike_wherever_it_stands_and_otherwise_under_another_seed(guessing):
    checkpoint = guessing("bert")
    long, other = (prepare(checkpoint, Text(("the cat sat on the red mat " * n,)), SELF).source for n in (4, 3))
    masked = masked_tokens(long)
    np.testing.assert_array_equal(masked, masked_tokens(long))
    assert len(masked) == round(0.15 * 28)
    assert len(set(masked)) == len(masked)
    assert (long.segments[masked] >= 0).all()
    assert any(masked_tokens(long, seed).tolist() != masked.tolist() for seed in (1, 2))
    assert len(masked_tokens(other)) == 3
    assert len(masked_tokens(prepare(checkpoint, Text(("it",)), SELF).source)) == 1
    one, two = (found_of(checkpoint, [prepare(checkpoint, TEXTS[0], SELF)], seed=seed) for seed in (0, 1))
    assert not np.allclose(one[0].importance, two[0].importance, equal_nan=True)


def test_a_model_in_its_own_way_is_refused(guessing):
    with pytest.raises(AnalysisError, match="DebertaV2Model has its own attention code, so gradients of single"):
        check_gradients(guessing("deberta-v2"))


def test_a_text_whose_maps_would_fill_the_memory_is_refused(guessing, monkeypatch):
    monkeypatch.setattr(attention_sieve.core.passes.batches, "MOST_ENTRIES", 6 * 10**2)
    checkpoint = guessing("bert")
    text = prepare(checkpoint, TEXTS[0], SELF)
    with pytest.raises(AnalysisError, match=rf"has {text.n_tokens} tokens.* beyond 10\."):
        found_of(checkpoint, [text])
