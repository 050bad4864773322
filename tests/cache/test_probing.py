from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from small_checkpoints import save

from cache import probe_runs, probing
from cache.inference import Engine, Inference
from cache.probe_runs import ProbeRun
from cache.probing import ProbeKind, ProbeQuestion, ProbeResults, Stand, train_probes
from cache.store import Store
from core.attachment import AttachmentScore
from core.checkpoints import find_checkpoint
from core.errors import AnalysisError, EveryTextTooLong
from core.parses import dependencies
from core.passes import PassSettings
from core.probing import ProbeSettings
from core.texts import Text
from core.word_vectors import vectors_from_lines

WAIT = 60.0


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
        how=ProbeSettings(epochs=2, seed=3),
        vectors=None,
        too_long="skip",
    )
    return replace(asked, **changed)


@pytest.fixture
def inference(tmp_path):
    found = Inference(Store(tmp_path))
    yield found
    found.close()
    found.store.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = save("bert", tmp_path_factory.mktemp("bert") / "bert")
    return Engine(find_checkpoint(str(folder)), "cpu", "float32")


def trained(inference, engine, asked, tell=lambda stand: None):
    kept = []
    train_probes(inference, engine, asked, tell, kept.append)
    return kept


def test_probes_are_trained_one_after_the_other_and_kept_as_they_are_done(inference, engine, monkeypatch):
    monkeypatch.setattr(probing, "TURN", 40)
    stands = []
    kept = trained(inference, engine, question(), stands.append)
    assert [list(one.found) for one in kept] == [[ALONE], [ALONE, WITH_WORDS], [ALONE, WITH_WORDS, CONTROL]]
    last = kept[-1]
    assert list(last.offsets) == [1]
    assert all(one.score.n_texts == 4 and one.training.is_finished for one in last.found.values())
    assert [one.training.probe.by_word.shape[-1] for one in last.found.values()] == [0, 12, 12]
    assert not np.array_equal(last.found[WITH_WORDS].training.probe.by_word, last.found[CONTROL].training.probe.by_word)
    shares = [stand.share for stand in stands if stand.stage == "passing"]
    assert len(set(shares)) > 4
    assert [stand.share for stand in stands if stand.kind == CONTROL] == [0.5, 1]


def test_turns_and_other_readers_change_nothing_of_what_is_found(inference, engine, monkeypatch):
    whole = trained(inference, engine, question(kinds=(WITH_WORDS,)))[0]
    monkeypatch.setattr(probing, "TURN", 40)
    in_turns = trained(inference, engine, question(kinds=(WITH_WORDS,)))[0]
    np.testing.assert_allclose(
        whole.found[WITH_WORDS].training.probe.by_word, in_turns.found[WITH_WORDS].training.probe.by_word, atol=1e-3
    )


def test_word_vectors_may_come_from_a_file(inference, engine):
    vectors = vectors_from_lines("glove.txt", [b"the 1 0\n", b"cat 0 1\n"], [text.words[0] for text in TEXTS])
    found = trained(inference, engine, question(kinds=(WITH_WORDS,), vectors=vectors))[0].found[WITH_WORDS]
    assert found.training.probe.by_word.shape[-1] == 2


def test_a_stopped_training_is_tested_with_what_it_has_learned(inference, engine):
    def tell(stand):
        if stand.training is not None and len(stand.training.epochs) == 3:
            raise KeyboardInterrupt

    kept = []
    with pytest.raises(KeyboardInterrupt):
        train_probes(inference, engine, question(how=ProbeSettings(epochs=9)), tell, kept.append)
    (results,) = kept
    assert list(results.found) == [ALONE]
    assert not results.found[ALONE].training.is_finished
    assert results.found[ALONE].score.n_texts == 4
    assert trained(inference, engine, question(kinds=(ALONE,)))  # the next may train


def test_a_text_that_is_too_long_is_left_out_and_named(inference, engine):
    texts = [*TEXTS, tree(["cat"] * 60, [0] * 60, ["root"] * 60)]
    asked = question(texts=texts, trees=list(dependencies(texts)), train=[*range(10), 14], kinds=(ALONE,))
    (results,) = trained(inference, engine, asked)
    assert results.too_long == ((14, 62),)
    training = results.found[ALONE].training
    assert training.n_texts + training.n_held_out == 10
    with pytest.raises(EveryTextTooLong):
        trained(inference, engine, question(texts=texts[14:], trees=asked.trees[14:], train=[0], test=[]))


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
        how=ProbeSettings(epochs=1),
    )
    (results,) = trained(inference, engine, asked)
    assert results.too_long == ()
    assert results.n_left_out == 3 * (60 - 37)
    assert results.found[kinds[0]].score.n_words == 2 * 37
    assert {score.n_words for score in results.offsets.values()} == {2 * 37}


def test_the_words_of_a_text_that_is_cut_need_not_all_fit(inference, engine, monkeypatch):
    n_words = []
    monkeypatch.setattr(probing, "check_fits", lambda of_texts, *shape: n_words.append(of_texts))
    texts = [*TEXTS[:10], *[tree(["cat"] * 60, [0] * 60, ["root"] * 60)] * 4]
    asked = question(texts=texts, trees=list(dependencies(texts)), kinds=(ALONE,), too_long="truncate")
    trained(inference, engine, asked)
    assert n_words[0][10:] == [40] * 4


def test_attention_that_does_not_fit_is_refused_before_a_pass(inference, engine, monkeypatch):
    monkeypatch.setattr(probing, "check_fits", lambda n_words, *shape: _refuse(n_words, shape))
    with pytest.raises(AnalysisError, match=r"14 texts, \(2, 3\)"):
        trained(inference, engine, question())


def _refuse(n_words, shape):
    raise AnalysisError(f"{len(n_words)} texts, {shape}")


SCORE = AttachmentScore(share=0.5, low=0.4, high=0.6, n_words=20, n_texts=4)
RESULTS = ProbeResults(offsets={1: SCORE}, found={}, too_long=(), n_left_out=0)


def test_a_run_goes_on_behind_and_keeps_what_it_finds():
    go_on = Event()

    def work(tell, keep):
        tell(Stand("passing", 0.25))
        keep(RESULTS)
        go_on.wait(WAIT)

    run = ProbeRun(work)
    assert run.is_on
    go_on.set()
    run.wait(WAIT)
    assert not run.is_on
    assert run.look() == Stand("passing", 0.25)
    assert run.results is RESULTS
    assert not run.is_stopped


def test_a_run_ends_when_it_is_stopped_or_nobody_looks(monkeypatch):
    go_on = Event()

    def work(tell, keep):
        go_on.wait(WAIT)
        tell(Stand("passing", 0.5))
        keep(RESULTS)

    stopped = ProbeRun(work)
    stopped.stop()
    left = ProbeRun(work)
    monkeypatch.setattr(probe_runs, "ABANDONED_SECONDS", -1.0)
    go_on.set()
    for run in (stopped, left):
        run.wait(WAIT)
        assert (run.is_on, run.is_stopped, run.results, run.error) == (False, True, None, None)


def test_what_goes_wrong_in_a_run_is_kept_for_its_reader():
    def work(tell, keep):
        raise AnalysisError("Too little.")

    run = ProbeRun(work)
    run.wait(WAIT)
    assert str(run.error) == "Too little."
    assert not run.is_stopped
