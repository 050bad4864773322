import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from cache import inference as inference_module
from cache.inference import Engine, Inference
from cache.store import Store
from core.analysis import measure
from core.checkpoints import BUNDLED, find_checkpoint, load_checkpoint
from core.errors import CheckpointError, EveryTextTooLong, NoTokens, TextTooLong
from core.hypotheses import Criterion, role_tests
from core.measures import MEASURES, ScoreSettings, role_scores
from core.roles import ROLES
from core.texts import Text

TEXTS = (
    Text(("The old gardener slowly watered her roses.",)),
    Text(("Who sold the blue car?", "My neighbour quickly sold it to a stranger.")),
    Text(("Rain.",)),
)
LONG = Text((" ".join(["The green frog ate a tiny fly."] * 90),))


@pytest.fixture(scope="module")
def engine():
    return Engine(find_checkpoint(BUNDLED))


@pytest.fixture
def inference(tmp_path):
    store = Store(tmp_path)
    yield Inference(store)
    store.close()


def test_measures_equal_the_chain_without_a_cache(inference, engine):
    direct = {text.position: text.measures for text in measure(load_checkpoint(engine.files), TEXTS)}
    found = inference.measures(engine, TEXTS)
    assert found.positions == (0, 1, 2)
    np.testing.assert_array_equal(found.measures, np.stack([direct[i] for i in range(3)]))


def test_a_second_run_makes_no_pass_and_no_parse(tmp_path, engine, monkeypatch):
    first = Inference(Store(tmp_path))
    before = first.measures(engine, TEXTS)
    first.store.close()

    def never(*args, **kwargs):
        raise AssertionError("the model was asked again")

    monkeypatch.setattr(inference_module, "load_checkpoint", never)
    monkeypatch.setattr(inference_module, "measure", never)
    monkeypatch.setattr(inference_module, "look_at", never)
    second = Inference(Store(tmp_path))
    np.testing.assert_array_equal(second.measures(engine, TEXTS[::-1]).measures, before.measures[::-1])
    assert second.n_passed == 0
    second.store.close()


def test_moving_tau_alpha_or_the_correction_runs_no_model(inference, engine):
    inference.measures(engine, TEXTS)
    passed = inference.n_passed
    for criterion in (Criterion(), Criterion(tau=1.5), Criterion(alpha=0.01), Criterion(correction="holm")):
        for settings in (ScoreSettings(), ScoreSettings(direction="both", block_entropy=False)):
            role_tests(role_scores(inference.measures(engine, TEXTS).measures, settings), ROLES, criterion)
    assert inference.n_passed == passed == len(TEXTS)


def test_equal_texts_are_measured_once_and_returned_each_time(inference, engine):
    found = inference.measures(engine, (TEXTS[0], TEXTS[2], TEXTS[0]))
    assert inference.n_passed == 2
    np.testing.assert_array_equal(found.measures[0], found.measures[2])


def test_attention_comes_back_from_the_store_as_it_was_seen(inference, engine, tmp_path):
    seen = inference.attention(engine, TEXTS[1])
    kept = inference.attention(engine, TEXTS[1])
    assert inference.n_passed == 1
    assert kept.tokenized.tokens == seen.tokenized.tokens
    assert [pair.name for pair in kept.pairs] == [pair.name for pair in seen.pairs] != []
    np.testing.assert_array_equal(kept.attention, seen.attention)
    np.testing.assert_allclose(kept.attention.sum(-1), 1, atol=0.005)


def test_long_texts_are_left_out_or_cut_as_asked_and_named_either_way(inference, engine):
    left_out = inference.measures(engine, (TEXTS[0], LONG), too_long="skip")
    assert left_out.positions == (0,)
    ((position, n_tokens),) = left_out.too_long
    assert (position, n_tokens) == (1, 722)
    cut = inference.measures(engine, (TEXTS[0], LONG), too_long="truncate")
    assert cut.positions == (0, 1)
    assert cut.too_long == left_out.too_long
    assert inference.measures(engine, (TEXTS[0], LONG), too_long="skip").positions == (0,)


def test_a_long_text_on_screen_is_never_cut_silently(inference, engine):
    with pytest.raises(TextTooLong, match=r"^The text has 722 tokens and this checkpoint takes 512"):
        inference.attention(engine, LONG)
    assert inference.attention(engine, LONG, too_long="truncate").tokenized.n_cut == 210
    with pytest.raises(TextTooLong, match=r"^The text has 722 tokens and this checkpoint takes 512"):
        inference.attention(engine, LONG)


def test_only_long_texts_give_a_sentence(inference, engine):
    with pytest.raises(EveryTextTooLong, match="Every text is longer than this checkpoint takes") as error:
        inference.measures(engine, (LONG,))
    assert error.value.texts == ((0, 722),)


def test_a_bad_text_is_named_by_its_place_among_those_given(inference, engine):
    inference.measures(engine, TEXTS[:1])
    with pytest.raises(NoTokens, match=r"^Text 4 has a segment in which"):
        inference.measures(engine, (TEXTS[0], TEXTS[1], TEXTS[1], Text(("\u200b",))))


def test_progress_counts_kept_texts_too(inference, engine):
    inference.measures(engine, TEXTS[:2])
    seen = []
    inference.measures(engine, TEXTS, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 3), (3, 3)]


def test_a_checkpoint_that_was_let_go_is_loaded_behind_again(inference, engine, monkeypatch):
    monkeypatch.setattr(inference_module, "LOADED_CHECKPOINTS", 1)
    inference.checkpoint(engine)
    inference.checkpoint(Engine(engine.files, dtype="float64"))
    assert not inference.is_loaded(engine)
    inference.load_behind(engine)
    for thread in threading.enumerate():
        if thread.name == "load checkpoint":
            thread.join(60)
    assert inference.is_loaded(engine)
    assert not inference.is_loading(engine)


def test_stopped_work_keeps_what_is_finished(inference, engine, monkeypatch):
    monkeypatch.setattr("core.analysis.CHUNK", 1)

    class Stop(Exception):
        pass

    def stop_after_two(done, total):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        inference.measures(engine, TEXTS, progress=stop_after_two)
    assert inference.kept_measures(engine, TEXTS) is None
    passed = inference.n_passed
    assert inference.measures(engine, TEXTS).measures.shape == (3, len(MEASURES), 6, 12)
    assert inference.n_passed == passed + 1


def test_eight_threads_get_the_same_numbers_as_one(inference, engine, tmp_path):
    texts = [(Text((f"Number {i} quickly chased the red ball.",)),) for i in range(8)]
    found: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: inference.measures(engine, texts[i]).measures}))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = Inference(Store(tmp_path / "alone"))
    for i in range(8):
        np.testing.assert_allclose(found[i], alone.measures(engine, texts[i]).measures, rtol=1e-5, atol=1e-5)
    alone.store.close()


def test_a_checkpoint_that_fails_to_load_behind_says_why_when_it_is_needed(inference, tmp_path):
    files = find_checkpoint(BUNDLED)
    broken = Engine(files, device="tpu")
    inference.load_behind(broken)
    with pytest.raises(CheckpointError, match="Device 'tpu' is not available here"):
        inference.checkpoint(broken)


def test_no_more_checkpoints_stay_in_memory_than_allowed(inference, engine):
    for dtype in ("float32", "float64", "bfloat16"):
        inference.checkpoint(Engine(engine.files, dtype=dtype))
    assert not inference.is_loaded(Engine(engine.files, dtype="float32"))
    assert inference.is_loaded(Engine(engine.files, dtype="bfloat16"))


def test_stored_results_are_served_without_importing_torch(inference, engine):
    inference.measures(engine, TEXTS)
    inference.attention(engine, TEXTS[1])
    script = (
        "import sys\n"
        "from cache.inference import Engine, Inference\n"
        "from cache.store import Store\n"
        "from core.checkpoints import BUNDLED, find_checkpoint\n"
        "from core.texts import Text\n"
        "from pathlib import Path\n"
        f"texts = {TEXTS!r}\n"
        f"store = Store(Path({str(inference.store.folder)!r}))\n"
        "kept = Inference(store)\n"
        "engine = Engine(find_checkpoint(BUNDLED))\n"
        "assert kept.measures(engine, texts).measures.shape[0] == 3\n"
        "assert kept.attention(engine, texts[1]).attention.ndim == 4\n"
        "assert not {'torch', 'transformers', 'spacy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2])


def test_kept_results_do_not_wait_for_a_checkpoint_that_is_being_loaded(inference, engine, monkeypatch):
    before = inference.measures(engine, TEXTS)
    loading, finish = threading.Event(), threading.Event()

    def slow_load(*args, **kwargs):
        loading.set()
        assert finish.wait(60)
        raise CheckpointError("never mind")

    monkeypatch.setattr(inference_module, "load_checkpoint", slow_load)
    inference.load_behind(Engine(engine.files, dtype="float64"))
    assert loading.wait(60)
    answers = []
    reader = threading.Thread(target=lambda: answers.append(inference.measures(engine, TEXTS)))
    reader.start()
    reader.join(30)
    finish.set()
    assert answers == [before]
