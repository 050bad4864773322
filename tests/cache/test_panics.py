"""A tokenizer whose library panics, which is no Exception in Python, or fails is met with a sentence."""

import json
import os
import shutil
import signal
import sys

import pytest
import tokenizers

from attention_sieve.cache.answers import Engine
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import CheckpointError, panics_caught
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import tokenize

GIVES_UP = {
    "pre_tokenizer": {
        "type": "Split", "pattern": {"Regex": "(.*a){25}b"}, "behavior": "Isolated", "invert": False
    }
}  # fmt: skip
"""An expression that gives up on long runs of a."""
EMPTY = {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="}}
TEXT = Text(("the cat sat on " + "a" * 34,))


@pytest.fixture
def broken(folders, tmp_path):
    """broken(change) -> folder of a small BERT with a changed tokenizer."""

    def of(change):
        folder = shutil.copytree(folders("bert"), tmp_path / "broken")
        path = folder / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        return find_checkpoint(str(folder))

    return of


def test_a_panic_while_loading_is_a_sentence(broken):
    with pytest.raises(CheckpointError, match="tokenizer crashed"):
        load_checkpoint(broken(EMPTY), device="cpu")


def test_an_error_of_the_library_is_a_sentence_and_others_are_left_alone():
    without_unknown = tokenizers.Tokenizer(tokenizers.models.WordPiece({"a": 0}, unk_token="[UNK]"))
    with pytest.raises(CheckpointError, match=r"crashed \(WordPiece error: Missing \[UNK\] token"), panics_caught():
        without_unknown.encode("b")
    with pytest.raises(ZeroDivisionError), panics_caught():
        _ = 1 / 0


def test_who_waits_for_a_pass_meets_the_sentence_and_the_worker_goes_on(broken, inference):
    engine = Engine(broken(GIVES_UP), "cpu", "float32")
    with pytest.raises(CheckpointError, match=r"tokenizer crashed .*retry-limit"):
        inference.ask(engine, SCORES, [TEXT])
    assert len(inference.ask(engine, SCORES, [Text(("the cat",))]).results) == 1


class Terminated(BaseException):
    """As a program's handler of SIGTERM raises it."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, ValueError, Terminated])
def test_what_ends_a_program_and_what_is_a_mistake_of_ours_is_left_as_it_is(error):
    with pytest.raises(error), panics_caught():
        raise error


def test_sigterm_in_the_middle_of_tokenizing_passes_through(folders):
    checkpoint = load_checkpoint(find_checkpoint(str(folders("bert"))), device="cpu")
    sent = []

    def terminate(*_):
        raise Terminated

    def send_signal(_, event, function):
        if event == "c_call" and function.__name__ == "encode" and not sent:
            sent.append(function)
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        sys.setprofile(send_signal)
        with pytest.raises(Terminated):
            tokenize(Text(("the cat",)), checkpoint.tokenizer, 99)
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGTERM, before)
    assert sent
