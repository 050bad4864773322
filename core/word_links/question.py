"""Questions: attention between the words of a pattern in each text, and between all words by their distance."""

from collections.abc import Iterator, Mapping, Sequence

from attention_sieve.core.answering import Question, as_fields, in_single_precision, text_alone, text_itself
from attention_sieve.core.attention.settings import ONE_STACK, PassSettings, Window
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.core.word_links.habits import SumsByDistance, text_distances, word_attention
from attention_sieve.core.word_links.pattern import PatternAttention, PatternText


def _compute(
    checkpoint: Checkpoint, texts: Sequence[PatternText], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, PatternAttention]]]:
    from attention_sieve.core.word_links.observer import pattern_attention

    return pattern_attention(checkpoint, texts, prepared, settings)


def _depends_on(item: PatternText) -> Mapping[str, object]:
    words = {"segments": item.segments, "spans": item.spans}
    return {**text_alone(item.text), **words, "pairs": item.pairs, "others": item.others}


WORD_LINKS: Question[PatternText, PatternAttention] = Question(
    name="word links",
    text_of=lambda item: item.text,
    depends_on=_depends_on,
    compute=_compute,
    pack=in_single_precision,
    unpack=lambda arrays: PatternAttention(**as_fields(arrays)),
    kinds=(*ONE_STACK, "encoder"),
    why_not="A pattern is of words of one text, but decoder and cross-attention need two. Choose encoder attention.",
)


def _distances(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, SumsByDistance]]]:
    from attention_sieve.core.passes.batches import MapCollector, collect

    layers = checkpoint.attentions[settings.kind]
    for batch in collect(checkpoint, prepared, settings, MapCollector):
        results = []
        for index, attention in batch:
            text = prepared[index]
            whole = Window((0, len(text.queries.ids)), (0, len(text.keys.ids)))
            of_text = TextAttention(
                text=text,
                causal=layers.causal,
                window=whole,
                attention=attention,
                block=0,
                overview=None,
                reaches=layers.reaches,
            )
            results.append((index, text_distances(word_attention(of_text))))
        yield results


DISTANCES: Question[Text, SumsByDistance] = Question(
    name="attention between words by distance",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_distances,
    pack=in_single_precision,
    unpack=lambda arrays: SumsByDistance(**arrays),
    kinds=(*ONE_STACK, "encoder", "decoder"),
    why_not="Words are compared with others of one text, but cross-attention joins two. Choose encoder attention.",
)
