"""Planted models of each host: heads look where it is stated, and the task fails without those that are stated."""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from benchmarks.planted import check, measured, noise, statements
from benchmarks.planted.circuits import circuit
from benchmarks.planted.models import Spec, drawn_task, made, save, spec_named, specs
from benchmarks.planted.truth import Truth
from benchmarks.planted.vocabulary import WORDS, first_token, tokenizer, vocabulary

CHOSEN = (
    Spec("gpt2", "induction", "suppressed", "none", 1),
    Spec("gpt2", "pointer induction", "backup", "gaussian 1", 2),
    Spec("bert", "duplicate", "two copies", "none", 3),
    Spec("bert", "own segment", "single", "gaussian 2", 4),
    Spec("llama", "induction", "split", "none", 5),
    Spec("llama", "ruler", "cancelling", "gaussian 1", 6),
)


@cache
def model_and_truth(spec):
    return made(spec)


@pytest.mark.parametrize("spec", CHOSEN, ids=lambda spec: spec.name)
class TestEachHost:
    def test_what_is_stated_is_what_is_measured(self, spec):
        _, truth = model_and_truth(spec)
        assert statements.faults(truth) == []
        assert truth.needed + truth.redundant_sets != ()
        assert [head.place for head in truth.heads if head.needed] == list(truth.needed)

    def test_zero_weights_take_away_what_hooks_take_away(self, spec):
        model, truth = model_and_truth(spec)
        layer, head = max((rise, place) for place, rise in rises(truth))[1]
        projection = measured.output_projections(model)[layer]
        size = model.config.hidden_size // model.config.num_attention_heads
        size = getattr(model.config, "head_dim", None) or size
        kept = projection.weight.detach().clone()
        with torch.no_grad():
            of_head = slice(head * size, (head + 1) * size)
            (projection.weight if spec.host == "gpt2" else projection.weight.T)[of_head] = 0
            risen = (measured.loss(model, truth.task) - truth.effects.loss).item()
            projection.weight.copy_(kept)
        assert risen == pytest.approx(truth.effects.single[layer][head], abs=1e-4)

    def test_a_saved_model_answers_the_same_and_is_found_right(self, spec, tmp_path):
        model, truth = model_and_truth(spec)
        save(model, truth, tmp_path)
        given = measured.inputs(truth.task)
        with torch.no_grad():
            again = check.opened(tmp_path)(**given).logits
            torch.testing.assert_close(again, model(**given).logits, atol=1e-4, rtol=1e-4)
        assert Truth.read(tmp_path) == truth
        assert check.faults_of(tmp_path) == []


def rises(truth):
    return [((layer, head), rise) for layer, row in enumerate(truth.effects.single) for head, rise in enumerate(row)]


def test_a_head_that_is_stated_wrongly_is_found(tmp_path, monkeypatch, capsys):
    model, truth = model_and_truth(CHOSEN[0])
    save(model, truth, tmp_path / "model")
    head = next(head for head in truth.heads if head.looks_at == "previous")
    wrong = replace(head, looks_at="sink", offset=0)
    others = tuple(wrong if other is head else other for other in truth.heads)
    replace(truth, heads=others, needed=truth.needed[1:], harmful=()).write(tmp_path / "model")
    monkeypatch.setattr("sys.argv", ["check", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        check.main()
    printed = capsys.readouterr().out
    assert ended.value.code == 1
    assert f"{head.place} gives " in printed
    assert "needed are " in printed
    assert "harmful are ()" in printed


def test_a_set_that_is_not_redundant_is_found():
    _, truth = model_and_truth(CHOSEN[4])
    halves = truth.effects.sets[0].heads
    assert statements.faults(replace(truth, redundant_sets=(halves,))) == [f"{halves} are not redundant"]


def test_a_backup_looks_at_the_first_token_while_its_main_head_acts():
    model, truth = model_and_truth(CHOSEN[1])
    ((layer, head),) = (pair.backup for pair in truth.backups)
    scored = [list(row) for row in truth.task.scored]
    given = measured.attention(model, truth.task)[layer][:, head]
    assert all((given[row, places, 0] > 0.99).all() for row, places in enumerate(scored))
    stated = next(each for each in truth.heads if each.place == (layer, head))
    assert stated.looks_at == "backup induction"
    assert stated.attention > 0.99


def test_there_are_over_a_hundred_models_and_a_quarter_is_trained():
    noises = Counter(spec.noise for spec in specs())
    assert len({spec.name for spec in specs()}) == len(specs()) > 100
    assert noises["trained"] >= len(specs()) // 4
    assert all(noises[f"gaussian {level}"] >= 8 for level in range(1, 6))
    assert {spec.host for spec in specs() if spec.noise == "trained"} == {"gpt2", "bert", "llama"}


def test_a_model_is_found_by_its_name():
    spec = specs()[-1]
    assert spec_named(spec.name) == spec
    with pytest.raises(ValueError, match="No planted model has the name 'x'"):
        spec_named("x")


@pytest.mark.parametrize("host", ["gpt2", "bert", "llama"])
def test_a_saved_tokenizer_reads_all_words_and_adds_the_special_tokens(host, tmp_path):
    tokenizer(host).save_pretrained(tmp_path)
    saved = AutoTokenizer.from_pretrained(tmp_path)
    ids = saved(" ".join(WORDS))["input_ids"]
    first, *_ = words = saved.convert_ids_to_tokens(ids)
    assert first == first_token(host)
    assert [word for word in words if word in WORDS] == list(WORDS)
    assert len(saved) == len(vocabulary(host))
    if host == "bert":
        pair = saved(*WORDS[:2])
        assert pair["token_type_ids"] == [0, 0, 0, 1, 1]
        assert saved.convert_ids_to_tokens(pair["input_ids"])[2::2] == ["[SEP]", "[SEP]"]


def test_noise_and_training_leave_no_weight_as_it_was_and_the_task_solved():
    spec = Spec("gpt2", "previous", "single", "none", 7)
    heads = circuit(spec.circuit, spec.host, np.random.default_rng(0))
    (model, truth), (before, _) = made(spec), made(spec)
    noise.add_noise(model, noise.BEFORE_TRAINING, seed=0)
    random = np.random.default_rng(1)
    noise.train(model, lambda: drawn_task(spec.host, heads, random, 1))
    for (name, value), was in zip(model.named_parameters(), before.parameters()):
        assert (value != was).float().mean() > 0.99, name
    assert measured.loss(model, truth.task) < 0.01
