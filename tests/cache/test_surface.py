"""Surface statistics and gradients through the cache: packed, kept, and given back as they were."""

from dataclasses import fields

import numpy as np
import pytest
import torch
import transformers
from passing import SELF
from small_checkpoints import TOKENIZERS, config

from cache.inference import Engine, Inference
from cache.store import Store
from cache.surface import (
    GRADIENTS,
    SURFACE,
    found_gradients,
    found_surface,
    packed_gradients,
    packed_surface,
    surface_question,
    unpacked_gradients,
    unpacked_surface,
)
from core.analysis import prepare
from core.attention_gradients import attention_gradients
from core.checkpoints import find_checkpoint, load_checkpoint
from core.errors import AnalysisError
from core.key_kinds import SurfaceSettings
from core.observing import collect
from core.surface import TextSurface
from core.surface_observer import surface_collector
from core.texts import Text

TEXTS = (Text(("the cat sat on the mat, quickly.",)), Text(("a dog ran.",)), Text(("who sat?", "two black birds.")))


@pytest.fixture
def inference(tmp_path):
    store = Store(tmp_path)
    made = Inference(store)
    yield made
    made.close()
    store.close()


@pytest.fixture(scope="module")
def guessing(tmp_path_factory):
    """Folder of a small random checkpoint that guesses masked tokens."""
    folder, tokenizer = tmp_path_factory.mktemp("guessing"), TOKENIZERS["bert"]()
    torch.manual_seed(4)
    transformers.AutoModelForMaskedLM.from_config(config("bert", len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def in_order(batches):
    return [found for _, found in sorted((one for batch in batches for one in batch), key=lambda one: one[0])]


def computed(checkpoint, how=SurfaceSettings()):  # noqa: B008
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    return in_order(collect(checkpoint, prepared, SELF, surface_collector(checkpoint, how)))


def check(found, expected, **tolerance):
    for field in fields(expected):
        value, wanted = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(wanted, np.ndarray):
            np.testing.assert_allclose(value, wanted, err_msg=field.name, **tolerance)
            assert value.shape == wanted.shape
        else:
            assert value == wanted


def test_what_is_packed_comes_back(loaded):
    for found in computed(loaded("bert", "float64")):
        kept = packed_surface(found)
        assert kept["entropy"].dtype == np.float32
        assert kept["top_key"].dtype == np.int16
        check(unpacked_surface(kept), found, rtol=1e-6)
        assert len(kept) == len(fields(TextSurface))


def test_answers_are_those_of_a_pass_and_are_kept(inference, folders, loaded):
    engine = Engine(find_checkpoint(str(folders("bert"))))
    assert inference.kept_answers(engine, SURFACE, TEXTS) is None
    answers = inference.answers(engine, SURFACE, TEXTS)
    for found, expected in zip(found_surface(answers), computed(loaded("bert")), strict=True):
        check(found, expected, atol=1e-5)
    n_batches = inference.n_batches
    again = inference.kept_answers(engine, SURFACE, TEXTS[1:])
    assert again is not None
    assert inference.n_batches == n_batches
    for found, expected in zip(found_surface(again), found_surface(answers)[1:], strict=True):
        check(found, expected, rtol=0)


def test_each_way_of_taking_statistics_is_kept_by_itself(inference, folders, loaded):
    engine = Engine(find_checkpoint(str(folders("bert"))))
    assert surface_question(SurfaceSettings()) is SURFACE
    assert SURFACE.kind == "surface"
    inference.answers(engine, SURFACE, TEXTS)
    for how in (SurfaceSettings(as_in_code=True), SurfaceSettings(punctuation=("?",))):
        question = surface_question(how)
        assert inference.kept_answers(engine, question, TEXTS) is None
        answers = inference.answers(engine, question, TEXTS)
        for found, expected in zip(found_surface(answers), computed(loaded("bert"), how), strict=True):
            check(found, expected, atol=1e-5)
    kept = inference.kept_answers(engine, SURFACE, TEXTS)
    assert kept is not None
    for found, expected in zip(found_surface(kept), computed(loaded("bert")), strict=True):
        check(found, expected, atol=1e-5)


def test_gradients_are_answers_too(inference, guessing):
    engine = Engine(find_checkpoint(str(guessing)))
    answers = inference.answers(engine, GRADIENTS, TEXTS)
    checkpoint = load_checkpoint(engine.files, device="cpu")
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    expected = in_order(attention_gradients(checkpoint, prepared, SELF))
    for found, wanted in zip(found_gradients(answers), expected, strict=True):
        check(found, wanted, rtol=1e-4)
        check(unpacked_gradients(packed_gradients(wanted)), wanted, rtol=1e-6)


def test_a_checkpoint_that_guesses_no_tokens_says_so(inference, folders):
    engine = Engine(find_checkpoint(str(folders("bert"))))
    with pytest.raises(AnalysisError, match="has no head that guesses masked tokens"):
        inference.answers(engine, GRADIENTS, TEXTS)
