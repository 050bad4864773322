"""Comparisons through the worker and the store: what is computed once, joined, left out, and said."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from passing import SELF, measures_in
from sessions import anew
from small_checkpoints import edit_json, save

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.looks import predicted
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.comparison.in_step import compare_batch
from attention_sieve.core.comparison.question import COMPARISON, divergences
from attention_sieve.core.errors import AnalysisError, CheckpointError, EveryTextTooLong
from attention_sieve.core.passes.texts import prepare, with_relations
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text

TEXTS = (
    Text(("The quick cat sat on the old mat.", "She drinks hot coffee.")),
    Text(("She slowly ate the red apple.",)),
    Text(("A bird.",)),
    Text(("She slowly ate the red apple.",)),
)


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    folders = [save("bert", tmp_path_factory.mktemp("pair") / f"seed {seed}", seed=seed) for seed in (1, 2)]
    return tuple(Engine(find_checkpoint(str(folder)), "cpu") for folder in folders)


def side(compared, index):
    return [text.sides[index] for text in compared.results]


def test_a_comparison_equals_the_two_passes_without_a_cache(inference, engines):
    found = inference.ask(engines, COMPARISON, TEXTS)
    a, b = (load_checkpoint(engine.files, device="cpu") for engine in engines)
    for position, text in enumerate(TEXTS):
        sides = [with_relations([prepare(checkpoint, text, SELF)], [text]) for checkpoint in (a, b)]
        alone = compare_batch(a, b, *sides, SELF, SELF)
        pairs = zip(found.results[position].sides, (alone.a[0], alone.b[0]), strict=True)
        for measured, expected in pairs:
            np.testing.assert_allclose(measured.measures, expected.measures, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(measured.shares, expected.shares, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(divergences(found.results)[position], alone.divergence[0], rtol=1e-4, atol=1e-6)
    assert (found.positions, found.too_long) == ((0, 1, 2, 3), ())
    np.testing.assert_allclose(divergences(found.results)[1], divergences(found.results)[3], rtol=1e-5, atol=1e-6)
    assert inference.n_passed == 3


def test_both_checkpoints_scores_are_kept_for_every_page_and_found_by_the_next_comparison(inference, engines):
    found = inference.ask(engines, COMPARISON, TEXTS)
    a, b = engines
    later = anew(inference)
    np.testing.assert_allclose(
        measures_in(later.ask(a, SCORES, TEXTS).results), measures_in(side(found, 0)), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        measures_in(later.ask(b, SCORES, TEXTS).results), measures_in(side(found, 1)), rtol=1e-5, atol=1e-6
    )
    kept = later.kept((a, b), COMPARISON, TEXTS)
    swapped = later.kept((b, a), COMPARISON, TEXTS)
    np.testing.assert_allclose(divergences(kept.results), divergences(found.results), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(divergences(swapped.results), divergences(found.results), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(measures_in(side(swapped, 0)), measures_in(side(found, 1)), rtol=1e-5, atol=1e-6)
    assert later.n_passed == 0


def test_scores_alone_do_not_spare_the_passes_that_the_divergence_needs(inference, engines):
    for engine in engines:
        inference.ask(engine, SCORES, TEXTS)
    assert inference.kept(engines, COMPARISON, TEXTS) is None
    assert divergences(inference.ask(engines, COMPARISON, TEXTS).results).shape == (4, 2, 3)


def test_a_text_too_long_for_one_of_two_is_left_out_of_both_and_that_is_kept(inference, engines, tmp_path):
    short = save("bert", tmp_path / "short", seed=2)
    edit_json(short / "tokenizer_config.json", model_max_length=24)
    pair = (engines[0], Engine(find_checkpoint(str(short)), "cpu"))
    found = inference.ask(pair, COMPARISON, TEXTS)
    assert (found.positions, [place for place, _ in found.too_long]) == ((1, 2, 3), [0])
    later = anew(inference)
    assert later.kept(pair, COMPARISON, TEXTS).too_long == found.too_long
    assert later.ask(pair[0], SCORES, TEXTS[:1]).positions == (0,)
    with pytest.raises(EveryTextTooLong):
        later.ask(pair, COMPARISON, TEXTS[:1])
    later.close()
    later = Inference(later.store)
    cut = later.ask(pair, COMPARISON, TEXTS, too_long="truncate")
    assert cut.positions == (0, 1, 2, 3)
    assert np.isnan(divergences(cut.results)[0]).all()
    with pytest.raises(AnalysisError, match=r"^Text 1 has \d+ tokens"):
        later.ask(pair, COMPARISON, TEXTS, too_long="error")
    assert later.ask(pair, COMPARISON, TEXTS).positions == (1, 2, 3)
    later.close()


def test_a_checkpoint_that_cannot_be_loaded_fails_its_comparison_alone(inference, engines, tmp_path):
    broken = save("bert", tmp_path / "broken")
    engine = Engine(find_checkpoint(str(broken)), "cpu")
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(CheckpointError):
        inference.ask((engines[0], engine), COMPARISON, TEXTS)
    assert len(inference.ask(engines[0], SCORES, TEXTS).positions) == 4
    assert len(inference.ask(engines, COMPARISON, TEXTS).positions) == 4


@pytest.mark.usefixtures("unhurried")
def test_memory_that_runs_out_in_a_comparison_halves_its_batches_and_is_said_of_both(inference, engines):
    def small_memory(checkpoints, texts, *rest):
        if len(texts) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return COMPARISON.compute(checkpoints, texts, *rest)

    assert len(inference.ask(engines, replace(COMPARISON, compute=small_memory), TEXTS).positions) == 4
    for engine in engines:
        assert "seed 2 now processes at most" in inference.notice(engine)


def test_a_classifier_says_what_it_predicts_and_another_checkpoint_nothing(inference, engines, tmp_path, monkeypatch):
    from transformers import AutoConfig, AutoModelForSequenceClassification

    folder = save("bert", tmp_path / "classifier")
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(
        AutoConfig.from_pretrained(folder, num_labels=2, id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    )
    model.save_pretrained(folder)
    engine = Engine(find_checkpoint(str(folder)), "cpu")
    found = inference.on_screen(engine, predicted, TEXTS[0], SELF)
    checkpoint = inference.checkpoint(engine)
    inputs = checkpoint.tokenizer(*TEXTS[0].segments, return_tensors="pt", return_token_type_ids=True)
    with torch.no_grad():
        expected = model.eval()(**inputs).logits.softmax(-1)[0]
    assert found.names == ("bad", "good")
    np.testing.assert_allclose(found.values, expected, atol=1e-6)
    assert inference.on_screen(engines[0], predicted, TEXTS[0], SELF) is None
    assert inference.on_screen(engine, predicted, TEXTS[0], SELF) is found
