from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_checkpoints import TOKENIZERS, config, save
from tokenizers import normalizers
from torch.nn.modules.module import register_module_forward_pre_hook

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.outputs import (
    next_tokens,
    output_change,
    output_of_both,
    prediction,
    vector_angle,
    word_probability,
)
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

TEXT = Text(("the dog sat on the red mat.",))
OTHER = Text(("the dog ran on the unbelievable mat, home.",))
PAIR = Text(("the dog sat.", "a black cat ran."))


@pytest.fixture(scope="module")
def with_head(tmp_path_factory):
    """with_head(family, class) -> a small random checkpoint in float64 with that head, loaded once."""
    import transformers

    made = {}

    def checkpoint(family, auto_class, **changed):
        key = (family, auto_class, *changed.items())
        if key not in made:
            folder, tokenizer = tmp_path_factory.mktemp(family), TOKENIZERS[family]()
            torch.manual_seed(2)
            model = getattr(transformers, auto_class).from_config(config(family, len(tokenizer), **changed))
            model.double().save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            made[key] = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype="float64")
        return made[key]

    return checkpoint


def change(checkpoint, text=TEXT, kind="self", off=((0, 1),), token=None):
    settings = PassSettings(kind, tuple(off))
    return output_change(checkpoint, prepare(checkpoint, text, settings), settings, token)


def plain(checkpoint, ids, removed=(), **more):
    """The full model's logits by transformers' SDPA, with some heads' slices of the projection's input set to 0."""
    model = (
        type(checkpoint.full_model)
        .from_pretrained(checkpoint.files.folder, attn_implementation="sdpa", dtype=torch.float64)
        .eval()
    )
    for layer, head in removed:
        close(projection(model, layer), head, checkpoint.attentions["self"].n_heads)
    with torch.no_grad():
        return model(input_ids=torch.tensor(ids)[None], **more).logits[0]


def projection(model, layer):
    base = model.base_model
    return base.h[layer].attn.c_proj if hasattr(base, "h") else base.encoder.layer[layer].attention.output.dense


def close(module, head, n_heads):
    def zero(_, inputs):
        (values,) = inputs
        values = values.clone()
        size = values.shape[-1] // n_heads
        values[..., head * size : (head + 1) * size] = 0
        return (values,)

    module.register_forward_pre_hook(zero)


def test_no_head_off_changes_nothing(with_head):
    for family, auto_class in (("gpt2", "AutoModelForCausalLM"), ("bert", "AutoModelForSequenceClassification")):
        found = change(with_head(family, auto_class), off=())
        assert found.cosine == pytest.approx(1)
        assert found.head.distance == 0
        np.testing.assert_allclose(found.head.before, found.head.after, rtol=1e-5, atol=1e-6)


def test_a_causal_checkpoint_names_the_next_tokens(with_head):
    checkpoint = with_head("gpt2", "AutoModelForCausalLM")
    found = change(checkpoint)
    ids = prepare(checkpoint, TEXT, PassSettings()).source.ids
    before, after = (plain(checkpoint, ids, removed)[-1].softmax(-1) for removed in ((), ((0, 1),)))
    best = before.topk(5).indices.tolist()
    assert found.head.token == len(ids) - 1
    assert found.head.names[:5] == tuple(checkpoint.tokenizer.decode([i]) for i in best)
    np.testing.assert_allclose(found.head.before[:5], before[best], rtol=1e-9)
    np.testing.assert_allclose(found.head.after[:5], after[best], rtol=1e-9)
    assert found.head.distance == pytest.approx(float((before - after).abs().sum() / 2), rel=1e-9)
    assert found.head.distance > 1e-3


def test_a_masked_language_model_guesses_the_token_that_is_hidden_from_it(with_head):
    checkpoint = with_head("bert", "AutoModelForMaskedLM")
    ids = prepare(checkpoint, TEXT, PassSettings()).source.ids.copy()
    ids[2] = checkpoint.tokenizer.mask_token_id
    found = change(checkpoint, token=2, off=((1, 2),))
    before, after = (plain(checkpoint, ids, removed)[2].softmax(-1) for removed in ((), ((1, 2),)))
    best = before.topk(5).indices.tolist()
    assert found.head.token == 2
    np.testing.assert_allclose(found.head.before[:5], before[best], rtol=1e-9)
    np.testing.assert_allclose(found.head.after[:5], after[best], rtol=1e-9)
    assert change(checkpoint).head.token == len(ids) - 2  # the last one before [SEP]


@pytest.mark.parametrize(("family", "auto_class"), [("bert", "AutoModelForMaskedLM"), ("gpt2", "AutoModelForCausalLM")])
def test_a_prediction_is_of_the_last_word_from_a_mask_or_of_what_follows_the_text(with_head, family, auto_class):
    checkpoint, settings = with_head(family, auto_class), PassSettings()
    text = prepare(checkpoint, TEXT, settings)
    ids, place = text.source.ids.copy(), len(text.source.ids) - 1
    if family == "bert":
        place -= 2  # before the full stop and [SEP]
        ids[place] = checkpoint.tokenizer.mask_token_id
    found = prediction(checkpoint, text, settings)
    shares = plain(checkpoint, ids)[place].softmax(-1)
    best = shares.topk(5).indices.tolist()
    assert found.masked == (text.queries.tokens[place] if family == "bert" else None)
    assert found.names == tuple(checkpoint.tokenizer.decode([i]) for i in best)
    np.testing.assert_allclose(found.values, shares[best], rtol=1e-9)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("token", [None, 3, 0])
def test_the_head_of_a_causal_checkpoint_is_applied_to_one_token_only(with_head, family, token):
    checkpoint = with_head(family, "AutoModelForCausalLM")
    ids, shapes = prepare(checkpoint, TEXT, PassSettings()).source.ids, []
    n_choices = checkpoint.full_model.get_output_embeddings().out_features

    def watch(module, inputs):
        if getattr(module, "out_features", None) == n_choices:
            shapes.append(tuple(inputs[0].shape[:-1]))

    watching = register_module_forward_pre_hook(watch)  # of whatever copy of the model is run
    try:
        found = change(checkpoint, token=token).head
    finally:
        watching.remove()
    assert set(shapes) == {(1, 1)}
    place = len(ids) - 1 if token is None else token
    before = plain(checkpoint, ids)[place].softmax(-1)
    best = before.topk(5)
    assert found.token == place
    assert found.names[:5] == tuple(checkpoint.tokenizer.decode([i]) for i in best.indices)
    np.testing.assert_allclose(found.before[:5], best.values, rtol=1e-9)


@pytest.mark.parametrize(
    ("problem", "labels", "unit"),
    [(None, 3, "probability"), ("multi_label_classification", 3, "independent probability"), (None, 1, "value")],
)
def test_a_classifier_gives_all_its_classes(with_head, problem, labels, unit):
    checkpoint = with_head("bert", "AutoModelForSequenceClassification", num_labels=labels, problem_type=problem)
    found = change(checkpoint).head
    ids = prepare(checkpoint, TEXT, PassSettings()).source.ids
    logits = plain(checkpoint, ids)
    expected = {"probability": logits.softmax(-1), "independent probability": logits.sigmoid(), "value": logits}[unit]
    assert found.names == tuple(f"LABEL_{i}" for i in range(labels))
    assert found.unit == unit
    assert (found.distance is None) == (unit != "probability")
    np.testing.assert_allclose(found.before, expected, rtol=1e-9)
    assert not np.allclose(found.before, found.after)


def test_a_checkpoint_without_a_head_has_a_text_vector_only(loaded):
    checkpoint = loaded("bert", "float64")
    found = change(checkpoint, off=((0, 0), (1, 1)))
    assert found.head is None
    inputs = torch.tensor(prepare(checkpoint, TEXT, PassSettings()).source.ids)[None]
    vectors = []
    for removed in ((), ((0, 0), (1, 1))):
        model = type(checkpoint.model).from_pretrained(checkpoint.files.folder, dtype=torch.float64).eval()
        for layer, head in removed:
            close(projection(model, layer), head, 3)
        with torch.no_grad():
            vectors.append(model(input_ids=inputs)[0][0].mean(0))
    assert found.cosine == pytest.approx(float(torch.cosine_similarity(*vectors, dim=0)), abs=1e-12)


def test_an_encoder_decoder_names_the_next_token_of_the_target(with_head):
    checkpoint = with_head("t5", "AutoModelForSeq2SeqLM")
    found = change(checkpoint, PAIR, "cross")
    text = prepare(checkpoint, PAIR, PassSettings("cross"))
    targets = torch.tensor(text.target.ids)[None]
    before = plain(checkpoint, text.source.ids, decoder_input_ids=targets)[found.head.token].softmax(-1)
    assert found.cosine is None
    assert found.head.token == len(text.target.ids) - 1
    np.testing.assert_allclose(found.head.before[:5], before.topk(5).values, rtol=1e-9)
    assert found.head.distance > 0


def test_the_encoder_of_an_encoder_decoder_needs_no_target(with_head):
    found = change(with_head("t5", "AutoModelForSeq2SeqLM"), TEXT, "encoder")
    assert found.head is None
    assert 0 < found.cosine < 1


def test_the_head_shares_the_weights_that_passes_go_through(with_head):
    checkpoint = with_head("bert", "AutoModelForMaskedLM")
    assert checkpoint.head == "masked token"
    assert checkpoint.full_model.base_model is checkpoint.model
    assert load_checkpoint(find_checkpoint("bundled"), device="cpu").head is None


def test_saved_without_a_head_there_is_none(tmp_path):
    checkpoint = load_checkpoint(find_checkpoint(str(save("gpt2", tmp_path))), device="cpu")
    assert checkpoint.head is None
    assert checkpoint.full_model is checkpoint.model


def test_the_angle_between_two_vectors_is_that_of_their_cosine_in_degrees(loaded):
    checkpoint, settings = loaded("bert", "float64"), PassSettings()
    a, b = (prepare(checkpoint, text, settings) for text in (TEXT, OTHER))
    model = type(checkpoint.model).from_pretrained(checkpoint.files.folder, dtype=torch.float64).eval()
    with torch.no_grad():
        vectors = [model(input_ids=torch.tensor(text.source.ids)[None])[0][0].mean(0) for text in (a, b)]
    expected = np.degrees(np.arccos(float(torch.cosine_similarity(*vectors, dim=0))))
    assert vector_angle(checkpoint, a, b, settings) == pytest.approx(expected, rel=1e-6)
    assert vector_angle(checkpoint, a, a, settings) == 0
    off = PassSettings(off=((0, 0), (1, 1)))
    assert vector_angle(checkpoint, a, b, off) != pytest.approx(expected, rel=1e-3)


def test_a_causal_checkpoint_gives_a_word_the_product_over_its_tokens_after_what_precedes(with_head):
    checkpoint, settings = with_head("gpt2", "AutoModelForCausalLM"), PassSettings(off=((0, 1),))
    text = prepare(checkpoint, OTHER, settings)
    ids, tokens = text.source.ids, (5, 6, 7)
    shares = plain(checkpoint, ids, settings.off).softmax(-1)
    expected = np.prod([float(shares[token - 1, ids[token]]) for token in tokens])
    assert word_probability(checkpoint, text, tokens, settings) == pytest.approx(expected, rel=1e-9)
    assert word_probability(checkpoint, text, (0,), settings) is None


def test_a_masked_language_model_gives_a_word_the_product_over_its_tokens_from_masks_left_to_right(with_head):
    checkpoint, settings = with_head("bert", "AutoModelForMaskedLM"), PassSettings()
    text = prepare(checkpoint, OTHER, settings)
    tokens = tuple(i for i, token in enumerate(text.source.tokens) if token in ("un", "##believ", "##able"))
    expected, ids = 1.0, text.source.ids.copy()
    assert len(tokens) == 3
    ids[list(tokens)] = checkpoint.tokenizer.mask_token_id
    for token in tokens:
        expected *= float(plain(checkpoint, ids)[token].softmax(-1)[text.source.ids[token]])
        ids[token] = text.source.ids[token]  # known from here on
    assert word_probability(checkpoint, text, tokens, settings) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("family", "auto_class", "kind"),
    [("bert", "AutoModelForSequenceClassification", "self"), ("t5", "AutoModelForSeq2SeqLM", "encoder")],
)
def test_who_predicts_no_tokens_gives_words_no_probability(with_head, family, auto_class, kind):
    checkpoint, settings = with_head(family, auto_class), PassSettings(kind)
    assert word_probability(checkpoint, prepare(checkpoint, TEXT, settings), (1,), settings) is None


@pytest.mark.parametrize(
    ("family", "auto_class"), [("gpt2", "AutoModelForCausalLM"), ("bert", "AutoModelForSequenceClassification")]
)
def test_what_is_predicted_for_two_texts_is_what_is_predicted_for_each(with_head, family, auto_class):
    checkpoint, settings = with_head(family, auto_class), PassSettings()
    a, b = (prepare(checkpoint, text, settings) for text in (TEXT, OTHER))
    both = output_of_both(checkpoint, a, b, settings)
    for text, values in ((a, both.before), (b, both.after)):
        alone = prediction(checkpoint, text, settings)
        assert set(alone.names) <= set(both.names)
        assert sorted(values)[-len(alone.values) :] == pytest.approx(sorted(alone.values), rel=1e-9)
    logits = [plain(checkpoint, text.source.ids) for text in (a, b)]
    one, other = (each[-1] if family == "gpt2" else each for each in logits)
    assert both.distance == pytest.approx(float((one.softmax(-1) - other.softmax(-1)).abs().sum() / 2), rel=1e-9)


def test_nothing_is_predicted_for_two_texts_without_a_head_or_from_a_mask_or_without_a_decoder(with_head, loaded):
    for checkpoint, kind in (
        (loaded("bert", "float64"), "self"),
        (with_head("bert", "AutoModelForMaskedLM"), "self"),
        (with_head("t5", "AutoModelForSeq2SeqLM"), "encoder"),
    ):
        settings = PassSettings(kind)
        a, b = (prepare(checkpoint, text, settings) for text in (TEXT, OTHER))
        assert output_of_both(checkpoint, a, b, settings) is None


def test_the_next_tokens_are_the_models_own_with_and_without_heads(with_head):
    checkpoint = with_head("gpt2", "AutoModelForCausalLM")
    text, settings = prepare(checkpoint, TEXT, PassSettings("self")), PassSettings("self", ((0, 1),))
    found = next_tokens(checkpoint, text, settings, position=3, asked="z")
    ids = text.source.ids
    rows = [plain(checkpoint, ids, removed)[3].log_softmax(-1) for removed in ((), settings.off)]
    for row, likely in zip(rows, found.log_probabilities, strict=True):
        np.testing.assert_allclose(likely, row[list(found.ids)], atol=1e-10)
        assert set(row.topk(5).indices.tolist()) <= set(found.ids)
    assert checkpoint.tokenizer("z", add_special_tokens=False)["input_ids"] == [found.ids[0]]
    all_on = next_tokens(checkpoint, text, PassSettings("self"))
    assert all_on.position == len(ids) - 1
    np.testing.assert_allclose(*all_on.log_probabilities, rtol=1e-5, atol=1e-6)


def test_what_is_no_single_token_is_named(with_head):
    checkpoint, settings = with_head("gpt2", "AutoModelForCausalLM"), PassSettings("self")
    with pytest.raises(AnalysisError, match="is 4 tokens of this model"):
        next_tokens(checkpoint, prepare(checkpoint, TEXT, settings), settings, asked="z z ")


def test_what_a_tokenizer_reads_as_nothing_is_no_token(with_head):
    checkpoint, settings = with_head("gpt2", "AutoModelForCausalLM"), PassSettings("self")
    tokenizer = deepcopy(checkpoint.tokenizer)
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("~", "")
    text = prepare(checkpoint, TEXT, settings)
    with pytest.raises(AnalysisError, match="“~” is no token of this model"):
        next_tokens(replace(checkpoint, tokenizer=tokenizer), text, settings, asked="~")
