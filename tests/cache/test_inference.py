import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from passing import measures_in
from sessions import anew
from small_checkpoints import save

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.looks import changed
from attention_sieve.cache.serving.models import Models
from attention_sieve.cache.store.store import Store
from attention_sieve.core.analysis import results
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint
from attention_sieve.core.comparison.question import COMPARISON
from attention_sieve.core.errors import (
    AnalysisError,
    CheckpointError,
    NoTokens,
    TextTooLong,
)
from attention_sieve.core.passes.outputs import output_change
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.roles.question import SCORES, scores_question
from attention_sieve.core.roles.roles import FURTHER_ROLES, ROLES
from attention_sieve.core.texts.text import Text

TEXTS = (
    Text(("The old gardener slowly watered her roses.",)),
    Text(("Who sold the blue car?", "My neighbour quickly sold it to a stranger.")),
    Text(("Rain.",)),
)
LONG = Text((" ".join(["The green frog ate a tiny fly."] * 90),))


@pytest.fixture(scope="module")
def engine():
    return Engine(find_checkpoint(BUNDLED))


def test_a_question_of_parts_computes_and_keeps_each_part_that_is_missing(inference, engine):
    question = scores_question((*ROLES, *FURTHER_ROLES))
    inference.ask(engine, SCORES, TEXTS)
    assert inference.kept(engine, question, TEXTS) is None
    with pytest.raises(ZeroDivisionError):
        inference.ask(engine, question, TEXTS, report=lambda _: 1 / 0)
    passed = inference.n_passed
    found = inference.ask(engine, question, TEXTS)
    assert inference.n_passed <= passed + len(FURTHER_ROLES) * len(TEXTS)
    assert len(question.parts) > 1
    assert all(len(inference.kept(engine, part, TEXTS).results) == len(TEXTS) for part in question.parts)
    together = results(load_checkpoint(engine.files), question, TEXTS)
    for one, other in zip(found.results, together, strict=True):
        assert one.roles == other.roles
        for name in ("measures", "shares", "uniform", "greatest"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4, atol=1e-6)
    assert inference.kept(engine, question, TEXTS).positions == found.positions == (0, 1, 2)


def test_more_texts_than_may_be_computed_at_once_are_refused_and_known_ones_are_not_counted(tmp_path, engine):
    inference = Inference(Store(tmp_path), most_at_once=2)
    with pytest.raises(AnalysisError, match=r"^This server computes at most 2 texts at once, and 3 of these have"):
        inference.ask(engine, SCORES, TEXTS)
    assert inference.n_passed == 0
    inference.ask(engine, SCORES, TEXTS[:2])
    inference = anew(inference, most_at_once=2)
    assert inference.ask(engine, SCORES, TEXTS).positions == (0, 1, 2)
    assert inference.n_passed == 1
    with pytest.raises(AnalysisError, match="at most 2 texts at once"):
        inference.ask((engine, engine), COMPARISON, TEXTS)


def test_one_pass_gives_attention_and_measures_and_the_store_keeps_both(inference, engine):
    seen, measured = inference.look(engine, TEXTS[1])
    again = anew(inference)
    kept, kept_measured = again.look(engine, TEXTS[1])
    assert (inference.n_passed, again.n_passed) == (1, 0)
    assert kept.text.source.tokens == seen.text.source.tokens
    assert kept.text.target is None
    assert [pair.name for pair in kept.text.pairs] == [pair.name for pair in seen.text.pairs] != []
    assert (kept.window, kept.block, kept.causal) == (seen.window, 0, False)
    np.testing.assert_allclose(kept.attention, seen.attention, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(kept.attention.sum(-1), 1, atol=0.005)
    np.testing.assert_allclose(kept_measured.arrays["measures"], measured.arrays["measures"], rtol=1e-5, atol=1e-6)
    (of_text,) = inference.ask(engine, SCORES, TEXTS[1:2]).results
    np.testing.assert_allclose(of_text.measures, measured.arrays["measures"], rtol=1e-5, atol=1e-6)
    assert inference.n_passed == 1


def test_a_click_on_the_text_on_screen_with_all_heads_on_or_some_off_does_not_ask_the_store(inference, engine):
    asked = [PassSettings(), PassSettings(off=((0, 1),))]
    seen = [inference.look(engine, TEXTS[0], settings) for settings in asked]
    inference.store.clear()
    assert [inference.look(engine, TEXTS[0], settings) for settings in asked] == seen
    assert inference.n_passed == 2


def test_a_long_text_is_looked_at_through_a_window_and_as_a_whole(inference, tmp_path):
    engine = Engine(find_checkpoint(str(save("llama", tmp_path / "llama", max_position_embeddings=700))), "cpu")
    text = Text(("the cat sat on a mat " * 60,))
    first, measured = inference.look(engine, text)
    other, same = inference.look(engine, text, start=(290, 8))
    assert inference.n_passed == 2
    assert measured.n_tokens > 300
    n_queries, n_keys = other.window.queries[0], other.window.keys[0]
    assert (first.window.queries, first.window.keys) == ((0, 256), (0, 256))
    assert other.window.keys == (8, 264)
    overlap = first.attention[:, :, n_queries:, n_keys:]
    np.testing.assert_allclose(other.attention[:, :, : overlap.shape[2], : overlap.shape[3]], overlap, atol=5e-4)
    np.testing.assert_allclose(other.overview, first.overview, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(same.arrays["measures"], measured.arrays["measures"], rtol=1e-5, atol=1e-6)
    n_tokens = len(other.text.queries.ids)
    assert other.window.queries == (n_tokens - 256, n_tokens)
    for beyond_the_end in (600, 650):
        assert inference.look(engine, text, start=(beyond_the_end, 8))[0] is other
    assert inference.n_passed == 2
    again = anew(inference)
    kept, _ = again.look(engine, text, start=(290, 8))
    assert again.n_passed == 0
    assert (kept.window, kept.block) == (other.window, other.block)
    np.testing.assert_allclose(kept.overview, other.overview, rtol=1e-5, atol=1e-6)


def test_elsewhere_in_a_text_that_is_kept_whole_is_the_same_look(inference, engine):
    first, _ = inference.look(engine, TEXTS[1], start=(3, 900))
    assert first.block == 0
    assert inference.look(engine, TEXTS[1], start=(7, 2))[0] is first
    assert inference.look(engine, TEXTS[1])[0] is first
    inference.look(engine, TEXTS[0])
    again = anew(inference)
    rows = again.store.size()[0]
    for start in ((5, 5), (0, 6), (900, 900)):
        kept, _ = again.look(engine, TEXTS[0], start=start)
        assert kept.window.queries == (0, len(kept.text.queries.ids))
    assert (inference.n_passed, again.n_passed, again.store.size()[0]) == (2, 0, rows)


def test_each_attention_of_an_encoder_decoder_and_each_head_switched_off_is_an_answer_of_its_own(inference, tmp_path):
    engine = Engine(find_checkpoint(str(save("bart", tmp_path / "bart"))), "cpu")
    pair = Text(("the cat sat", "a dog ran where it sat"))
    looks = {kind: inference.look(engine, pair, PassSettings(kind)) for kind in ("encoder", "decoder", "cross")}
    assert inference.n_passed == 3
    first, _ = inference.look(engine, pair)
    assert (first.text.kind, inference.n_passed) == ("encoder", 3)
    cross = looks["cross"][0]
    assert cross.attention.shape[2:] == (len(cross.text.target.ids), len(cross.text.source.ids))
    without, _ = inference.look(engine, pair, PassSettings("encoder", ((0, 1),)))
    assert inference.n_passed == 4
    np.testing.assert_allclose(without.attention[0], first.attention[0], rtol=1e-5, atol=1e-6)
    assert not np.array_equal(without.attention[1], first.attention[1])
    again = anew(inference)
    kept, _ = again.look(engine, pair, PassSettings("cross"))
    assert (kept.text.target.tokens, again.n_passed) == (cross.text.target.tokens, 0)


def test_what_switching_heads_off_changes_is_computed_once(inference, engine):
    settings = PassSettings(off=((0, 1), (2, 3)))
    change = inference.on_screen(engine, changed, TEXTS[0], settings)
    checkpoint = load_checkpoint(engine.files)
    expected = output_change(checkpoint, prepare(checkpoint, TEXTS[0], settings), settings)
    assert change.cosine == pytest.approx(expected.cosine, abs=1e-6)
    assert change.cosine < 1
    assert inference.on_screen(engine, changed, TEXTS[0], settings) is change


def test_long_texts_are_left_out_or_cut_as_asked_and_named_either_way(inference, engine):
    left_out = inference.ask(engine, SCORES, (TEXTS[0], LONG), too_long="skip")
    assert left_out.positions == (0,)
    ((position, n_tokens),) = left_out.too_long
    assert (position, n_tokens) == (1, 722)
    cut = inference.ask(engine, SCORES, (TEXTS[0], LONG), too_long="truncate")
    assert cut.positions == (0, 1)
    assert cut.too_long == left_out.too_long
    assert inference.ask(engine, SCORES, (TEXTS[0], LONG), too_long="skip").positions == (0,)


def test_a_long_text_on_screen_is_never_cut_silently(inference, engine):
    with pytest.raises(TextTooLong, match=r"^The text has 722 tokens and this checkpoint takes 512"):
        inference.look(engine, LONG)
    cut, measured = inference.look(engine, LONG, too_long="truncate")
    assert (cut.text.source.n_cut, measured.n_cut) == (210, 210)
    with pytest.raises(TextTooLong, match=r"^The text has 722 tokens and this checkpoint takes 512"):
        inference.look(engine, LONG)
    assert inference.ask(engine, SCORES, (LONG,), too_long="truncate").positions == (0,)
    assert inference.n_passed == 1


def test_a_bad_text_is_named_by_its_place_among_those_given(inference, engine):
    inference.ask(engine, SCORES, TEXTS[:1])
    with pytest.raises(NoTokens, match=r"^Text 4 has a segment without"):
        inference.ask(engine, SCORES, (TEXTS[0], TEXTS[1], TEXTS[1], Text(("\u200b",))))


def test_progress_counts_kept_texts_too(inference, engine):
    inference.ask(engine, SCORES, TEXTS[:2])
    inference.run(engine, lambda checkpoint: None)  # comes after the worker has written what it gave
    seen = []
    inference.ask(engine, SCORES, TEXTS, report=lambda status: seen.append((status.done, status.total)))
    assert (seen[0], seen[-1]) == ((2, len(TEXTS)), (len(TEXTS), len(TEXTS)))


def load_behind(inference, engine):
    inference.load_behind(engine)
    for thread in threading.enumerate():
        if thread.name == "load checkpoint":
            thread.join(60)


def test_a_checkpoint_that_was_let_go_is_loaded_behind_again(tmp_path, engine):
    inference = Inference(Store(tmp_path), Models(1))
    other = Engine(engine.files, dtype="float64")
    for chosen in (engine, other, engine):
        load_behind(inference, chosen)
        assert inference.is_loaded(chosen)
    assert not inference.is_loaded(other)
    inference.store.close()


def test_a_text_that_was_left_out_does_not_push_out_one_that_was_cut(inference, engine):
    inference.ask(engine, SCORES, (LONG,), too_long="truncate")
    with pytest.raises(TextTooLong):
        inference.look(engine, LONG)
    with pytest.raises(TextTooLong):
        inference.ask(engine, SCORES, (LONG,), too_long="error")
    again = anew(inference)
    assert again.kept(engine, SCORES, (LONG,), too_long="truncate").positions == (0,)


def test_a_checkpoint_that_failed_is_not_loaded_behind_again_and_says_why_when_it_is_needed(inference, engine):
    loads = []

    def fails(*args, **kwargs):
        loads.append(args)
        raise CheckpointError("Broken. Save it again.")

    inference = anew(inference, models=Models(load=fails))
    for _ in range(3):
        load_behind(inference, engine)
    assert len(loads) == 1
    with pytest.raises(CheckpointError, match="Broken"):
        inference.checkpoint(engine)


def test_stored_results_are_served_without_importing_torch(inference, engine):
    inference.ask(engine, SCORES, TEXTS)
    inference.look(engine, TEXTS[1])
    inference.close()
    script = (
        "import sys\n"
        "from attention_sieve.cache.inference import Inference\n"
        "from attention_sieve.cache.answers import Engine\n"
        "from attention_sieve.cache.store.store import Store\n"
        "from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint\n"
        "from attention_sieve.core.roles.question import SCORES\n"
        "from attention_sieve.core.texts.text import Text\n"
        "from pathlib import Path\n"
        f"texts = {TEXTS!r}\n"
        f"store = Store(Path({str(inference.store.folder)!r}))\n"
        "kept = Inference(store)\n"
        "engine = Engine(find_checkpoint(BUNDLED))\n"
        "assert len(kept.ask(engine, SCORES, texts).results) == 3\n"
        "assert kept.look(engine, texts[1])[0].attention.ndim == 4\n"
        "assert not {'torch', 'transformers', 'spacy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2])


def test_kept_results_do_not_wait_for_a_checkpoint_that_is_being_loaded(inference, engine):
    before = inference.ask(engine, SCORES, TEXTS)
    loading, finish = threading.Event(), threading.Event()

    def slow_load(*args, **kwargs):
        loading.set()
        assert finish.wait(60)
        raise CheckpointError("never mind")

    inference = anew(inference, models=Models(load=slow_load))
    inference.load_behind(Engine(engine.files, dtype="float64"))
    assert loading.wait(60)
    answers = []
    reader = threading.Thread(target=lambda: answers.append(inference.ask(engine, SCORES, TEXTS)))
    reader.start()
    reader.join(30)
    finish.set()
    (answer,) = answers
    np.testing.assert_allclose(measures_in(answer.results), measures_in(before.results), rtol=1e-5, atol=1e-6)
