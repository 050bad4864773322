from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.running import STOP, Journal, Stopped
from attention_sieve.core.texts.relations import dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.tree_probes import run as probing
from attention_sieve.core.tree_probes.kept import KeptProbes
from attention_sieve.core.tree_probes.probe import ProbeKind, TreeProbeSettings
from attention_sieve.core.tree_probes.run import TURN, ProbeQuestion, train_probes


def tree(words, heads, relations):
    return Text((" ".join(words),), (tuple(words),), (tuple(heads),), (tuple(relations),))


TREES = [
    tree(["the", "cat", "sat", "."], [2, 3, 0, 3], ["det", "nsubj", "root", "punct"]),
    tree(["she", "eats", "apples"], [2, 0, 2], ["nsubj", "root", "dobj"]),
    tree(["a", "black", "dog", "ran"], [3, 3, 4, 0], ["det", "amod", "nsubj", "root"]),
]
TEXTS = [TREES[i % 3] for i in range(14)]
ALONE, WITH_WORDS, CONTROL = ProbeKind(False, False), ProbeKind(True, False), ProbeKind(True, True)


def question(**changed):
    asked = ProbeQuestion(
        texts=TEXTS,
        trees=list(dependencies(TEXTS)),
        train=range(10),
        test=range(10, 14),
        kinds=(ALONE, WITH_WORDS, CONTROL),
        settings=PassSettings(),
        how=TreeProbeSettings(epochs=2, seed=3),
        vectors=None,
        too_long="skip",
    )
    return replace(asked, **changed)


def on_checkpoint(inference, engine, asked):
    def run(control, work, watch):
        files = randomly_initialised(engine.files, asked.how.seed) if control else engine.files
        return inference.run(replace(engine, files=files), work, lambda _: watch())

    return run


class Reports(Journal):
    """A journal that knows of each part, also of those that are too close together to be written."""

    def __init__(self, folder=None):
        super().__init__(folder)
        self.parts = []

    def part(self, doing, n_done=0, n_all=0, detail=""):
        self.parts.append((doing, n_done, n_all, self.progress.piece))
        super().part(doing, n_done, n_all, detail)


def trained(inference, engine, asked, journal=None, kept=None, turn=TURN):
    kept = kept or KeptProbes(None)
    return train_probes(on_checkpoint(inference, engine, asked), asked, journal or Journal(None), kept, turn)


class Written(KeptProbes):
    """Kept probes that know which were written, in turn."""

    def __init__(self, folder):
        super().__init__(folder)
        self.kinds = []

    def write(self, kind, results):
        self.kinds.append(kind)
        super().write(kind, results)


def test_probes_are_trained_one_after_the_other_and_kept_as_they_are_done(inference, engine, tmp_path):
    journal, kept = Reports(), Written(tmp_path)
    last = trained(inference, engine, question(), journal, kept, turn=40)
    assert kept.kinds == [ALONE, WITH_WORDS, CONTROL]
    read = KeptProbes(tmp_path).read((ALONE, WITH_WORDS, CONTROL))
    assert str((read.offsets, read.too_long, read.n_left_out)) == str((last.offsets, last.too_long, last.n_left_out))
    for kind, probe in last.probes.items():
        assert str(read.probes[kind].score) == str(probe.score)
        assert read.probes[kind].training.epochs == probe.training.epochs
        np.testing.assert_array_equal(read.probes[kind].training.probe.by_word, probe.training.probe.by_word)
    assert list(last.offsets) == [1]
    assert all(one.score.n_texts == 4 and one.training.is_finished for one in last.probes.values())
    assert [one.training.probe.by_word.shape[-1] for one in last.probes.values()] == [0, 12, 12]
    assert not np.array_equal(
        last.probes[WITH_WORDS].training.probe.by_word, last.probes[CONTROL].training.probe.by_word
    )
    reading = [part for part in journal.parts if part[0] == "reading texts"]
    assert len(set(reading)) > 8, "each turn, of the checkpoint and of its control"
    n_texts = last.probes[CONTROL].training.n_texts
    assert [part[1:] for part in journal.parts if part[0] == "training"][-2:] == [(n_texts, n_texts, CONTROL.name)] * 2
    assert (journal.progress.step, journal.progress.steps) == (3, 3)


@pytest.mark.parametrize("damage", ["another question", "a cut", "no probe"])
def test_what_is_not_the_probe_that_is_asked_for_is_not_read(inference, engine, tmp_path, damage):
    kept = KeptProbes(tmp_path, "a question")
    results = trained(inference, engine, question(kinds=(ALONE,)), kept=kept)
    assert results.has([ALONE])
    assert not results.has([ALONE, WITH_WORDS])
    assert kept.read([ALONE, WITH_WORDS]).has([ALONE])
    (file,) = (tmp_path / "pieces").iterdir()
    if damage == "another question":
        kept = KeptProbes(tmp_path, "another question")
    elif damage == "a cut":
        file.write_bytes(file.read_bytes()[:-1])
    else:
        save_file({"constant": np.ones(2)}, file, {"found": "[]"})
    assert kept.read([ALONE]) is None


def test_turns_and_other_readers_change_nothing_of_what_is_found(inference, engine):
    whole = trained(inference, engine, question(kinds=(WITH_WORDS,)))
    in_turns = trained(inference, engine, question(kinds=(WITH_WORDS,)), turn=40)
    np.testing.assert_allclose(
        whole.probes[WITH_WORDS].training.probe.by_word, in_turns.probes[WITH_WORDS].training.probe.by_word, atol=1e-3
    )


class StopsAtItsThirdEpoch(Reports):
    def part(self, doing, n_done=0, n_all=0, detail=""):
        if detail.startswith(", epoch 3 "):
            (self.folder / STOP).touch()
        super().part(doing, n_done, n_all, detail)


def test_a_stopped_training_is_tested_with_what_it_has_learned_and_goes_on_without_the_finished_ones(
    inference, engine, tmp_path
):
    asked = question(how=TreeProbeSettings(epochs=9, patience=9), kinds=(ALONE, WITH_WORDS))
    finished = trained(inference, engine, replace(asked, kinds=(ALONE,)), kept=KeptProbes(tmp_path))
    kept = Written(tmp_path)
    with pytest.raises(Stopped):
        trained(inference, engine, asked, StopsAtItsThirdEpoch(tmp_path), kept)
    results = kept.read(asked.kinds)
    assert list(results.probes) == [ALONE, WITH_WORDS]
    assert str(results.probes[ALONE].score) == str(finished.probes[ALONE].score)
    assert not results.probes[WITH_WORDS].training.is_finished
    assert results.probes[WITH_WORDS].score.n_texts == 4
    whole = trained(inference, engine, asked, kept=kept)
    assert kept.kinds == [WITH_WORDS, WITH_WORDS]
    assert whole.has(asked.kinds)
    assert kept.read(asked.kinds).has(asked.kinds)


@pytest.mark.parametrize("kinds", [(ALONE,), (WITH_WORDS,)])
def test_words_beyond_a_cut_are_neither_learned_from_nor_tested_on(inference, engine, kinds):
    # Of 60 words 38 are passed; the head of the first is none of these, and the head of all others is the first.
    long = tree(["cat"] * 60, [60, *[1] * 58, 0], ["dep"] * 59 + ["root"])
    texts = [*TEXTS[:10], long, long, long]
    asked = question(
        texts=texts,
        trees=list(dependencies(texts)),
        train=range(11),
        test=[11, 12],
        kinds=kinds,
        too_long="truncate",
        how=TreeProbeSettings(epochs=1),
    )
    results = trained(inference, engine, asked)
    assert results.too_long == ()
    assert results.n_left_out == 3 * (60 - 37)
    assert results.probes[kinds[0]].score.n_words == 2 * 37
    assert {score.n_words for score in results.offsets.values()} == {2 * 37}


def test_attention_that_does_not_fit_is_refused_before_a_pass_where_only_words_before_a_cut_count(
    inference, engine, monkeypatch
):
    def refuse(n_words, *shape):
        raise AnalysisError(f"{len(n_words)} texts, {n_words[10:]} words, {shape[:2]}")

    monkeypatch.setattr(probing, "check_fits", refuse)
    texts = [*TEXTS[:10], *[tree(["cat"] * 60, [0] * 60, ["root"] * 60)] * 4]
    asked = question(texts=texts, trees=list(dependencies(texts)), kinds=(ALONE,), too_long="truncate")
    with pytest.raises(AnalysisError, match=r"14 texts, \[40, 40, 40, 40\] words, \(2, 3\)"):
        trained(inference, engine, asked)
