"""A compiled program, written by hand, is carried over to plain models and compared with a direct evaluation of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from benchmarks.planted.measured import output_projections
from benchmarks.planted.rasp.carrying import carried, compared, selected_share, tokenizer
from benchmarks.planted.rasp.compiled import (
    FIRST,
    NO_TARGET,
    PADDING,
    CompiledLayer,
    CompiledProgram,
    Examples,
    ProgramHead,
)
from benchmarks.planted.rasp.truths import truth_of
from benchmarks.planted.truth import Truth

LONGEST, LETTERS = 5, ("a", "b", "c")
VOCABULARY = (*LETTERS, FIRST, PADDING)
N_TOKENS, N_LETTERS = len(VOCABULARY), len(LETTERS)
# The stream: tokens, positions without that of the first token, a 1, what the head carried, what is put out.
POSITION, ONE, CARRIED = N_TOKENS, N_TOKENS + LONGEST, N_TOKENS + LONGEST + 1
OUTPUT = CARRIED + N_LETTERS
STREAM = OUTPUT + 2
SIZE = LONGEST + 2


def compiled(offset: int) -> CompiledProgram:
    """Whether a token equals the one at a distance, in the way of the compiler: one head, and a hidden unit a pair."""
    tokens, positions = np.zeros((N_TOKENS, STREAM)), np.zeros((LONGEST + 1, STREAM))
    tokens[:, :N_TOKENS], tokens[:, ONE] = np.eye(N_TOKENS), 1
    positions[1:, POSITION:ONE] = np.eye(LONGEST)
    query, key, value = (np.zeros((STREAM, 2, SIZE)) for _ in range(3))
    output = np.zeros((2, SIZE, STREAM))
    index = np.arange(max(offset, 0), LONGEST + min(offset, 0))
    query[POSITION + index, 0, index - offset] = 100 * SIZE**0.5
    query[ONE, 0, SIZE - 1] = 50 * SIZE**0.5
    key[POSITION + np.arange(LONGEST), 0, np.arange(LONGEST)] = 1
    key[VOCABULARY.index(FIRST), 0, SIZE - 1] = 1
    letters = np.arange(N_LETTERS)
    value[letters, 0, letters] = output[0, letters, CARRIED + letters] = 1
    inner, outer = np.zeros((STREAM, N_LETTERS**2)), np.zeros((N_LETTERS**2, STREAM))
    for unit, (own, other) in enumerate(np.ndindex(N_LETTERS, N_LETTERS)):
        inner[[own, CARRIED + other], unit], inner[ONE, unit] = 1, -1
        outer[unit, OUTPUT + int(own == other)] = 1
    readout = np.zeros((STREAM, 2))
    readout[OUTPUT : OUTPUT + 2] = np.eye(2)
    layer = CompiledLayer(query=query, key=key, value=value, output=output, inner=inner, outer=outer)
    name = "previous" if offset > 0 else "next"
    program = CompiledProgram(
        name="equal", seed=3, cases=(), sentence="", causal=offset > 0, vocabulary=VOCABULARY, values=("no", "yes"),
        heads=(ProgramHead("value", name, offset, "token", f"the {name} token", counts=False, layer=0, head=0),),
        tokens=tokens, positions=positions, readout=readout, layers=(layer,), examples=(),
    )  # fmt: skip
    return replace(program, examples=(examples(program, offset),))


def examples(program: CompiledProgram, offset: int) -> Examples:
    letters = np.random.default_rng(2).integers(N_LETTERS, size=(7, LONGEST))
    asked = np.arange(LONGEST) - offset
    is_there = (asked >= 0) & (asked < LONGEST)
    equal = letters == letters[:, asked % LONGEST]
    targets = np.full((7, LONGEST + 1), NO_TARGET)
    targets[:, 1:] = np.where(is_there, equal, NO_TARGET)
    tokens = np.concatenate([np.full((7, 1), VOCABULARY.index(FIRST)), letters], axis=1)
    selected = np.broadcast_to(asked[:, None] == np.arange(LONGEST), (7, 1, LONGEST, LONGEST))
    outputs = np.array([evaluated(program, text) for text in tokens])
    return Examples(tokens=tokens, outputs=outputs, targets=targets, selected=selected)


def evaluated(program: CompiledProgram, text: np.ndarray) -> np.ndarray:
    """What the compiled weights write for a text, without torch."""
    stream = program.tokens[text] + program.positions[: len(text)]
    seen = np.tril(np.ones((len(text), len(text)))) if program.causal else np.ones((len(text), len(text)))
    for layer in program.layers:
        written = np.zeros_like(stream)
        for head in range(layer.query.shape[1]):
            scores = (stream @ layer.query[:, head]) @ (stream @ layer.key[:, head]).T / layer.query.shape[2] ** 0.5
            weights = np.where(seen, np.exp(scores - scores.max(axis=1, keepdims=True)), 0)
            attention = weights / weights.sum(axis=1, keepdims=True)
            written += attention @ (stream @ layer.value[:, head]) @ layer.output[head]
        stream = stream + written
        stream = stream + np.maximum(stream @ layer.inner, 0) @ layer.outer
    return stream @ program.readout


@pytest.fixture(params=[1, -1, 2], ids=["previous", "next", "two back"])
def model(request):
    return carried(compiled(request.param))


def test_a_plain_model_writes_what_the_compiled_weights_write(model):
    comparison = compared(model)
    assert comparison.outputs < 1e-5
    assert comparison.attention < 1e-5
    assert comparison.right == 1


def test_changed_weights_are_noticed(model):
    with torch.no_grad():
        output_projections(model.model)[0].weight.mul_(0.9)
    assert compared(model).outputs > 0.05


def test_only_the_head_of_the_program_is_needed(model):
    truth = truth_of(model)
    place = model.at.places[0][0]
    assert truth.needed == ((0, place),)
    without, others = truth.effects.single[0][place], np.delete(truth.effects.single[0], place)
    # Without the head no value is put out, and all words of the host are equally likely.
    assert truth.effects.loss + without == pytest.approx(np.log(len(model.at.words)), abs=1e-4)
    assert np.abs(others).max() < 1e-9
    assert [head.writes for head in truth.heads if not head.needed] == ["nothing"] * 3


def test_a_head_without_effect_is_refused(model):
    idle = replace(model.program.heads[0], head=1)
    with pytest.raises(ValueError, match=r"needed are .*, and damage is measured without"):
        truth_of(replace(model, program=replace(model.program, heads=(idle,))))


def test_a_program_is_read_as_it_was_written(model, tmp_path):
    model.program.write(tmp_path)
    again = CompiledProgram.read(tmp_path)
    assert again.heads == model.program.heads
    assert again.values == model.program.values
    np.testing.assert_array_equal(again.layers[0].query, model.program.layers[0].query)
    np.testing.assert_array_equal(again.examples[0].selected, model.program.examples[0].selected)


def test_a_saved_model_and_its_truth_open_without_code_of_their_own(model, tmp_path):
    model.model.save_pretrained(tmp_path)
    tokenizer(model).save_pretrained(tmp_path)
    truth_of(model).write(tmp_path)
    kind = AutoModelForCausalLM if model.program.causal else AutoModelForMaskedLM
    opened, words, truth = kind.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path), Truth.read(tmp_path)
    ids = torch.tensor(truth.task.tokens[:1])
    assert words(" ".join(words.convert_ids_to_tokens(ids[0])[1:]))["input_ids"] == ids[0].tolist()
    with torch.no_grad():
        best = opened(ids).logits[0].argmax(-1)
    assert best[list(truth.task.scored[0])].tolist() == list(truth.task.targets[0])


def test_what_counts_attends_to_the_first_token_beside_what_it_selects():
    program = compiled(1)
    head, of_program = program.heads[0], program.examples[0]
    alone = selected_share(of_program, 0, head)[0]
    np.testing.assert_array_equal(alone[:3], np.eye(LONGEST + 1)[[0, 0, 1]])
    beside = selected_share(of_program, 0, replace(head, counts=True))[0]
    np.testing.assert_array_equal(beside[2], [0.5, 0.5, 0, 0, 0, 0])
