import numpy as np
import pytest
import torch

from attention_sieve.core.answering import answer
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.laboratory.outcomes import CopyOutcomes, copy_score
from attention_sieve.core.laboratory.question import COPIED_TOKENS
from attention_sieve.core.laboratory.training import made_tokenizer, untrained_model
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids

IDS = ([0, 7, 8, 9, 7, 8, 9, 4, 7, 8], [0, 5, 6, 5, 6, 5], [0, 20, 30, 40])
"""The second has another length; in the third nothing repeats."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    torch.manual_seed(0)
    untrained_model().save_pretrained(folder)
    made_tokenizer().save_pretrained(folder)
    return folder


def asked(checkpoint, off=()):
    settings = PassSettings("self", off)
    texts = tuple(text_of_ids(GivenTokens(tuple(ids))) for ids in IDS)
    prepared, _ = prepare_all(checkpoint, texts, settings, "error")
    results = dict(pair for batch in answer(checkpoint, COPIED_TOKENS, texts, prepared, settings) for pair in batch)
    return [COPIED_TOKENS.unpack(COPIED_TOKENS.pack(results[row])) for row in range(len(IDS))]


def loss_and_accuracy(folder, ids, targets, off):
    """By transformers' own eager path in float64, with the weights that write the outputs of these heads at 0."""
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64)
    for layer, head in off:
        model.model.layers[layer].self_attn.o_proj.weight.data[:, 16 * head : 16 * head + 16] = 0
    with torch.no_grad():
        shares = model(torch.tensor([ids])).logits[0].softmax(-1).numpy()
    at = [(target - 1, ids[target]) for target in targets]
    right = [shares[query].argmax() == token for query, token in at]
    return -np.mean([np.log(shares[query, token]) for query, token in at]), np.mean(right)


@pytest.mark.parametrize("off", [(), ((0, 2), (1, 0))])
def test_outcomes_are_those_of_the_eager_path_with_the_weights_of_heads_at_zero(folder, off):
    first, second, third = asked(load_checkpoint(find_checkpoint(str(folder)), device="cpu"), off)
    assert (first.n_copied, second.n_copied, third.n_copied) == (3, 2, 0)
    assert np.isnan(third.full).all()
    assert np.isnan(third.without).all()
    for ids, outcome, targets in ((IDS[0], first, (5, 6, 9)), (IDS[1], second, (4, 5))):
        assert outcome.full == pytest.approx(loss_and_accuracy(folder, ids, targets, off), abs=1e-5)
        for head in ((0, 0), (0, 2), (1, 3)):
            expected = loss_and_accuracy(folder, ids, targets, {*off, head})
            assert outcome.without[head] == pytest.approx(expected, abs=1e-5)


def test_the_score_of_texts_is_the_mean_over_their_copied_tokens():
    def outcome(n_copied, loss, accuracy):
        full = np.array([loss, accuracy])
        return CopyOutcomes(n_copied=n_copied, full=full, without=np.broadcast_to(2 * full, (2, 3, 2)))

    score = copy_score([outcome(3, 1.0, 1.0), outcome(1, 5.0, 0.0), outcome(0, np.nan, np.nan)])
    assert (score.loss, score.accuracy) == (2.0, 0.75)
    assert (score.loss_without == np.full((2, 3), 4.0)).all()


def test_a_model_that_predicts_no_next_token_is_refused(folders):
    checkpoint = load_checkpoint(find_checkpoint(str(folders("bert"))), device="cpu")
    prepared, _ = prepare_all(checkpoint, [Text(("a cat",))], PassSettings("self"), "error")
    with pytest.raises(AnalysisError, match="predicts no next token, so it copies none"):
        list(answer(checkpoint, COPIED_TOKENS, [Text(("a cat",))], prepared, PassSettings("self")))
