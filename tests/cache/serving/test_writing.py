"""Writing as visitors share a model: in turns, between which others are served, and which end when nobody waits."""

import threading
from functools import partial

import pytest
import torch
import transformers
from small_checkpoints import TOKENIZERS, config

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.generation.settings import MOST_TOKENS, WritingSettings
from attention_sieve.core.generation.writer import Writer
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text

SECONDS = 0.02
"""Of a turn: many turns in a short test."""
PROMPT, OTHERS = Text(("the dog sat",)), tuple(Text((f"the cat ran {number}.",)) for number in range(20))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """A small decoder that takes more tokens than are written, and ends no text."""
    folder, tokenizer = tmp_path_factory.mktemp("llama"), TOKENIZERS["llama"]()
    torch.manual_seed(0)
    sizes = config("llama", len(tokenizer), max_position_embeddings=2 * MOST_TOKENS, eos_token_id=None)
    transformers.AutoModelForCausalLM.from_config(sizes).save_pretrained(folder)
    tokenizer.eos_token = None
    tokenizer.save_pretrained(folder)
    return Engine(find_checkpoint(str(folder)), "cpu")


def turn(writer, checkpoint):
    return writer.write(checkpoint, SECONDS)


def test_a_visitor_who_writes_for_long_does_not_keep_a_corpus_or_a_text_of_others_waiting(inference, engine):
    writer = Writer(PROMPT, PassSettings(), WritingSettings(MOST_TOKENS))
    begun, n_written = threading.Event(), []

    def write():
        while writer.end is None:
            n_written.append(len(inference.run(engine, partial(turn, writer))))
            begun.set()

    writing = threading.Thread(target=write)
    writing.start()
    begun.wait()
    inference.look(engine, OTHERS[0])
    assert len(inference.ask(engine, SCORES, OTHERS).results) == len(OTHERS)
    assert writer.end is None, "others were served in the middle"
    writing.join()
    assert sum(n_written) == MOST_TOKENS
    assert len(n_written) > 5


def test_writing_ends_when_the_reader_has_left_and_keeps_what_was_written_before(inference, engine):
    writer, written = Writer(PROMPT, PassSettings(), WritingSettings(MOST_TOKENS)), []

    def leave(_):
        if written:
            raise ZeroDivisionError

    def write():
        while writer.end is None:
            written.extend(inference.run(engine, partial(turn, writer), leave))

    with pytest.raises(ZeroDivisionError):
        write()
    assert 0 < len(written) < MOST_TOKENS
    assert len(inference.ask(engine, SCORES, OTHERS).results) == len(OTHERS)
    assert len(writer.ids) < MOST_TOKENS
