"""Probe texts: what is repeated, marked and drawn, and that a file of them is read as the same ids."""

import numpy as np
import pytest
from small_checkpoints import TOKENIZERS

from attention_sieve.__main__ import main
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.probe_texts.make import COPIES, MAKERS, ProbeTextSettings, probe_texts
from attention_sieve.core.texts.text import read_file

BLOCK = 8


@pytest.fixture(scope="module")
def tokenizer():
    return TOKENIZERS["llama"]()


def made(tokenizer, kind, **settings):
    return [text.given for text in probe_texts(tokenizer, ProbeTextSettings(kind=kind, block=BLOCK, **settings))]


def starts_of_block(ids):
    return [start for start in range(1, len(ids)) if ids[start : start + BLOCK] == ids[1 : 1 + BLOCK]]


def test_repeats_begin_a_text_and_hold_the_block_again_after_drawn_gaps(tokenizer):
    texts = made(tokenizer, "repeats")
    starts = [starts_of_block(text.ids) for text in texts]
    assert {len(of_text) for of_text in starts} == {COPIES}
    gaps = np.diff(starts, axis=1) - BLOCK
    assert gaps.min() >= 1
    assert len(np.unique(gaps)) > BLOCK / 2
    for text in texts:
        assert text.ids[0] == tokenizer.bos_token_id
        assert len(set(text.ids)) == len(text.ids) - (COPIES - 1) * BLOCK, "what stands in the gaps is new"
        assert tokenizer.vocab_size / 5 <= min(text.ids[1:]) <= max(text.ids) < tokenizer.vocab_size * 4 / 5


def test_the_control_has_one_period(tokenizer):
    assert {tuple(starts_of_block(text.ids)) for text in made(tokenizer, "fixed-repeats")} == {(1, 9, 17, 25)}


@pytest.mark.parametrize("kind", ["needles", "names"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "bert", "albert"])
def test_answers_are_copies_of_their_needles(kind, family):
    tokenizer = TOKENIZERS[family]()
    marked = [text for text in made(tokenizer, kind, number=15) if text.needle]
    assert len(marked) == (15 if kind == "needles" else 10)
    for text in marked:
        needle, answer = (text.ids[slice(*span)] for span in (text.needle, text.answer))
        assert needle == answer
        assert text.answer[1] == len(text.ids)
        assert len(tokenizer.decode(needle).split()) == (10 if kind == "needles" else 1) or family in ("bert", "albert")


def test_needles_stand_at_every_depth_of_every_length(tokenizer):
    texts = made(tokenizer, "needles", number=15)
    depths = [text.needle[0] / text.answer[0] for text in texts]
    assert all(np.diff(depths[start : start + 5]).min() > 0.02 for start in (5, 10))
    lengths = [len(text.ids) for text in texts]
    assert lengths[4] < lengths[9] < lengths[14]


def test_the_seed_decides(tokenizer):
    for kind in MAKERS:
        assert made(tokenizer, kind, seed=1) == made(tokenizer, kind, seed=1) != made(tokenizer, kind, seed=2)


def test_a_small_vocabulary_and_numbers_out_of_range_are_refused(tokenizer):
    with pytest.raises(AnalysisError, match=r"The middle of the vocabulary has [0-9,]+ tokens, and texts of repeats"):
        probe_texts(tokenizer, ProbeTextSettings(block=400))
    with pytest.raises(AnalysisError, match=r"number is 1\. Choose a whole number from 2"):
        ProbeTextSettings(number=1)


def test_a_written_file_is_read_as_the_same_texts(tokenizer, folders, tmp_path):
    path = tmp_path / "made.jsonl"
    options = ["--checkpoint", folders("llama"), "--kind", "names", "--seed", "3", "--output", path]
    assert main(["probe-texts", *map(str, options)]) == 0
    expected = probe_texts(tokenizer, ProbeTextSettings(kind="names", seed=3))
    assert read_file(path.name, path.read_bytes()) == expected
