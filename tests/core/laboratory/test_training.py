"""Short runs of the laboratory: what they leave behind. `benchmarks/findings/laboratory.py` trains whole ones."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from attention_sieve.__main__ import main
from attention_sieve.core.checkpoints.examples import SAMPLE_TRAINING
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.saved_runs import list_runs
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.journal import open_run
from attention_sieve.core.laboratory import command
from attention_sieve.core.laboratory.sequences import VOCABULARY, is_copied
from attention_sieve.core.laboratory.settings import LaboratoryPlan, LaboratorySettings
from attention_sieve.core.laboratory.training import made_tokenizer, train
from attention_sieve.core.probe_texts.make import ProbeTextSettings, fitting_block, probe_texts
from attention_sieve.core.running import ask_to_stop, read_progress
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import tokenize

SHORT = LaboratorySettings(steps=4, save_steps=2, seed=3)


def trained(folder, settings=SHORT, *, resume=False, on_step=None):
    with open_run(folder, LaboratoryPlan(settings), resume=resume) as journal:
        return train(settings, journal, on_step)


def weights(folder):
    return load_file(folder / "model.safetensors")


def assert_same(a, b):
    torch.testing.assert_close(a, b)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("laboratory") / "run"
    assert trained(folder).state == "finished"
    return folder


def test_typed_syllables_are_read_as_the_sequences_of_the_training():
    tokens = tokenize(Text(("ba Zy qwerty",)), made_tokenizer(), 64)
    assert tokens.ids.tolist() == [0, 2, len(VOCABULARY) - 1, 1]
    assert tokens.spans[1:].tolist() == [[0, 2], [3, 5], [6, 12]]


def test_every_saved_step_is_a_checkpoint_from_the_untrained_one_on(finished):
    progress = read_progress(finished)
    assert (progress.saved, progress.step, progress.checkpoint) == ((0, 2, 4), 4, "")
    assert [measured.step for measured in progress.held_out] == [0, 2, 4]
    for name in ("checkpoint-0", "checkpoint-2", "."):
        loaded = load_checkpoint(find_checkpoint(str(finished / name)), device="cpu")
        attention = loaded.attentions["self"]
        assert (attention.n_layers, attention.n_heads, loaded.head, loaded.max_tokens) == (2, 4, "next token", 64)
    assert_same(weights(finished), weights(finished / "checkpoint-4"))
    untrained = progress.held_out[0]
    assert untrained.loss == pytest.approx(np.log(128), abs=0.1)
    assert untrained.accuracy < 0.05
    assert progress.held_out[-1].loss < untrained.loss - 0.02


def test_another_seed_gives_other_weights(finished, tmp_path):
    trained(tmp_path / "other", replace(SHORT, seed=4))
    assert any((values != weights(finished)[name]).any() for name, values in weights(tmp_path / "other").items())


def test_a_stopped_run_goes_on_to_the_same_weights(finished, tmp_path):
    folder = tmp_path / "run"
    stopped = trained(folder, on_step=lambda step, steps: ask_to_stop(folder) if step == 2 else None)
    assert (stopped.state, stopped.saved) == ("stopped", (0, 2, 3))
    assert trained(folder, resume=True).state == "finished"
    assert_same(weights(finished), weights(folder))


def test_a_run_is_not_continued_with_other_settings(tmp_path):
    folder = tmp_path / "run"
    trained(folder, on_step=lambda step, steps: ask_to_stop(folder))
    with pytest.raises(AnalysisError, match="began with periods drawn and cannot continue with fixed"):
        trained(folder, replace(SHORT, periods="fixed"), resume=True)


def test_repeats_with_drawn_gaps_fit_the_model():
    tokenizer = made_tokenizer()
    block = fitting_block(tokenizer)
    assert block == 9
    for text in probe_texts(tokenizer, ProbeTextSettings(number=20, block=block)):
        assert len(text.given.ids) <= 64
        assert is_copied(text.given.ids).sum() == 3 * (block - 1)


def test_the_command_trains_and_says_what_was_learnt(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    folder = tmp_path / "checkpoints" / "twin"
    line = ["laboratory", "--output", str(folder), "--periods", "fixed", "--steps", "3", "--save-steps", "2"]
    assert main(line) == 0
    said = capsys.readouterr().out
    assert said.startswith("Finished after 3 steps: ")
    assert str(folder) in said
    assert json.loads((folder / "training.json").read_text())["settings"]["periods"] == "fixed"
    assert [run.checkpoints for run in list_runs()] == [
        ("twin/checkpoint-0", "twin/checkpoint-2", "twin/checkpoint-3", "twin")
    ]
    assert main(line) == 2
    assert "finished with step 3. Choose another folder." in capsys.readouterr().err


def test_the_sample_run_goes_on_where_it_stopped_and_is_made_once(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    monkeypatch.setattr(command, "LaboratorySettings", lambda: SHORT)
    folder = tmp_path / "checkpoints" / SAMPLE_TRAINING
    trained(folder, on_step=lambda step, steps: ask_to_stop(folder) if step == 2 else None)
    command.sample_laboratory()
    assert "Finished after 4 steps" in capsys.readouterr().out
    assert_same(weights(finished), weights(folder))
    command.sample_laboratory()
    assert not capsys.readouterr().out
