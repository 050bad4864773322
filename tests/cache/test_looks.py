"""The attention of a text as it is stored."""

import json
from dataclasses import astuple

import pytest
from passing import SELF

from attention_sieve.cache.looks import packed_attention, unpacked_attention
from attention_sieve.core.answering import text_to_array
from attention_sieve.core.attention.settings import Window
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.roles.scores import score_batch
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids


def test_the_windows_of_the_layers_are_stored_with_the_attention(loaded):
    checkpoint = loaded("gemma3")
    text = prepare(checkpoint, Text(("the black cat sat",)), SELF)
    whole = (0, len(text.queries.ids))
    looked = score_batch(checkpoint, [text], SELF, {0: Window(whole, whole)}).maps[0]
    assert len(set(looked.reaches)) == 2
    assert unpacked_attention(packed_attention(looked)).reaches == checkpoint.attentions["self"].reaches


@pytest.mark.parametrize(
    "given",
    [
        GivenTokens((5, 7, 9)),
        GivenTokens((5, 7, 9), (0, 1), (2, 3)),
        GivenTokens((5, 7, 9), turns=((0, 1), (2, 3))),
        GivenTokens((5, 7, 9), turns=()),
    ],
)
def test_given_tokens_are_stored_with_what_is_marked_among_them(loaded, given):
    checkpoint = loaded("gpt2")
    text = prepare(checkpoint, text_of_ids(given), SELF)
    looked = score_batch(checkpoint, [text], SELF, {0: Window((0, 3), (0, 3))}).maps[0]
    packed = packed_attention(looked)
    assert unpacked_attention(packed).text.source.given == given
    if given.turns is None:  # as stored before there were turns
        earlier = packed | {"source given": text_to_array(json.dumps(astuple(given)[:3]))}
        assert unpacked_attention(earlier).text.source.given == given
