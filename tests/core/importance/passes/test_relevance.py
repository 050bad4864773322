"""Relevance: what goes in sums to the logit, and rules written out by hand on a layer give the same."""

import numpy as np
import pytest
import torch
import transformers
from small_checkpoints import TOKENIZERS, config

from attention_sieve.core.analysis import results
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.importance.measures import relevance
from attention_sieve.core.importance.per_text import TextRelevance
from attention_sieve.core.importance.question import relevance_question
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("The two black dogs ran.",)), Text(("Who sat?",)))


def without_biases(model, tokenizer, folder):
    """The model in float64 as a checkpoint in a folder, with all biases 0."""
    for name, weights in model.named_parameters():
        if name.endswith("bias"):
            weights.data.zero_()
    model.double().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype="float64")


@pytest.fixture(scope="module")
def unbiased(tmp_path_factory):
    """unbiased(family) -> a small random classifier of four layers in float64 without any bias."""

    def checkpoint(family):
        folder, tokenizer = tmp_path_factory.mktemp(family), TOKENIZERS[family]()
        torch.manual_seed(5)
        depth = "n_layer" if family == "gpt2" else "num_hidden_layers"
        sizes = config(family, len(tokenizer), **{depth: 4}, num_labels=3, pad_token_id=0)
        return without_biases(transformers.AutoModelForSequenceClassification.from_config(sizes), tokenizer, folder)

    return checkpoint


@pytest.mark.parametrize(("family", "digits"), [("bert", 1e-6), ("roberta", 1e-6), ("gpt2", 1e-6), ("llama", 1e-5)])
def test_relevances_of_the_input_sum_to_the_logit_of_a_model_without_biases(family, digits, unbiased):
    checkpoint = unbiased(family)
    for text, found in zip(TEXTS, results(checkpoint, relevance_question("labels"), TEXTS), strict=True):
        ids = torch.tensor(checkpoint.tokenizer(text.segments[0])["input_ids"])[None]
        with torch.inference_mode():
            logit = float(checkpoint.full_model(input_ids=ids).logits.max())
        assert float(found.top) == pytest.approx(logit, rel=1e-6)
        assert found.tokens.sum() == pytest.approx(logit, rel=digits)


def test_a_head_of_the_last_layer_has_what_it_adds_to_the_logit(unbiased):
    """Where no feed-forward network follows: through its slice of the output projection, the last norm and the head."""
    checkpoint = unbiased("gpt2")
    model, seen = checkpoint.full_model, {}
    last, head_weight = model.base_model.h[-1], model.score.weight
    last.mlp.c_proj.weight.data.zero_()
    (found,) = results(checkpoint, relevance_question("labels"), TEXTS[:1])
    handles = [
        part.register_forward_pre_hook(lambda _, arguments, name=name: seen.update({name: arguments[0][0, -1]}))
        for name, part in (("heads", last.attn.c_proj), ("norm", model.base_model.ln_f))
    ]
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor(checkpoint.tokenizer(TEXTS[0].segments[0])["input_ids"])[None]).logits[0]
        for head in range(3):
            own = slice(4 * head, 4 * head + 4)
            added = seen["heads"][own] @ last.attn.c_proj.weight[own]
            normed = (added - added.mean()) / seen["norm"].std(correction=0) * model.base_model.ln_f.weight
            assert found.heads[-1, head] == pytest.approx(float(head_weight[logits.argmax()] @ normed), rel=1e-4)
    for handle in handles:
        handle.remove()


def test_relevance_is_shared_within_a_layer():
    heads = np.array([[1.0, 3.0], [-1.0, 1.0]])
    texts = [TextRelevance(heads=scale * heads, tokens=np.ones(2), top=np.array(1.0)) for scale in (1, 5)]
    np.testing.assert_allclose(relevance(texts).values(2), [[0.25, 0.75], [-0.5, 0.5]])
    assert relevance(texts).conserved.tolist() == [2, 2], "tokens of 1 and 1, of a logit of 1"


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """translator(family) -> a small random encoder-decoder with a language-model head, in float64, without any bias."""

    def checkpoint(family):
        folder, tokenizer = tmp_path_factory.mktemp(family), TOKENIZERS[family]()
        torch.manual_seed(6)
        model = transformers.AutoModelForSeq2SeqLM.from_config(config(family, len(tokenizer)))
        return without_biases(model, tokenizer, folder)

    return checkpoint


PAIRS = (Text(("The two black dogs ran.", "She sat down.")), Text(("Who sat?", "The cat sat on the mat.")))


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_relevances_of_source_and_target_sum_to_the_logit_of_an_encoder_decoder(family, translator):
    checkpoint = translator(family)
    by_kind = {
        kind: results(checkpoint, relevance_question("lm"), PAIRS, PassSettings(kind))
        for kind in ("encoder", "decoder", "cross")
    }
    for kind, found in by_kind.items():
        for text, of_text in zip(PAIRS, found, strict=True):
            prepared = prepare(checkpoint, text, PassSettings("decoder"))
            assert len(of_text.tokens) == len(prepared.source.ids) + len(prepared.target.ids)
            assert of_text.tokens.sum() == pytest.approx(float(of_text.top), rel=1e-4)
            np.testing.assert_allclose(
                of_text.tokens, by_kind["encoder"][PAIRS.index(text)].tokens, rtol=1e-5, atol=1e-6
            )
            attention = checkpoint.attentions[kind]
            assert of_text.heads.shape == (attention.n_layers, attention.n_heads)
    alone = results(checkpoint, relevance_question("output"), TEXTS, PassSettings("encoder"))
    for of_text in alone:
        assert of_text.tokens.sum() == pytest.approx(float(of_text.top), rel=1e-4)


def test_a_head_of_the_last_cross_attention_has_what_it_adds_to_the_logits(translator):
    """Where no feed-forward network follows: through its slice of the output projection, the last norm and the head."""
    checkpoint = translator("t5")
    model, seen = checkpoint.full_model, {}
    last = model.decoder.block[-1]
    last.layer[2].DenseReluDense.wo.weight.data.zero_()
    (found,) = results(checkpoint, relevance_question("lm"), PAIRS[:1], PassSettings("cross"))
    prepared = prepare(checkpoint, PAIRS[0], PassSettings("decoder"))
    cross, norm = last.layer[1].EncDecAttention, model.decoder.final_layer_norm
    handles = [
        part.register_forward_pre_hook(lambda _, arguments, name=name: seen.update({name: arguments[0][0]}))
        for name, part in (("heads", cross.o), ("norm", norm))
    ]
    ids = {"input_ids": prepared.source.ids, "decoder_input_ids": prepared.target.ids}
    with torch.inference_mode():
        logits = model(**{name: torch.tensor(values)[None] for name, values in ids.items()}).logits[0, :-1]
        root = (seen["norm"] ** 2).mean(-1, keepdim=True).add(norm.variance_epsilon).sqrt()
        scale = model.model_dim**-0.5 if model.config.tie_word_embeddings else 1
        width = seen["heads"].shape[1] // found.heads.shape[1]
        for head in range(found.heads.shape[1]):
            own = slice(width * head, width * (head + 1))
            normed = scale * norm.weight * (seen["heads"][:, own] @ cross.o.weight[:, own].T) / root
            added = (model.lm_head.weight[logits.argmax(-1)] * normed[:-1]).sum(-1).mean()
            assert found.heads[-1, head] == pytest.approx(float(added), rel=1e-4)
    for handle in handles:
        handle.remove()


def test_results_that_were_kept_when_there_were_other_rules_are_still_found():
    assert relevance_question("labels").name == "importance, relevance for labels, conservative"
