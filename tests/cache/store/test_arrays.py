"""The attention of a text as it is stored."""

from passing import SELF

from attention_sieve.cache.store.arrays import packed_attention, unpacked_attention
from attention_sieve.core.attention.settings import Window
from attention_sieve.core.passes.prepare import prepare
from attention_sieve.core.roles.scores import score_batch
from attention_sieve.core.texts.text import Text


def test_the_windows_of_the_layers_are_stored_with_the_attention(loaded):
    checkpoint = loaded("gemma3")
    text = prepare(checkpoint, Text(("the black cat sat",)), SELF)
    whole = (0, len(text.queries.ids))
    looked = score_batch(checkpoint, [text], SELF, {0: Window(whole, whole)}).maps[0]
    assert len(set(looked.reaches)) == 2
    assert unpacked_attention(packed_attention(looked)).reaches == checkpoint.attentions["self"].reaches
