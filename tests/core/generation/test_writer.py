"""Tokens as they are written, beside transformers' own `generate` and eager passes over the whole text."""

import numpy as np
import pytest
import torch
import transformers
from small_checkpoints import CAUSAL_FALLBACK, N_POSITIONS

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError, TextTooLong
from attention_sieve.core.generation.settings import HOTTEST, WritingSettings
from attention_sieve.core.generation.steps import N_TRIED
from attention_sieve.core.generation.writer import Writer, end_ids, prompt_ids, write_on
from attention_sieve.core.passes.outputs import next_tokens
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids

PROMPT = Text(("the dog sat on the red",))
FAMILIES = ("gpt2", "llama", "qwen3", "mistral", "gemma2", "gemma3", "gpt_oss", *CAUSAL_FALLBACK)
ROUNDING = {"float64": 1e-6, "float32": 5e-6}
"""Of attention in passes that add in another order."""
N_WRITTEN = 12
"""More than the window of sliding attention."""


def eager(checkpoint):
    """The same weights, with transformers' own attention."""
    return transformers.AutoModelForCausalLM.from_pretrained(
        checkpoint.files.folder, attn_implementation="eager", dtype=checkpoint.full_model.dtype
    ).eval()


def written(checkpoint, text=PROMPT, pass_settings=None, **settings):
    return list(write_on(checkpoint, text, WritingSettings(**settings), pass_settings))


def ids_of(tokens):
    return [each.token for each in tokens]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_written_is_what_transformers_generates_with_the_rows_and_probabilities_of_its_eager_pass(
    decoder, family
):
    checkpoint, model = decoder(family), eager(decoder(family))
    ids = torch.tensor([prompt_ids(checkpoint, PROMPT, PassSettings())])
    tokens = written(checkpoint, tokens=N_WRITTEN)
    with torch.no_grad():
        generated = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=N_WRITTEN, pad_token_id=0
        )
        whole = model(generated, output_attentions=True)
    n_prompt = ids.shape[1]
    assert ids_of(tokens) == generated[0, n_prompt:].tolist()
    maps = torch.cat(whole.attentions).numpy()
    log_probabilities = whole.logits[0].log_softmax(-1)
    for position, each in enumerate(tokens, start=n_prompt - 1):
        np.testing.assert_allclose(each.rows, maps[:, :, position, : position + 1], atol=ROUNDING[checkpoint.dtype])
        # Normalisations and rotary angles are of float32 in every format.
        assert each.log_probability == pytest.approx(float(log_probabilities[position, each.token]), abs=1e-5)


def test_heads_that_are_off_stay_off_while_the_text_is_written(decoder):
    checkpoint, off = decoder("gpt2"), PassSettings("self", ((0, 0), (0, 1), (0, 2), (1, 1)))
    tokens = written(checkpoint, pass_settings=off, tokens=N_WRITTEN)
    assert ids_of(tokens) != ids_of(written(checkpoint, tokens=N_WRITTEN))
    # Token by token, by passes over the whole text that keep nothing.
    ids = list(prompt_ids(checkpoint, PROMPT, off))
    for each in tokens:
        text = text_of_ids(GivenTokens(tuple(ids)))
        expected = next_tokens(checkpoint, prepare(checkpoint, text, off), off, len(ids) - 1)
        likeliest = int(expected.log_probabilities[1].argmax())
        assert each.token == expected.ids[likeliest]
        assert each.log_probability == pytest.approx(expected.log_probabilities[1, likeliest], abs=1e-6)
        ids.append(each.token)


def test_a_text_that_outgrows_the_length_of_training_is_passed_whole_where_the_angles_of_all_its_tokens_change(decoder):
    n_prompt = len(prompt_ids(decoder("phi3"), PROMPT, PassSettings()))
    angles = {"rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0, 1.0], "long_factor": [1.0, 4.0]}
    trained = max(n_prompt, N_TRIED[1]) + 2
    lengths = {"original_max_position_embeddings": trained, "sliding_window": None}
    checkpoint = decoder("phi3", rope_parameters=angles, head_dim=4, **lengths)
    writer = Writer(PROMPT, PassSettings(), WritingSettings(trained + 4 - n_prompt))
    tokens = writer.write(checkpoint, seconds=100.0)
    assert writer.whole == [trained + 1]
    assert_as_whole_passes_write(checkpoint, writer.ids[:n_prompt], tokens)


@pytest.mark.parametrize("family", ["gpt2", "qwen3"])
def test_a_family_that_keeps_what_it_should_takes_no_whole_pass(decoder, family):
    writer = Writer(PROMPT, PassSettings(), WritingSettings(4))
    writer.write(decoder(family), seconds=100.0)
    assert writer.whole == []


def assert_as_whole_passes_write(checkpoint, prompt, tokens):
    model, ids = eager(checkpoint), list(prompt)
    for each in tokens:
        with torch.no_grad():
            expected = model(torch.tensor([ids]), use_cache=False).logits[0, -1].log_softmax(-1)
        assert each.token == int(expected.argmax())
        assert each.log_probability == pytest.approx(float(expected[each.token]), abs=1e-5)
        ids.append(each.token)


def test_a_text_that_was_stopped_goes_on_as_it_would_have(decoder):
    checkpoint, how = decoder("qwen3"), {"temperature": 1.0, "seed": 5}
    at_once = ids_of(written(checkpoint, tokens=10, **how))
    first = ids_of(written(checkpoint, tokens=4, **how))
    text = text_of_ids(GivenTokens((*prompt_ids(checkpoint, PROMPT, PassSettings()), *first)))
    assert first + ids_of(written(checkpoint, text, tokens=6, **how)) == at_once


def test_tokens_are_drawn_with_the_probabilities_of_the_model_at_this_temperature(decoder):
    checkpoint, temperature, n_drawn = decoder("gpt2", n_layer=1), 0.5, 150
    settings = PassSettings()
    text = text_of_ids(GivenTokens((3, 7)))
    logits = eager(checkpoint)(torch.tensor([[3, 7]])).logits[0, -1]
    shares = (logits / temperature).softmax(-1).detach().numpy()
    drawn = np.zeros(len(shares))
    for seed in range(n_drawn):
        (token,) = Writer(text, settings, WritingSettings(1, temperature, seed)).write(checkpoint)
        drawn[token.token] += 1
    likely = shares * n_drawn >= 5
    expected = np.append(shares[likely], shares[~likely].sum()) * n_drawn
    observed = np.append(drawn[likely], drawn[~likely].sum())
    # Pearson's statistic exceeds its mean by four standard deviations once in thousands of runs; the seeds are fixed.
    degrees = len(expected) - 1
    assert ((observed - expected) ** 2 / expected).sum() < degrees + 4 * np.sqrt(2 * degrees)


def test_writing_ends_with_a_token_that_ends_a_text(decoder):
    first = ids_of(written(decoder("gpt2"), tokens=6))
    place = next(place for place, token in enumerate(first) if token not in first[:place] and place)
    checkpoint = decoder("gpt2", eos_token_id=[0, first[place]])
    assert end_ids(checkpoint) == {0, first[place]}
    writer = Writer(PROMPT, PassSettings(), WritingSettings(6))
    assert ids_of(writer.write(checkpoint, seconds=100.0)) == first[: place + 1]
    assert writer.end == "ended"
    assert writer.write(checkpoint) == []


def test_writing_ends_at_the_maximum_length(decoder):
    checkpoint = decoder("gpt2")
    n_prompt = len(prompt_ids(checkpoint, PROMPT, PassSettings()))
    writer = Writer(PROMPT, PassSettings(), WritingSettings(100))
    assert len(writer.write(checkpoint, seconds=100.0)) == N_POSITIONS - n_prompt
    assert writer.end == "full"
    full = text_of_ids(GivenTokens((5,) * N_POSITIONS))
    assert written(checkpoint, full) == []
    with pytest.raises(TextTooLong):
        written(checkpoint, text_of_ids(GivenTokens((5,) * (N_POSITIONS + 1))))


def test_a_writer_writes_at_least_one_token_in_no_time_and_as_many_as_were_asked_for(decoder):
    checkpoint, writer = decoder("gpt2"), Writer(PROMPT, PassSettings(), WritingSettings(3))
    assert [len(writer.write(checkpoint)) for _ in range(4)] == [1, 1, 1, 0]
    assert writer.end == "enough"


def test_special_tokens_that_end_a_prompt_are_left_out_but_those_that_begin_it_stay(decoder):
    checkpoint = decoder("opt")
    ids = checkpoint.tokenizer("the dog")["input_ids"]
    assert prompt_ids(checkpoint, Text(("the dog",)), PassSettings()) == tuple(ids)
    given = (ids[0], 9, ids[0])
    assert prompt_ids(checkpoint, text_of_ids(GivenTokens(given)), PassSettings()) == given


def test_an_encoder_cannot_write(bundled):
    with pytest.raises(AnalysisError, match="cannot write a text on"):
        written(bundled)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tokens": 0}, "tokens is 0"),
        ({"temperature": float("nan")}, f"0 to {HOTTEST:g}"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_out_of_range_are_refused(wrong, message):
    with pytest.raises(AnalysisError, match=message):
        WritingSettings(**wrong)
