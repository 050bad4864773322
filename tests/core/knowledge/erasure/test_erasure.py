import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from command_help import columns_in_help, own_columns
from planted_concepts import stacked
from small_checkpoints import save_with_head

from attention_sieve.__main__ import main
from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.erasure.eraser import Eraser
from attention_sieve.core.knowledge.erasure.erasure import (
    FIRST_DRAWS,
    LEAST_CHANGE,
    draws_needed,
    erase,
    judged,
    usual_metric,
)
from attention_sieve.core.knowledge.erasure.passes import HeadPasses, least_effect
from attention_sieve.core.knowledge.kept_vectors import TaskReading
from attention_sieve.core.knowledge.observer import text_vectors
from attention_sieve.core.knowledge.task import PARTS, Task, TaskExample
from attention_sieve.core.knowledge.vectors import usual_pooling
from attention_sieve.core.passes.readout import Readout, model_of
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.running import Stopped
from attention_sieve.core.texts.text import Text

WORDS = ("cat", "dog", "bird", "mat", "house", "the", "a", "ran", "saw", "ate")
PLANTED, OTHER = (1, 2), (0, 1)
SETTINGS = PassSettings("self")
ROWS = {"train": 160, "validation": 40, "test": 40}


def texts(seed=0):
    rng = np.random.default_rng(seed)
    return [Text((" ".join(rng.choice(WORDS, int(rng.integers(4, 9)))),)) for _ in range(sum(ROWS.values()))]


def read(checkpoint, own, pooling):
    prepared, _ = prepare_all(checkpoint, own, SETTINGS, "error")
    of_texts = tuple(prepared.values())
    return of_texts, stacked(text_vectors(checkpoint, of_texts, SETTINGS, pooling))


def reading_of(checkpoint, task, pooling):
    prepared, vectors = read(checkpoint, [example.text for example in task.examples], pooling)
    return TaskReading(
        checkpoint=checkpoint, settings=SETTINGS, pooling=pooling, task=task, texts=prepared, vectors=vectors
    )


def task_of(own, labels):
    parts = np.repeat(PARTS, list(ROWS.values()))
    return Task("planted", tuple(TaskExample(*each) for each in zip(own, labels, parts)))


@pytest.fixture
def planted(folders):
    """A checkpoint that uses one direction of one head's output far more than the others, and a task about it.

    Along this direction the head varies least; what it gives along it is read off at the mean of a text, and its sign
    is the label.
    """
    checkpoint = load_checkpoint(find_checkpoint(str(folders("bert"))), device="cpu", dtype="float64")
    own, pooling = texts(), "mean"
    of_head = read(checkpoint, own, pooling)[1].heads[:, *PLANTED]
    centred = of_head - of_head.mean(axis=0)
    sizes, axes = np.linalg.eigh(np.cov(centred, rowvar=False))
    reads = axes[:, 0] / np.sqrt(sizes[0])  # along which the whitened vectors are read
    along = centred @ reads
    columns = output_columns(checkpoint)
    used = torch.from_numpy(np.outer(np.random.default_rng(6).standard_normal(len(columns)), reads))
    columns[:] = used + 0.001 * columns
    labels = np.where(along > np.median(along), "high", "low")
    return checkpoint, task_of(own, labels), pooling


def erased(checkpoint, task, pooling, heads, **more):
    return list(erase(reading_of(checkpoint, task, pooling), heads, **more))


def verdicts(erasures, n_tests=None):
    return [one.verdict for one in judged(erasures, n_tests or len(erasures))]


def output_columns(checkpoint):
    """The weights of the output projection that read the planted head."""
    layer, head = PLANTED
    dense = checkpoint.model.encoder.layer[layer].attention.output.dense
    channel = read_channels(checkpoint, checkpoint.attentions["self"])
    return dense.weight.data[:, head * channel : (head + 1) * channel]


def test_erasing_what_is_planted_in_a_head_hurts_and_nothing_else_does(planted):
    there, elsewhere = erased(*planted, [PLANTED, OTHER], metric="output", n_tests=3)
    assert verdicts([there, elsewhere], 3) == ["used", "not used"]
    assert there.erased > there.random.max()
    assert there.p == 1 / (1 + draws_needed(3))
    assert judged([there, elsewhere], 3)[0].p_adjusted == pytest.approx(3 / 61)
    assert len(elsewhere.random) == FIRST_DRAWS
    assert there.accuracy > 0.8 > there.accuracy_erased
    assert (there.rank, there.n_texts) == (1, ROWS["test"])


def test_an_effect_that_changes_next_to_nothing_is_no_use(planted):
    checkpoint, *_ = planted
    output_columns(checkpoint)[:] *= 1e-4
    (there,) = erased(*planted, [PLANTED], metric="output")
    assert there.erased > there.random.max()
    assert 0 < there.low < there.erased < there.least_effect == pytest.approx(5e-7)
    assert verdicts([there]) == ["too small"]


def test_a_concept_along_which_a_head_varies_most_is_not_used_for_that(planted):
    checkpoint, task, pooling = planted
    columns = output_columns(checkpoint)
    axes = np.linalg.qr(np.random.default_rng(7).standard_normal(columns.shape)).Q
    columns[:] = torch.from_numpy(axes)  # all directions of the head are read alike
    own = [example.text for example in task.examples]
    vectors = read(checkpoint, own, pooling)[1].heads[:, *PLANTED]
    centred = vectors - vectors.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    task = task_of(own, np.where(along > np.median(along), "high", "low"))
    (there,) = erased(checkpoint, task, pooling, [PLANTED], metric="output")
    assert there.variance > 0.1
    assert verdicts([there]) == ["not used"]


def test_what_is_used_has_to_be_significant_in_its_family(planted):
    erasures = erased(*planted, [PLANTED], metric="output", n_random=FIRST_DRAWS)
    assert len(erasures[0].random) == FIRST_DRAWS
    assert [judged(erasures, n_tests)[0].verdict for n_tests in (1, 2)] == ["used", "not used"]
    assert judged(erasures, 2)[0].p_adjusted == 2 / 21


def test_erasing_random_labels_rarely_looks_like_use(planted):
    checkpoint, task, pooling = planted
    own, labels = [example.text for example in task.examples], [example.label for example in task.examples]
    shuffled = [task_of(own, np.random.default_rng(seed).permutation(labels)) for seed in range(4)]
    found = [erased(checkpoint, each, pooling, [PLANTED], seed=seed)[0] for seed, each in enumerate(shuffled)]
    assert sum(verdicts([each]) == ["used"] for each in found) <= 1  # 1 in 20 expected
    assert np.mean([each.accuracy for each in found]) == pytest.approx(0.5, abs=0.07)


def test_the_least_effect_is_a_thousandth_or_what_the_format_rounds(loaded):
    assert least_effect(loaded("bert"), "output", LEAST_CHANGE) == pytest.approx(5e-7)
    assert least_effect(loaded("bert"), "lm", LEAST_CHANGE) == pytest.approx(0.0009995)
    assert least_effect(loaded("bert", "bfloat16"), "output", LEAST_CHANGE) == pytest.approx(0.0078125**2 / 2)


@pytest.mark.parametrize(("family", "metric"), [("bert", "output"), ("gpt2", "lm"), ("t5", "output")])
@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_an_eraser_acts_on_the_head_as_a_hook_would(family, metric, pooling, loaded, tmp_path):
    checkpoint = loaded(family, "float64")
    if metric == "lm":
        folder = save_with_head(family, tmp_path / family, "CausalLM", dtype="float64")
        checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype="float64")
    assert usual_metric(checkpoint) == metric
    settings = PassSettings(checkpoint.files.kinds[0])
    prepared, _ = prepare_all(checkpoint, texts()[:3], settings, "error")
    attention = checkpoint.attentions[settings.kind]
    channel = read_channels(checkpoint, attention)
    removed = np.random.default_rng(2).standard_normal((channel, channel)) / channel
    eraser = Eraser(mean=np.linspace(-1, 1, channel), removed=removed, rank=channel)
    asked = {"checkpoint": checkpoint, "settings": settings, "head": OTHER, "metric": metric, "pooling": pooling}
    found = HeadPasses(texts=list(prepared.values()), **asked).outcomes([eraser])
    model = model_of(checkpoint, metric, settings.kind)
    wanted = []
    for text in prepared.values():
        readout = Readout(checkpoint, metric, [text])
        before = readout.outcomes(observe(model, readout.inputs(), Pass()))[0, 0, 0]
        with hooked(checkpoint, OTHER, eraser, channel):
            after = readout.outcomes(observe(model, readout.inputs(), Pass()))[0, 0, 0]
        wanted.append([float(before), float(after)])
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-13)
    assert not np.allclose(found[:, 0], found[:, 1], rtol=1e-6, atol=0)


def read_channels(checkpoint, attention):
    config = checkpoint.model.config
    return getattr(config, "d_kv", None) or config.hidden_size // attention.n_heads


@contextmanager
def hooked(checkpoint, head, eraser, channel):
    """The same done by a hook on the output projection."""
    layer, number = head
    names = ("attention.output.dense", "attn.c_proj", "SelfAttention.o")
    modules = [module for name, module in checkpoint.model.named_modules() if name.endswith(names)]

    def change(_, inputs):
        values = inputs[0].clone()
        own = slice(number * channel, (number + 1) * channel)
        values[..., own] = torch.from_numpy(eraser(values[..., own].numpy()))
        return (values,)

    hook = modules[layer].register_forward_pre_hook(change)
    yield
    hook.remove()


def test_at_cls_only_its_own_vector_is_changed(loaded):
    checkpoint = loaded("bert", "float64")
    prepared, vectors = read(checkpoint, texts()[:4], "cls")
    last = (vectors.shape[0] - 1, 0)
    channel = vectors.heads.shape[-1]
    eraser = Eraser(mean=np.zeros(channel), removed=np.eye(channel), rank=channel)
    at_cls, everywhere = (
        HeadPasses(
            checkpoint=checkpoint, texts=prepared, settings=SETTINGS, head=last, metric="output", pooling=pooling
        ).outcomes([eraser])[:, 1]
        for pooling in ("cls", "mean")
    )
    assert (at_cls > 0).all()
    assert (at_cls < everywhere).all()


def test_what_cannot_be_erased_is_refused_in_a_sentence(loaded):
    checkpoint = loaded("bert", "float64")
    own = texts()
    task = task_of(own, ["a", "b"] * (len(own) // 2))
    reading = reading_of(checkpoint, task, usual_pooling(checkpoint, "self"))
    with pytest.raises(AnalysisError, match="has no head L9 H0"):
        erase(reading, [(9, 0)])
    pairs = Task("pairs", task.examples[: len(own) // 2])
    with pytest.raises(AnalysisError, match="pairs is about pairs of texts"):
        erase(replace(reading, task=pairs), [OTHER])
    with pytest.raises(AnalysisError, match="Choose the metric output or lm"):
        erase(reading, [OTHER], metric="labels")


def test_the_command_writes_a_row_for_each_head(folders, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    data, output = tmp_path / "cats.csv", tmp_path / "erased.csv"
    rows = [f"{text.segments[0]},{'cat' in text.segments[0]}" for text in texts()[:120]]
    data.write_text("text,label\n" + "\n".join(rows))
    options = [f"--checkpoint={folders('bert')}", f"--data={data}", f"--output={output}", "--random=3"]
    assert main(["erase", *options, "--heads=1-2,0-1", "--pooling=mean"]) == 0
    table = pd.read_csv(output, comment="#")
    assert own_columns(table) == columns_in_help("erase", "Columns:")
    assert table[["task", "layer", "head"]].to_numpy().tolist() == [["cats", 1, 2], ["cats", 0, 1]]
    assert (table["p"] * 4).isin([1, 2, 3, 4]).all()
    assert (table["is_used"] == (table["verdict"] == "used")).all()
    said = capsys.readouterr()
    assert "cats: L1 H2 accuracy" in said.out
    assert (
        "With 3 random erasures no p-value can be below 0.25, so none of 2 tests can be significant at 0.05."
        in said.err
    )
    assert main(["erase", *options, "--best=1"]) == 0
    assert len(pd.read_csv(output, comment="#")) == 1
    assert main(["erase", *options, "--heads=1-2,0-1", "--tests=1"]) == 2
    assert "--tests is 1, but this command makes 2 tests." in capsys.readouterr().err
    assert main(["erase", *options, "--best=0"]) == 2
    assert "--best is 0. Give 1 or more." in capsys.readouterr().err
    assert main(["erase", *options, "--heads=7-7"]) == 2
    assert "has no head L7 H7" in capsys.readouterr().err


def test_heads_that_are_done_are_kept_in_the_folder_of_the_run(folders, tmp_path, monkeypatch):
    """What is kept is read and not computed again: a number that is changed in it appears in the table."""
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    data, output, run = tmp_path / "cats.csv", tmp_path / "erased.parquet", tmp_path / "run"
    rows = [f"{text.segments[0]},{'cat' in text.segments[0]}" for text in texts()[:120]]
    data.write_text("text,label\n" + "\n".join(rows))
    options = [f"--checkpoint={folders('bert')}", f"--data={data}", f"--output={output}", "--random=3", "--tests=2"]
    assert main(["erase", *options, "--heads=1-2,0-1"]) == 0
    whole = pd.read_parquet(output)
    assert main(["erase", *options, "--heads=1-2", f"--journal={run}"]) == 0
    assert main(["erase", *options, "--heads=1-2,0-1", f"--journal={run}"]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(output), whole)
    (first, *_) = kept = sorted((run / "pieces").glob("*.json"), key=lambda path: json.loads(path.read_text())["head"])
    assert [json.loads(path.read_text())["head"] for path in kept] == [[0, 1], [1, 2]]
    first.write_text(json.dumps(json.loads(first.read_text()) | {"accuracy": 0.125}))
    kept[1].write_text("{")
    assert main(["erase", *options, "--heads=1-2,0-1", f"--journal={run}"]) == 0
    changed = pd.read_parquet(output)
    assert changed["accuracy"].tolist() == [whole["accuracy"][0], 0.125]
    assert main(["erase", *options, "--heads=0-1", "--pooling=mean", f"--journal={run}"]) == 0
    assert pd.read_parquet(output)["accuracy"].tolist() != [0.125], "other settings have other erasures"


def test_an_erasure_is_stopped_before_any_of_its_passes(planted):
    checkpoint, task, pooling = planted
    n_passes = []

    def check():
        n_passes.append(1)
        if len(n_passes) == 3:
            raise Stopped

    found = erase(reading_of(checkpoint, task, pooling), [PLANTED, OTHER], check=check)
    with pytest.raises(Stopped):
        next(found)
    assert len(n_passes) == 3
