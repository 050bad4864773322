import numpy as np
import pytest
import torch
from small_checkpoints import TOKENIZERS, config, save

from core.attention.settings import PassSettings
from core.checkpoints.find import find_checkpoint, load_checkpoint
from core.passes.outputs import output_change, prediction
from core.passes.prepare import prepare
from core.texts.text import Text

TEXT = Text(("the dog sat on the red mat.",))
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
        np.testing.assert_array_equal(found.head.before, found.head.after)


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
    head = checkpoint.full_model.get_output_embeddings()
    watching = head.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0].shape[:-1])))
    try:
        found = change(checkpoint, token=token).head
    finally:
        watching.remove()
    assert shapes == [(1, 1), (1, 1)]
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
