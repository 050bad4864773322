import pytest
from small_checkpoints import N_POSITIONS

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.generation.continuation import continuation
from attention_sieve.core.generation.settings import WritingSettings
from attention_sieve.core.generation.writer import write_on
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids

PROMPT = Text(("the dog sat",))


def after(checkpoint, ids, prompt=PROMPT):
    return continuation(checkpoint, prompt, PassSettings(), ids)


def ids_of(checkpoint, text):
    return checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_what_was_written_follows_the_prompt_by_its_ids_as_the_model_reads_them(decoder):
    checkpoint = decoder("llama")
    ids = [each.token for each in write_on(checkpoint, PROMPT, WritingSettings(5))]
    found = after(checkpoint, ids)
    prompt = checkpoint.tokenizer(PROMPT.segments[0])["input_ids"]
    assert found.n_prompt == len(prompt)
    assert prepare(checkpoint, found.whole, PassSettings()).source.ids.tolist() == [*prompt, *ids]
    assert len(found.pieces) == 5
    assert found.end is None


def test_pieces_are_the_characters_that_were_written_and_a_part_of_one_is_said_to_be(decoder):
    checkpoint = decoder("gpt2")
    found = after(checkpoint, ids_of(checkpoint, " on a mat."))
    assert found.written == " on a mat." == "".join(found.pieces)
    assert not found.ends_inside_a_character
    ids = ids_of(checkpoint, " 🌍")
    assert after(checkpoint, ids[:-1]).ends_inside_a_character
    assert not after(checkpoint, ids).ends_inside_a_character


def test_the_end_of_a_text_and_of_what_a_model_reads_are_known_from_its_ids(decoder):
    checkpoint = decoder("gpt2", eos_token_id=11)
    assert after(checkpoint, [9, 11]).end == "ended"
    assert after(checkpoint, [9, 11]).written == after(checkpoint, [9]).written
    assert after(checkpoint, [11, 9]).end is None
    n_prompt = after(checkpoint, []).n_prompt
    assert after(checkpoint, [9] * (N_POSITIONS - n_prompt)).end == "full"


def test_what_is_marked_in_a_prompt_of_ids_stays_marked(decoder):
    prompt = text_of_ids(GivenTokens((3, 4, 5), needle=(0, 1), answer=(2, 3)))
    assert after(decoder("gpt2"), [6], prompt).whole.given == GivenTokens((3, 4, 5, 6), (0, 1), (2, 3))


def test_ids_that_the_vocabulary_lacks_are_refused(decoder):
    with pytest.raises(AnalysisError, match="the id 1,000,000"):
        after(decoder("gpt2"), [1_000_000])
