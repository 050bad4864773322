import json
import subprocess
import sys
import time
from threading import Event

import numpy as np
import pandas as pd
import pytest
import torch
from command_help import columns_in_help
from safetensors.torch import load_file
from scipy.integrate import quad
from small_checkpoints import config, wordpiece
from transformers import AutoModelForSequenceClassification

from attention_sieve.__main__ import main
from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import read_training_data
from attention_sieve.core.finetuning.journal import open_run, plan_of
from attention_sieve.core.importance.gates.hard_concrete import (
    densities,
    gates_of,
    p_one,
    p_zero,
    penalty,
    sampled,
    without_noise,
)
from attention_sieve.core.importance.gates.settings import HISTORY, GateSettings, append_gates, read_history
from attention_sieve.core.importance.gates.training import train_gates, trained_gates
from attention_sieve.core.running import PROGRESS, ask_to_stop, check_ended, read_progress, saved_checkpoints

NEEDED = (0, 1)
WORDS = ["dog", "mat", "birds", "black", "red", "apples", "coffee", "house"]


def sentences(n_texts=48):
    chance = np.random.default_rng(0)
    return [" ".join([*chance.choice(WORDS, 3), *(["cat"] if number % 2 else [])]) for number in range(n_texts)]


def labelled(names=("without", "with")):
    rows = "".join(f"{text},{names['cat' in text]}\n" for text in sentences())
    return read_training_data("cats.csv", f"text,cats\n{rows}".encode(), ("text",), "cats")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A BERT that finds "cat", whose text vector hears of other words through head 1 of layer 0 alone."""
    folder = tmp_path_factory.mktemp("classifier") / "bert"
    tokenizer = wordpiece()
    torch.manual_seed(3)
    names = {"id2label": {0: "without", 1: "with"}, "label2id": {"without": 0, "with": 1}}
    dropless = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = AutoModelForSequenceClassification.from_config(config("bert", len(tokenizer), **names, **dropless))
    outputs = [layer.attention.output.dense.weight for layer in model.bert.encoder.layer]
    with torch.no_grad():
        outputs[1].zero_()
        outputs[0][:, :4] = outputs[0][:, 8:] = 0
    for weights in outputs:
        weights.requires_grad_(False)
    batch = tokenizer(sentences(), return_tensors="pt", padding=True)
    wanted = torch.tensor([int("cat" in text) for text in sentences()])
    optimizer = torch.optim.Adam([weights for weights in model.parameters() if weights.requires_grad], lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        loss = model(**batch, labels=wanted).loss
        loss.backward()
        optimizer.step()
    assert loss < 0.05
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def settings_of(**changed):
    usual = {"epochs": 6.0, "batch_size": 6, "penalty": 0.1, "gate_rate": 0.4, "held_out": 0.25, "seed": 1}
    return GateSettings(**(usual | changed))


def train(checkpoint, folder, settings, resume=False, on_step=None):
    files, data = find_checkpoint(str(checkpoint)), labelled()
    with open_run(folder, plan_of(files, data, None, settings), resume=resume) as journal:
        return train_gates(files, data, settings, journal, device="cpu", on_step=on_step)


@pytest.fixture(scope="module")
def finished(classifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gates") / "run"
    assert train(classifier, folder, settings_of()).state == "finished"
    return folder


# The distribution


@pytest.mark.parametrize("log_alpha", [-3.0, 0.0, 0.4, 2.5])
def test_probabilities_and_density_are_those_of_the_samples(log_alpha):
    parameter = torch.tensor(log_alpha, dtype=torch.float64)
    noise = torch.rand(400_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    gates = sampled(parameter.expand(len(noise)), noise)
    assert float((gates == 0).double().mean()) == pytest.approx(float(p_zero(parameter)), abs=3e-3)
    assert float((gates == 1).double().mean()) == pytest.approx(float(p_one(parameter)), abs=3e-3)

    def at(gate):
        return densities(np.array([log_alpha]), np.array([gate])).item()

    assert quad(at, 0, 1)[0] == pytest.approx(1 - float(p_zero(parameter) + p_one(parameter)), abs=1e-9)
    middle = float(((gates > 0.3) & (gates <= 0.6)).double().mean())
    assert quad(at, 0.3, 0.6)[0] == pytest.approx(middle, abs=3e-3)


def test_probability_penalty_and_stretch_by_hand():
    zero = torch.tensor(0.0, dtype=torch.float64)
    assert float(p_zero(zero)) == pytest.approx(1 / (1 + 11**0.33))
    assert float(p_one(zero)) == pytest.approx(1 / (1 + 11**0.33))
    assert float(without_noise(zero)) == pytest.approx(0.5)
    assert float(without_noise(torch.tensor(-3.0))) == 0
    assert float(without_noise(torch.tensor(3.0))) == 1
    pair = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    by_hand = sum(1 / (1 + np.exp(-(value - 0.33 * np.log(0.1 / 1.1)))) for value in (1.0, -2.0))
    assert float(penalty(pair)) == pytest.approx(by_hand)


# Training


def test_a_needed_head_stays_open_and_useless_ones_close(finished):
    gates = trained_gates(saved_checkpoints(finished)[-1])
    useless = np.ones((2, 3), bool)
    useless[NEEDED] = False
    assert gates.p_zero[NEEDED] < 0.2
    assert (gates.p_zero[useless] > 0.7).all()
    assert gates.n_open == 1
    assert read_progress(finished).held_out[-1].accuracy == 1


def test_a_larger_penalty_closes_what_a_smaller_one_leaves_open(classifier, finished, tmp_path):
    assert train(classifier, tmp_path / "run", settings_of(penalty=20.0)).state == "finished"
    open_heads = [trained_gates(saved_checkpoints(run)[-1]).n_open for run in (finished, tmp_path / "run")]
    assert open_heads == [1, 0]


def test_weights_are_trained_where_asked_for_and_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(
    classifier, finished, tmp_path
):
    settings = settings_of(epochs=1.0, with_weights=True)
    assert train(classifier, tmp_path / "whole", settings).state == "finished"
    before = load_file(classifier / "model.safetensors")
    frozen, trained = (
        load_file(saved_checkpoints(run)[-1] / "model.safetensors") for run in (finished, tmp_path / "whole")
    )
    assert all(torch.equal(frozen[name], before[name]) for name in before)
    assert not torch.equal(trained["classifier.weight"], before["classifier.weight"])
    stopped = tmp_path / "stopped"
    stop = train(classifier, stopped, settings, on_step=lambda step, of: ask_to_stop(stopped) if step == 2 else None)
    assert (stop.state, stop.step) == ("stopped", 3)
    assert train(classifier, stopped, settings, resume=True).state == "finished"
    for name in ("model.safetensors", f"{saved_checkpoints(stopped)[-1].name}/model.safetensors"):
        whole, resumed = (load_file(tmp_path / run / name) for run in ("whole", "stopped"))
        torch.testing.assert_close(whole, resumed)
    whole, resumed = (read_history(tmp_path / run) for run in ("whole", "stopped"))
    assert whole.steps == resumed.steps == tuple(range(7)), "the steps done twice count once"
    np.testing.assert_allclose(whole.log_alpha, resumed.log_alpha, rtol=1e-5, atol=1e-6)


def test_the_finished_checkpoint_has_the_gates_in_its_weights(classifier, finished):
    gates = torch.from_numpy(trained_gates(saved_checkpoints(finished)[-1]).gate)
    both = (find_checkpoint(str(folder)) for folder in (classifier, finished))
    original, gated = (load_checkpoint(files, device="cpu", dtype="float64") for files in both)
    inputs = original.tokenizer(["a black cat", "red apples on the mat"], return_tensors="pt", padding=True)
    expected = observe(original.model, inputs, Pass(gates=gates))[0]
    torch.testing.assert_close(observe(gated.model, inputs, Pass())[0], expected, atol=1e-6, rtol=0)
    assert not any("head_gates" in name for name in load_file(finished / "model.safetensors"))


def test_the_history_begins_where_all_gates_do_and_ends_with_the_trained_ones(finished):
    history = read_history(finished, removed=[(1, 2)])
    assert history.steps[0] == 0
    assert history.steps[-1] == read_progress(finished).step
    assert (history.log_alpha[0][~np.isnan(history.log_alpha[0])] == GateSettings.start).all()
    assert np.isnan(history.log_alpha[:, 1, 2]).all()
    last, saved = gates_of(history.log_alpha[-1]), trained_gates(saved_checkpoints(finished)[-1], [(1, 2)])
    for name in ("log_alpha", "p_zero", "p_one", "gate"):
        np.testing.assert_array_equal(getattr(last, name), getattr(saved, name))


def test_a_history_drops_what_is_done_again_what_broke_off_and_what_is_of_other_heads(tmp_path):
    assert read_history(tmp_path) is None
    for step, value in ((0, 0.0), (1, 2.0), (2, 3.0)):
        append_gates(tmp_path, step, np.full((2, 3), value))
    with (tmp_path / HISTORY).open("a") as file:
        file.write('{"step": 3, "log_al')
    append_gates(tmp_path, 1, np.ones((2, 3)))
    with (tmp_path / HISTORY).open("a") as file:
        for line in ('{"step": 2, "log_alpha": [[1]]}', '{"step": 2, "log_alpha": [[]]}', "[]", "3", '"a"'):
            file.write(line + "\n")
        file.write('{"step": 3, "log_alpha": [[1, 2, 3], [4, 5, Infinity]]}\n{"step": -1, "log_alpha": [[1]]}\n')
        file.write("[" * 5_000 + "\n")
    history = read_history(tmp_path)
    assert history.steps == (0, 1)
    assert history.log_alpha[:, 1, 2].tolist() == [0.0, 1.0]


def test_gates_of_another_checkpoint_are_no_history(tmp_path):
    append_gates(tmp_path, 0, np.zeros((2, 3)))
    assert read_history(tmp_path, removed=[(1, 2)]).steps == (0,)
    assert read_history(tmp_path, removed=[(2, 0)]) is None
    assert read_history(tmp_path, removed=[(0, 3)]) is None


def test_a_history_of_many_steps_is_read_in_linear_time(tmp_path):
    lines = (json.dumps({"step": step, "log_alpha": [[0.5, 1.0]]}) for step in range(20_000))
    (tmp_path / HISTORY).write_text("\n".join(lines) + "\n")
    began = time.process_time()
    assert len(read_history(tmp_path).steps) == 20_000
    assert time.process_time() - began < 5


# What is refused, and the command


def test_a_checkpoint_without_the_task_is_refused(folders, classifier, tmp_path):
    with pytest.raises(AnalysisError, match="does not classify texts"):
        train(folders("bert"), tmp_path / "a", settings_of())
    files, other = find_checkpoint(str(classifier)), labelled(("good", "bad"))
    with (
        open_run(tmp_path / "b", plan_of(files, other, None, settings_of()), resume=False) as journal,
        pytest.raises(AnalysisError, match=r'label "bad", but .* knows 2 classes: "without", "with"'),
    ):
        train_gates(files, other, settings_of(), journal, device="cpu")


def test_settings_out_of_range_are_refused():
    for wrong in ({"penalty": -1.0}, {"gate_rate": 0.0}, {"start": 11.0}):
        with pytest.raises(AnalysisError, match="Give a number"):
            settings_of(**wrong)


def test_the_command_writes_a_row_per_head_and_penalty(classifier, tmp_path, capsys):
    data = tmp_path / "cats.csv"
    data.write_text("text,cats\n" + "".join(f"{t},{'with' if 'cat' in t else 'without'}\n" for t in sentences()))
    fixed = ["--checkpoint", str(classifier), "--data", str(data), "--text-columns", "text", "--label-column", "cats"]
    short = ["--epochs", "0.5", "--batch-size", "12", "--held-out", "0.25", "--device", "cpu"]
    command = ["gates", *fixed, *short, "--penalty", "0.1,0.2", "--output", str(tmp_path / "runs")]
    assert main(command) == 0
    assert "Penalty 0.1: 6 of 6 heads stay open, accuracy 1.000 on held-out texts." in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "runs" / "gates.csv")
    assert list(table) == ["penalty", "layer", "head", "log_alpha", "p_zero", "p_one", "gate"]
    assert list(table) == columns_in_help("gates", "Columns of gates.csv")
    assert len(table) == 2 * 6
    assert json.loads((tmp_path / "runs" / "penalty-0.1" / "training.json").read_text())["settings"]["penalty"] == 0.1
    assert main(command) == 2
    assert "finished" in capsys.readouterr().err
    written = (tmp_path / "runs" / "gates.csv").read_bytes()
    (tmp_path / "runs" / PROGRESS).unlink()  # as in folders of earlier versions
    assert main([*command, "--resume"]) == 0, "finished runs of a sweep are taken as they are"
    found = read_progress(tmp_path / "runs")
    assert (found.state, found.step, found.steps) == ("finished", 2, 2)
    assert (tmp_path / "runs" / "gates.csv").read_bytes() == written


def test_a_sweep_is_one_run_that_is_asked_to_stop_in_its_own_folder_and_goes_on(classifier, tmp_path):
    data, folder = tmp_path / "cats.csv", tmp_path / "runs"
    data.write_text("text,cats\n" + "".join(f"{t},{'with' if 'cat' in t else 'without'}\n" for t in sentences()))
    options = {"checkpoint": classifier, "data": data, "text-columns": "text", "label-column": "cats"}
    options |= {"epochs": 900, "batch-size": 4, "penalty": "0.1,0.2", "device": "cpu", "output": folder}
    command = [
        sys.executable,
        "-m",
        "attention_sieve",
        "gates",
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    for more in ([], ["--resume"]):
        steps = 0 if (before := read_progress(folder / "penalty-0.1")) is None else before.step
        with subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            while (now := read_progress(folder / "penalty-0.1")) is None or now.state != "running" or now.step <= steps:
                assert program.poll() is None, program.stderr.read()
                Event().wait(0.02)
            assert (read_progress(folder).state, read_progress(folder).piece) == ("running", "penalty 0.1")
            with pytest.raises(AnalysisError, match="is in progress"):
                check_ended(folder)
            ask_to_stop(folder)
            said = program.communicate()
        assert (program.returncode, read_progress(folder).state) == (0, "stopped")
        assert "To continue, add --resume" in said[0]
        assert "Stopped after 0 of 2." in said[1]
        stopped = read_progress(folder / "penalty-0.1")
        assert stopped.state == "stopped"
        assert stopped.saved[-1] == stopped.step > steps
