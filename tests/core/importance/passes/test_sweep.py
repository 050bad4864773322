"""The sweep against one pass through the door for each head, and mean ablation against hooks on transformers' model."""

from functools import partial

import numpy as np
import pytest
import torch
from transformers import AutoModel

from attention_sieve.core.analysis import results
from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError, PairNeeded
from attention_sieve.core.importance.passes.sweep import Sweep, sweep
from attention_sieve.core.importance.question import HEAD_OUTPUTS, ablation_question, mean_outputs
from attention_sieve.core.passes.metric import masked_tokens
from attention_sieve.core.passes.readout import Readout, model_of
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

SINGLE = (Text(("The two black dogs ran.",)), Text(("Who sat?",)))
PAIRS = (Text(("The two dogs ran.", "She eats red apples.")), Text(("A cat.", "Who sat on it?")))
CASES = [
    *((family, "self") for family in ("bert", "gpt2", "llama", "albert", "deberta-v2")),
    *(("t5", kind) for kind in ("encoder", "decoder", "cross")),
    ("bart", "cross"),
]
"""ALBERT runs one layer several times, so nothing is reused; DeBERTa-v2 is tapped at its softmax."""


def prepared_for(checkpoint, texts, settings):
    return [prepare(checkpoint, text, settings) for text in texts]


def outcomes(checkpoint, prepared, settings, how):
    found = sorted((one for batch in sweep(checkpoint, prepared, settings, how) for one in batch), key=lambda of: of[0])
    return [of_text for _, of_text in found]


def one_by_one(checkpoint, prepared, settings, metric, gates_of, off=()):
    """A pass over all texts for each head, through the door as it is used elsewhere: [text layer head part]."""
    attention, model = checkpoint.attentions[settings.kind], model_of(checkpoint, metric, settings.kind)
    readout, found = Readout(checkpoint, metric, prepared), []
    open_ = torch.ones((attention.n_layers, attention.n_heads), dtype=torch.float64)
    for head in off:
        open_[head] = 0
    readout.outcomes(observe(model, readout.inputs(), Pass(calls=attention.calls, gates=open_)))
    for layer, head in np.ndindex(*open_.shape):
        output = observe(model, readout.inputs(), Pass(calls=attention.calls, gates=gates_of(open_, layer, head)))
        found.append(readout.outcomes(output)[0].numpy())
    return np.stack(found, axis=1).reshape(len(prepared), *open_.shape, -1)


def out(open_, layer, head):
    gates = open_.clone()
    gates[layer, head] = 0
    return gates


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_the_sweep_is_one_pass_for_each_head(family, kind, loaded):
    checkpoint, settings = loaded(family, "float64"), PassSettings(kind)
    prepared = prepared_for(checkpoint, SINGLE if kind in ("self", "encoder") else PAIRS, settings)
    found = outcomes(checkpoint, prepared, settings, Sweep(metric="output"))
    expected = one_by_one(checkpoint, prepared, settings, "output", out)
    np.testing.assert_allclose([of_text.without for of_text in found], expected, rtol=0, atol=1e-10)
    assert all(of_text.full == 0 for of_text in found)
    assert expected.min() > 1e-9, "a head that does nothing would show nothing"


def test_a_head_can_be_left_alone_in_its_layer_beside_heads_that_are_off(loaded):
    checkpoint, settings = loaded("bert", "float64"), PassSettings(off=((0, 1),))
    prepared = prepared_for(checkpoint, SINGLE, settings)
    found = outcomes(checkpoint, prepared, settings, Sweep(metric="output", alone=True))

    def alone(open_, layer, head):
        gates = open_.clone()
        gates[layer] = 0
        gates[layer, head] = open_[layer, head]
        return gates

    expected = one_by_one(checkpoint, prepared, settings, "output", alone, settings.off)
    np.testing.assert_allclose([of_text.without for of_text in found], expected, rtol=0, atol=1e-10)
    assert expected.min() > 1e-9


def test_lower_layers_are_computed_once(loaded, monkeypatch):
    checkpoint, n_rows = loaded("bert", "float64"), []
    prepared = prepared_for(checkpoint, SINGLE, PassSettings())
    layer = type(checkpoint.model.encoder.layer[0])
    forward = layer.forward
    monkeypatch.setattr(
        layer, "forward", lambda self, x, *a, **k: (n_rows.append(len(x)), forward(self, x, *a, **k))[1]
    )
    outcomes(checkpoint, prepared, PassSettings(), Sweep(metric="output"))
    # 2 texts in 2 layers are recorded, then checked in one layer and in both; 3 heads of layer 0 go through both,
    # those of layer 1 through one.
    assert sum(n_rows) == 2 * 2 + 2 + 2 * 2 + 6 * 2 + 6


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_mean_ablation_is_that_of_a_hook(family, loaded, folders):
    checkpoint, settings = loaded(family, "float64"), PassSettings()
    prepared = prepared_for(checkpoint, SINGLE, settings)
    means = torch.from_numpy(mean_outputs(results(checkpoint, HEAD_OUTPUTS, SINGLE)).values)
    model = type(checkpoint.model).from_pretrained(folders(family), attn_implementation="sdpa", dtype=torch.float64)
    seen, vectors = [], {}
    for name, replaced in (("full", None), *((head, head) for head in np.ndindex(2, 3))):
        handles = [
            projection.register_forward_pre_hook(partial(by_mean, layer, replaced, means, seen))
            for layer, projection in enumerate(output_projections(model.eval()))
        ]
        with torch.no_grad():
            vectors[name] = [model(input_ids=torch.tensor(text.source.ids)[None])[0][0].mean(0) for text in prepared]
        for handle in handles:
            handle.remove()
    by_layer = [np.concatenate(seen[layer : 2 * len(prepared) : 2]) for layer in range(2)]
    np.testing.assert_allclose(means.flatten(1), [of_layer.mean(0) for of_layer in by_layer], atol=1e-12)
    found = outcomes(checkpoint, prepared, settings, Sweep(metric="output", replacements=means.numpy()))
    for place, of_text in enumerate(found):
        for head in np.ndindex(2, 3):
            cosine = torch.cosine_similarity(vectors["full"][place], vectors[head][place], dim=0)
            assert of_text.without[head][0] == pytest.approx(1 - float(cosine), abs=1e-10)


def output_projections(model):
    if model.config.model_type == "bert":
        return [layer.attention.output.dense for layer in model.encoder.layer]
    return [layer.attn.c_proj for layer in model.h]


def by_mean(layer, replaced, means, seen, _, arguments):
    """Put a head's mean output into its slice of the projection's input."""
    heads = arguments[0].clone()
    if replaced is None:
        seen.append(heads[0].numpy())
    elif replaced[0] == layer:
        heads.unflatten(-1, means.shape[1:])[..., replaced[1], :] = means[replaced]
    return (heads,)


@pytest.mark.parametrize(
    ("name", "metric", "kind"), [("masked", "lm", "self"), ("causal", "lm", "self"), ("classes", "labels", "self")]
)
def test_losses_and_logits_are_those_of_transformers_on_each_text_alone(name, metric, kind, headed):
    checkpoint, settings = headed(name), PassSettings(kind)
    prepared = prepared_for(checkpoint, SINGLE, settings)
    found = outcomes(checkpoint, prepared, settings, Sweep(metric=metric))
    expected = one_by_one(checkpoint, prepared, settings, metric, out)
    np.testing.assert_allclose([of_text.without for of_text in found], expected, rtol=0, atol=1e-10)
    model = type(checkpoint.full_model).from_pretrained(checkpoint.files.folder, dtype=torch.float64).eval()
    for text, of_text in zip(prepared, found):
        ids = torch.tensor(text.source.ids)[None]
        wanted = torch.full_like(ids, -100)
        at = masked_tokens(text.source) if name == "masked" else slice(None)
        wanted[0, at] = ids[0, at]
        if name == "masked":
            ids[0, at] = checkpoint.tokenizer.mask_token_id
        with torch.no_grad():
            output = model(input_ids=ids, **({} if metric == "labels" else {"labels": wanted}))
        plain = output.logits[0] if metric == "labels" else output.loss
        rtol = 1e-6 if name == "causal" else 1e-10  # transformers takes the loss of a decoder in float32
        np.testing.assert_allclose(of_text.full, plain.numpy().reshape(-1), rtol=rtol, atol=1e-10)


def test_the_loss_of_an_encoder_decoder_is_of_its_target_whichever_attention_is_gated(headed):
    checkpoint = headed("t5")
    found = results(checkpoint, ablation_question("lm"), PAIRS, PassSettings("encoder"))
    for text, of_text in zip(PAIRS, found):
        prepared = prepare(checkpoint, text, PassSettings("decoder"))
        ids, target = (torch.tensor(part.ids)[None] for part in (prepared.source, prepared.target))
        with torch.inference_mode():
            logits = checkpoint.full_model(input_ids=ids, decoder_input_ids=target).logits
        wanted = torch.nn.functional.cross_entropy(logits[0, :-1], target[0, 1:])
        assert of_text.full[0] == pytest.approx(float(wanted), abs=1e-10)
    with pytest.raises(PairNeeded, match="Text 1 has no target"):
        results(checkpoint, ablation_question("lm"), SINGLE, PassSettings("encoder"))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_text_vector_is_of_the_last_hidden_states_where_a_head_follows_both_stacks(kind, headed):
    """T5 with its language-model head, against transformers' model without one."""
    checkpoint = headed("t5")
    plain = AutoModel.from_pretrained(checkpoint.files.folder, dtype=torch.float64).eval()
    (text,) = prepared_for(checkpoint, PAIRS[:1], PassSettings(kind))
    readout = Readout(checkpoint, "output", [text])
    attention, model = checkpoint.attentions[kind], model_of(checkpoint, "output", kind)
    vector = readout.text_vectors(observe(model, readout.inputs(), Pass(calls=attention.calls)), 1)[0]
    with torch.inference_mode():
        output = (plain.encoder if kind == "encoder" else plain)(**readout.inputs())
    # T5 normalises in single precision.
    torch.testing.assert_close(vector, output.last_hidden_state[0].mean(0), atol=1e-6, rtol=0)


def test_metrics_that_a_checkpoint_has_not_are_refused(headed, loaded):
    for checkpoint, metric, said in (
        (loaded("bert"), "lm", "without a language-model head.*Choose the metric output"),
        (headed("masked"), "labels", "without a classifier"),
    ):
        with pytest.raises(AnalysisError, match=said):
            results(checkpoint, ablation_question(metric), SINGLE)
    with pytest.raises(AnalysisError, match=r"outputs of single heads cannot be observed\. Replace heads by zero"):
        results(loaded("deberta-v2"), HEAD_OUTPUTS, SINGLE)
