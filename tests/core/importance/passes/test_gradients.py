"""Slopes against autograd on transformers' eager model and finite differences; what follows from them, by hand."""

import numpy as np
import pytest
import torch

from attention_sieve.core.analysis import results
from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.importance.measures import (
    BATCH_SIZE,
    attributions,
    confidence,
    gradient_measures,
    output_measures,
)
from attention_sieve.core.importance.passes.head_outputs import output_projections
from attention_sieve.core.importance.per_text import LabelledText, OutputWeights, TextOutputs, TextSlopes
from attention_sieve.core.importance.question import HEAD_OUTPUTS, mean_outputs, slopes_question
from attention_sieve.core.passes.readout import Readout
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("The two black dogs ran.",)), Text(("Who sat?",)))


def asked(checkpoint, metric, labels=(None, None), kind="self", texts=TEXTS):
    items = [LabelledText(text, label) for text, label in zip(texts, labels)]
    return results(checkpoint, slopes_question(metric), items, PassSettings(kind))


def projections_of(model):
    if model.config.model_type == "gpt2":
        return [layer.attn.c_proj for layer in model.base_model.h]
    return [layer.attention.output.dense for layer in model.base_model.encoder.layer]


def by_autograd(checkpoint, ids, loss_of):
    """Input of each output projection and its gradient, [layer token head channel], of transformers' eager model."""
    model = type(checkpoint.full_model).from_pretrained(
        checkpoint.files.folder, attn_implementation="eager", dtype=torch.float64
    )
    seen = []
    for projection in projections_of(model.eval()):
        projection.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    slopes = torch.autograd.grad(loss_of(model, torch.tensor(ids)[None]), seen)
    return [torch.stack(list(values))[:, 0].detach().unflatten(-1, (3, -1)).numpy() for values in (seen, slopes)]


def next_tokens(model, ids):
    return torch.nn.functional.cross_entropy(model(input_ids=ids).logits[0, :-1], ids[0, 1:])


def class_one(model, ids):
    return torch.nn.functional.cross_entropy(model(input_ids=ids).logits, torch.tensor([1]))


@pytest.mark.parametrize(
    ("name", "metric", "labels", "loss_of"),
    [("causal", "lm", (None, None), next_tokens), ("classes", "labels", (1.0, 1.0), class_one)],
)
def test_importance_in_its_three_forms_and_attributions_are_those_of_autograd(name, metric, labels, loss_of, headed):
    checkpoint = headed(name)
    slopes = asked(checkpoint, metric, labels)
    outputs = results(checkpoint, HEAD_OUTPUTS, TEXTS)
    found = [by_autograd(checkpoint, prepare(checkpoint, t, PassSettings()).source.ids, loss_of) for t in TEXTS]
    products = [(of_heads * slope).sum(-1) for of_heads, slope in found]  # [layer token head]
    n_tokens = sum(product.shape[1] for product in products)
    means = sum(of_heads.sum(1) for of_heads, _ in found) / n_tokens
    of_mean = [((means[:, None] - of_heads) * slope).sum((1, 3)) for of_heads, slope in found]
    sums = np.stack([product.sum(1) for product in products])
    expected = {
        "gradient per token": sum(np.abs(product).sum(1) for product in products) / n_tokens,
        "gradient per text": np.abs(sums).mean(0),
        "gradient per batch": np.abs(sums.mean(0)),
        "attribution against zero": -sums.mean(0),
        "attribution against mean": np.mean(of_mean, axis=0),
    }
    for measure in (*gradient_measures(slopes), *attributions(slopes, outputs)):
        np.testing.assert_allclose(measure.values(2), expected[measure.name], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(mean_outputs(outputs).values, means, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "metric", "kind"),
    [("masked", "lm", "self"), ("t5", "lm", "cross"), ("t5", "lm", "encoder"), ("masked", "output", "self")],
)
def test_slopes_are_finite_differences_of_the_loss_by_each_gate(name, metric, kind, headed):
    checkpoint = headed(name)
    text = TEXTS[1] if kind == "self" else Text(("Who sat on the mat?", "A cat."))
    (found,) = asked(checkpoint, metric, (None,), kind, (text,))
    assert found.n_tokens == len(prepare(checkpoint, text, PassSettings(kind)).queries.ids)
    attention = checkpoint.attentions[kind]
    read = PassSettings("decoder" if kind == "encoder" else kind)  # whose loss is the decoder's
    readout = Readout(checkpoint, metric, [prepare(checkpoint, text, read)])
    model = checkpoint.model if metric == "output" else checkpoint.full_model

    def loss(gates):
        output = observe(model, readout.inputs(), Pass(calls=attention.calls, gates=gates))
        return float(readout.losses(output, [None])[0])

    step, noise = 1e-3, 2e-4 if name == "t5" else 1e-5  # T5 normalises in single precision
    for head in ((0, 0), (0, 1), (attention.n_layers - 1, attention.n_heads - 1)):
        moved = torch.zeros((attention.n_layers, attention.n_heads), dtype=torch.float64)
        moved[head] = step
        near, far = (loss(1 + moved * k) - loss(1 - moved * k) for k in (1, 2))
        assert found.signed[head] == pytest.approx((8 * near - far) / (12 * step), rel=1e-2, abs=noise)
    assert float(found.loss) == pytest.approx(loss(torch.ones_like(moved)), abs=1e-12)


def slopes(signed):
    absolute, gradient = np.abs(signed) + 1, np.zeros((*signed.shape, 2))
    return TextSlopes(signed=signed, absolute=absolute, gradient=gradient, n_tokens=2, loss=np.array(1.0))


def test_batches_are_of_the_texts_in_their_order_and_layers_are_divided_by_their_norm(chance):
    signed = chance.normal(size=(BATCH_SIZE + 3, 2, 3))
    texts = [slopes(of_text) for of_text in signed]
    parts = [np.abs(part.sum(0)) for part in (signed[:BATCH_SIZE], signed[BATCH_SIZE:])]
    expected = (parts[0] + parts[1]) / len(signed)
    of = {measure.name: measure.values(len(texts)) for measure in gradient_measures(texts)}
    np.testing.assert_allclose(of["gradient per batch"], expected)
    for measure in gradient_measures(texts, normalised=True):
        np.testing.assert_allclose(np.linalg.norm(measure.values(len(texts)), axis=1), 1)


def test_measures_of_drawn_texts_are_those_of_the_texts_repeated(chance):
    texts = [slopes(of_text) for of_text in chance.normal(size=(4, 2, 3))]
    repeated = [texts[place] for place in (0, 0, 3)]
    weights = np.array([[2.0, 0, 0, 1]])
    for drawn, plain in zip(gradient_measures(texts), gradient_measures(repeated)):
        np.testing.assert_allclose(drawn.over(weights)[0], plain.values(3))


@pytest.mark.parametrize(("family", "kind"), [("bert", "self"), ("gpt2", "self"), ("llama", "self"), ("t5", "cross")])
def test_output_projections_are_found_by_what_they_take(family, kind, loaded):
    checkpoint = loaded(family, "float64")
    text = prepare(checkpoint, Text(("Who sat?", "A cat.")), PassSettings(kind))
    found = output_projections(checkpoint, text)
    model = checkpoint.model
    expected = {
        "bert": lambda: [layer.attention.output.dense.weight for layer in model.encoder.layer],
        "gpt2": lambda: [layer.attn.c_proj.weight.T for layer in model.h],
        "llama": lambda: [layer.self_attn.o_proj.weight for layer in model.layers],
        "t5": lambda: [layer.layer[1].EncDecAttention.o.weight for layer in model.decoder.block],
    }[family]()
    for of_layer, weight in zip(found, expected, strict=True):
        np.testing.assert_array_equal(of_layer.reshape(len(of_layer), -1), weight.detach().numpy())


def test_wanda_and_flap_are_worked_by_hand():
    sums = (([[1.0, 2], [0, 4]], [[1.0, 2], [8, 16]]), ([[3.0, 0], [0, 2]], [[9.0, 6], [0, 4]]))
    outputs = [TextOutputs(total=np.array([total]), squares=np.array([squares]), n_tokens=2) for total, squares in sums]
    weights = np.array([[[[1.0, -2.0], [0.5, 1.0]], [[3.0, 0.0], [-0.5, 1.0]]]])  # [layer out head channel]
    wanda, flap = (measure.values(2)[0] for measure in output_measures(outputs, OutputWeights.of(weights)))
    # Mean |weight| 2, 1 and .5, 1; mean squares of outputs 2.5, 2 and 2, 5.
    np.testing.assert_allclose(wanda, [4 * 2.5 + 1 * 2, 0.25 * 2 + 1 * 5])
    columns = np.array([(2.5 - 1) * 10, (2 - 0.25) * 4, 2 * 0.5, (5 - 2.25) * 2])
    np.testing.assert_allclose(flap, ((columns - columns.mean()) / columns.std()).reshape(2, 2).mean(1))


def test_confidence_is_a_mean_over_texts_that_have_one():
    of_texts = np.array([[[0.2]], [[np.nan]], [[0.6]]])
    np.testing.assert_allclose(confidence(of_texts).values(3), 0.4)
