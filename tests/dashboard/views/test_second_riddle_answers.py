"""The answers of the second riddle, measured anew where the downloaded decoder is."""

import itertools

import pytest
import torch
from own_hooks import without

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.sample_decoder import SAMPLE_DECODER, is_made
from attention_sieve.core.importance.fewest_heads import N_ADDED
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.outputs import next_tokens, said_without
from attention_sieve.core.passes.texts import prepare
from attention_sieve.dashboard.views.second_riddle.verdict import PAIRS, RIDDLE, WORD


@pytest.mark.skipif(not is_made(), reason="the small decoder is not on this machine")
def test_the_answers_hold_on_the_downloaded_decoder():
    checkpoint = load_checkpoint(find_checkpoint(SAMPLE_DECODER), device="cpu")
    text = prepare(checkpoint, RIDDLE, PassSettings())
    first = next_tokens(checkpoint, text, PassSettings())
    token = first.ids[0]
    assert first.names[0].strip() == WORD
    layers = checkpoint.attentions["self"]
    alone = [((layer, head),) for layer in range(layers.n_layers) for head in range(layers.n_heads)]
    said = said_without(checkpoint, text, "self", alone, token)
    assert all(each.token == token for each in said), "no single head is enough"
    matter = [alone[place][0] for place in sorted(range(len(alone)), key=lambda place: said[place].lead)[:N_ADDED]]
    pairs = [tuple(sorted(pair)) for pair in itertools.combinations(matter, 2)]
    changing = [
        pair for pair, each in zip(pairs, said_without(checkpoint, text, "self", pairs, token)) if each.lead < 0
    ]
    assert sorted(changing) == sorted(PAIRS)
    inputs = model_inputs(checkpoint, [text])
    for heads in ((), *PAIRS, ((1, 5),), ((29, 1),)):
        found = next_tokens(checkpoint, text, PassSettings(off=heads))
        expected = without(checkpoint.files.folder, type(checkpoint.full_model), inputs, heads)[-1].softmax(-1)
        ours = torch.from_numpy(found.log_probabilities[1]).exp()
        torch.testing.assert_close(ours, expected[list(found.ids)], rtol=0, atol=2e-5)
