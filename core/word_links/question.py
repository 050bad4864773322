"""Question: attention between the words of a pattern in each text."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from core.attention.settings import ONE_STACK, PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.passes.arrays import Arrays
from core.passes.question import Question, text_alone
from core.passes.texts import PassText
from core.word_links.pattern import PatternAttention, PatternText


def _compute(
    checkpoint: Checkpoint, texts: Sequence[PatternText], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, PatternAttention]]]:
    from core.word_links.observer import pattern_attention

    return pattern_attention(checkpoint, texts, prepared, settings)


def _depends_on(item: PatternText) -> Mapping[str, object]:
    words = {"segments": item.segments, "spans": item.spans}
    return {**text_alone(item.text), **words, "pairs": item.pairs, "others": item.others}


def _pack(result: PatternAttention) -> Arrays:
    return {
        "n_pairs": np.array(result.n_pairs, np.int32),
        "shares": result.shares.astype(np.float32),
        "even": result.even.astype(np.float32),
        "compared": result.compared.astype(np.float32),
        "others": result.others.astype(np.float32),
    }


def _unpack(arrays: Arrays) -> PatternAttention:
    return PatternAttention(
        n_pairs=int(arrays["n_pairs"]),
        shares=arrays["shares"],
        even=arrays["even"],
        compared=arrays["compared"],
        others=arrays["others"],
    )


WORD_LINKS: Question[PatternText, PatternAttention] = Question(
    name="word links",
    text_of=lambda item: item.text,
    depends_on=_depends_on,
    compute=_compute,
    pack=_pack,
    unpack=_unpack,
    kinds=(*ONE_STACK, "encoder"),
    why_not="A pattern is of words of one text, but decoder and cross-attention need two. Choose encoder attention.",
)
