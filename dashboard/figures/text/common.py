"""One text under two checkpoints: their attention between what both have in common."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attention_sieve.core.comparison.words import common_words, word_attention
from attention_sieve.core.passes.texts import TextAttention, queries_text, same_tokens
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.dashboard.figures.text.arcs import Side, sides


@dataclass(frozen=True, eq=False, kw_only=True)
class InCommon:
    """Attention of some heads under two checkpoints between the same tokens, or the same words."""

    queries: Side
    keys: Side
    a: Float[np.ndarray, "chosen query key"]
    b: Float[np.ndarray, "chosen query key"]
    is_on_words: bool
    """Whether the two tokenizers split the text differently."""


def in_common(
    text: Text,
    looked: tuple[TextAttention, TextAttention],
    attention: tuple[Float[np.ndarray, "chosen query_a key_a"], Float[np.ndarray, "chosen query_b key_b"]],
) -> InCommon | None:
    """Attention of the same heads between common tokens if both tokenise the text alike, else between words.

    Returns: None where neither works: words need a whole text that attends to itself.
    """
    a, b = looked
    if same_tokens(a.text, b.text) and a.window == b.window:
        queries, keys = sides(a)
        return InCommon(queries=queries, keys=keys, a=attention[0], b=attention[1], is_on_words=False)
    is_partial = a.overview is not None or b.overview is not None
    if is_partial or "cross" in (a.text.kind, b.text.kind) or a.text.kind != b.text.kind:
        return None
    query_text = queries_text(text, a.text.kind)
    common = common_words(
        word_attention(query_text, a.text.queries, attention[0]),
        word_attention(query_text, b.text.queries, attention[1]),
    )
    segments = np.array(common.a.segments)
    special = segments == SPECIAL
    numbers = np.where(special, SPECIAL, np.cumsum(~special) - 1)
    n_whole = len(common.a.words) + common.n_left_out if common.n_left_out else None
    side = Side(tokens=common.a.words, special=special, segments=segments, words=numbers, n_whole=n_whole)
    return InCommon(queries=side, keys=side, a=common.a.attention, b=common.b.attention, is_on_words=True)
