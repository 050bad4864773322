"""Grades what the program calls heads, and the surprising links that it finds in texts."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from attention_sieve.core.answering import Reading, find_in
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.descriptions.accuracies import ShareFact
from attention_sieve.core.descriptions.describe import Known, describe_heads
from attention_sieve.core.descriptions.naming import name_of_head
from attention_sieve.core.passes.batches import MapCollector, collect
from attention_sieve.core.passes.texts import TextAttention, prepare_all
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.texts.parsers import NO_PARSER
from attention_sieve.core.texts.text import Text
from attention_sieve.core.word_links.habits import habits_of, surprising_links, text_distances, word_attention
from benchmarks.planted.grades.asked import (
    LEAST_SHARE,
    Asked,
    Keys,
    Tokens,
    after_copies,
    among,
    band,
    earlier_copies,
    first,
    is_any_of,
    related,
    tokens_of,
    truth_of,
    waits,
)
from benchmarks.planted.grades.claims import Opened
from benchmarks.planted.grades.records import Statement
from benchmarks.planted.grades.texts import segments_of
from benchmarks.planted.truth import HeadTruth
from benchmarks.planted.vocabulary import STOP

NAMED_ON: Final = ("stops",)
"""Kinds of texts over which heads are named."""
LINKED_ON: Final = ("repeats", "sentences")
"""Kinds of texts in which links are looked for."""
_EVERYWHERE: Final = (
    Asked("previous", "previous", "", is_any_of("previous"), lambda tokens: band(tokens, 1, 1)),
    Asked("punctuation", "punctuation", "", is_any_of("delimiter"), lambda tokens: among(tokens, STOP)),
)
_ENCODER: Final = (
    Asked("next", "next", "", is_any_of("next"), lambda tokens: band(tokens, -1, -1)),
    Asked("cls", "cls", "", is_any_of("sink"), first, is_of_all_queries=True),
    Asked("sep", "sep", "", is_any_of("delimiter"), lambda tokens: among(tokens, "[SEP]"), is_of_all_queries=True),
)
_DECODER: Final = (Asked("first", "first", "", is_any_of("sink"), first, is_of_all_queries=True),)
FOLLOWED: Final[dict[str, Callable[[HeadTruth, Tokens], Keys]]] = {
    **dict.fromkeys(("induction", "half induction"), lambda _, tokens: after_copies(tokens)),
    **dict.fromkeys(("previous", "next", "ruler"), lambda head, tokens: band(tokens, head.offset, head.offset)),
    "duplicate": lambda _, tokens: earlier_copies(tokens),
    "syntactic": lambda _, tokens: related(tokens),
}
"""Where heads look that join words, by what they look at."""


def names(opened: Opened) -> Iterator[Statement]:
    """What each head is called, as statements about what it mostly looks at."""
    for name in NAMED_ON:
        described = describe_heads(_known(opened, name))
        for asked in (*_EVERYWHERE, *(_DECODER if opened.is_causal else _ENCODER)):
            there = opened.measured(asked, name).share >= LEAST_SHARE
            for head in opened.truth.heads:
                fact = name_of_head(described[head.place]).fact
                is_named = isinstance(fact, ShareFact) and fact.target == asked.states
                truth = truth_of(asked, head, opened.truth, bool(there[head.place]))
                yield Statement("name", asked.states, name, *head.place, truth, "yes" if is_named else "no")


def _known(opened: Opened, name: str) -> Known:
    reading, sink = _reading(opened, name), None
    if opened.is_causal:
        settings = RoleSettings(ScoreSettings(roles=("sink",), scale="share", parses=False), Criterion.usual("share"))
        sink = find_in(ROLE_ANALYSIS, reading, settings).scored.scores[:, 0]
    return Known(surface=find_in(SURFACE_ANALYSIS, reading, SURFACE_ANALYSIS.settings).texts, first_token=sink)


def _reading(opened: Opened, name: str) -> Reading[Text]:
    texts = tuple(Text(segments_of(text), parser=NO_PARSER) for text in opened.sample(name).texts)
    settings = PassSettings(opened.checkpoint.files.kinds[0])
    prepared, _ = prepare_all(opened.checkpoint, texts, settings, "error")
    return Reading(checkpoint=opened.checkpoint, pass_settings=settings, inputs=texts, prepared=prepared)


def links(opened: Opened) -> Iterator[Statement]:
    """The surprising links that stand out in each text: a head with that function joins these two words, or not.

    A link that is against the design, and yet is the head's attention by plain transformers, is not graded.
    """
    for name in LINKED_ON:
        maps = list(_maps(_reading(opened, name)))
        habits = habits_of([text_distances(word_attention(each)) for each in maps])
        tokens = tokens_of(opened.sample(name), opened.tokenizer, opened.is_causal)
        followed = {head.place: _followed(opened, head, tokens) for head in opened.truth.heads}
        for row, each in enumerate(maps):
            for link in surprising_links(each, habits):
                if link.stands_out:
                    at = (row, link.query.tokens[0], link.key.tokens[0])
                    (layer, head), is_followed = link.head, bool(followed[link.head][at])
                    is_there = opened.attention(name)[(layer, row, head, *at[1:])] >= LEAST_SHARE
                    truth = is_followed if is_followed == is_there else None
                    yield Statement("link", "joins two words", name, *link.head, truth, "yes", link.excess)


def _followed(opened: Opened, head: HeadTruth, tokens: Tokens) -> Keys:
    """Where the head looks from each word; nowhere for one that joins no words, and for a backup that waits."""
    if waits(head, opened.truth) or head.looks_at not in FOLLOWED:
        return np.zeros((*tokens.ids.shape, tokens.ids.shape[1]), bool)
    return FOLLOWED[head.looks_at](head, tokens)


def _maps(reading: Reading[Text]) -> Iterator[TextAttention]:
    """The attention of each text, in order."""
    layers, prepared = reading.checkpoint.attentions[reading.pass_settings.kind], list(reading.prepared.values())
    batches = collect(reading.checkpoint, prepared, reading.pass_settings, MapCollector)
    maps = dict(each for batch in batches for each in batch)
    for index, text in enumerate(prepared):
        whole = (0, len(text.queries.ids))
        yield TextAttention(
            text=text, causal=layers.causal, window=Window(whole, whole), attention=maps[index], block=0,
            overview=None, reaches=layers.reaches,
        )  # fmt: skip
