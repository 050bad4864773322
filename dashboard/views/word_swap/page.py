"""Two sentences under one checkpoint: how far each head's attention moves, where, and what it does to the output."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import Head, head_name, head_names
from attention_sieve.core.comparison.transitions import head_moved_most
from attention_sieve.core.comparison.word_swap import WordSwap, check_single, largest_move, word_swap
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.dashboard import controls, drawer, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.arcs import MOST_HEADS
from attention_sieve.dashboard.components.arcs.look import ArcStyle, Controls, Group
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, Side, Signs
from attention_sieve.dashboard.files.provenance import command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.arcs import attention_of, linked_arcs, look_at, take_look
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import map_and_arcs
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED, text_facts, text_on_screen, waiting
from attention_sieve.dashboard.views.word_swap import wording
from attention_sieve.dashboard.views.word_swap.choice import SWAP, examples, note


def show() -> None:
    frame.page(
        shared_wording.TITLE,
        wording.SEE,
        _word_swap,
        lambda: frame.read_notes(Path(__file__).parent),
        about=frame.about_checkpoint(),
        settings=drawer.device_settings,
    )


def _word_swap() -> None:
    choice = state.choice()
    texts = _sentences()
    controls.heads_off(choice)
    engine = controls.engine(choice)
    visit = Visit(choice=choice, engine=engine, inference=controls.inference(), texts=())
    if visit.settings.kind in ("decoder", "cross"):
        raise AnalysisError(wording.NO_PAIRS)
    if texts[0] == texts[1]:
        st.info(wording.EQUAL)
        return
    swap = _compared(visit, texts)
    n_layers, n_heads = swap.moved.shape
    heads = state.chosen_heads(n_layers, n_heads, head_moved_most(swap.moved), anew=True)
    _pictures(visit, texts, swap, heads)
    state.put_in_link(heads)
    if first_screen_is_drawn():
        from attention_sieve.dashboard.views.word_swap.output import output_of_both  # imports pandas

        output_of_both(visit, texts)


def _sentences() -> tuple[Text, Text]:
    """Both sentences, from their fields; raises AnalysisError for a text that cannot be read."""
    left, right = st.columns(2)
    with left:
        first = controls.typed_texts(wording.FIRST, "text", EXAMPLE_TYPED, height="content", help=wording.ONE_SENTENCE)
    with right:
        second = controls.typed_texts(wording.SECOND, SWAP, height="content", help=wording.ONE_SENTENCE)
    examples()
    note(first, second)
    a = text_on_screen(controls.read_typed_texts(first))
    if not second.strip():
        raise AnalysisError(wording.EMPTY)
    lines = controls.read_typed_texts(second)
    if len(lines) > 1:
        raise AnalysisError(wording.several(len(lines)))
    texts = a, lines[0]
    check_single(texts)
    return texts


def _compared(visit: Visit, texts: tuple[Text, Text]) -> WordSwap:
    """The attention of both, from memory or by a pass each."""
    inference, engine = visit.inference, visit.engine

    def computed() -> WordSwap:
        with waiting("" if inference.is_loaded(engine) else shared_wording.loading(plain(engine.files.name))) as report:
            a, b = (inference.look(engine, text, visit.settings, report=report)[0] for text in texts)
        return word_swap(texts, a, b)

    return controls.memory().get_or_put("word swap", (engine, visit.settings, texts), computed)


def _pictures(visit: Visit, texts: tuple[Text, Text], swap: WordSwap, heads: list[Head]) -> None:
    if heads:
        moves = wording.head_moves(heads[-1], swap, largest_move(swap, heads[-1]))
        st.markdown(f"{moves} {wording.NOT_TESTED}")
    if n_alone := sum(pair.a is None or pair.b is None for pair in swap.words):
        st.markdown(wording.no_partner(n_alone))
    pictures = st.container()  # the switches of the arcs stand above them and the map
    on_map, *on_arcs = map_and_arcs("swap pictures")
    with on_map:
        _map(visit, texts, swap, heads)
    if heads:
        with pictures:
            _arcs(swap, heads[-MOST_HEADS:], on_arcs)
    else:
        st.info(wording.NO_HEAD)


def _map(visit: Visit, texts: tuple[Text, Text], swap: WordSwap, heads: list[Head]) -> None:
    facts = text_facts(visit, texts[0])
    facts |= {"changed text": texts[1].segments[0], **command("maps", visit.choice, visit.engine, texts)}
    picture = HeadMap(
        title=wording.MOVED,
        label=f"Attention that moves between two sentences, in {visit.engine.files.name}",
        values=swap.moved,
        bound=round_bound(float(np.nan_to_num(swap.moved).max())),
    )
    reset = (visit.engine.files.fingerprint, visit.settings, texts, tuple(heads))
    show_head_map(picture, head_selection("swap map", heads, reset), file="map of moved attention", facts=facts)


def _arcs(swap: WordSwap, heads: list[Head], cells: Sequence[DeltaGenerator]) -> None:
    """Arcs of the heads in both sentences and the difference of the last one, whose rows are the same words."""
    rows = tuple(map(wording.in_both, swap.words))
    both = _side(swap, rows)
    look, group = look_at(both, both), Group("swap", "\n".join(rows))

    def draw(key: str, maps: AttentionMaps, controls: Controls = "without") -> None:
        linked_arcs(maps, Selection(key, look, on_change=take_look), ArcStyle(controls=controls, group=group))

    in_a = AttentionMaps(
        queries=both, keys=both, attention=attention_of(swap.a, heads), heads=heads, label=wording.CONTROLS
    )
    draw("swap controls", in_a, "alone")
    sides = {
        "a": ([pair.a for pair in swap.words], in_a.attention),
        "b": ([pair.b for pair in swap.words], attention_of(swap.b, heads)),
    }
    for cell, (letter, (words, attention)) in zip(cells, sides.items()):
        changed = [word.text for word, pair in zip(words, swap.words) if word is not None and pair.is_changed]
        side = _side(swap, [wording.GAP if word is None else word.text for word in words])
        label = f"Attention of {head_names(heads)} in sentence {letter}"
        with cell:
            st.markdown(wording.side(letter, changed))
            draw(f"swap arcs {letter}", replace(in_a, queries=side, keys=side, attention=attention, label=label))
    difference = replace(
        in_a,
        attention=attention_of(swap.difference, heads[-1:]),
        heads=heads[-1:],
        signs=Signs(wording.MORE, wording.LESS),
        label=f"Difference of the attention of {head_name(*heads[-1])}, b minus a",
    )
    with cells[-1]:
        st.markdown(wording.difference(heads[-1]))
        draw("swap arcs difference", difference)


def _side(swap: WordSwap, names: Sequence[str]) -> Side:
    special = np.array([any(word is not None and word.is_special for word in (pair.a, pair.b)) for pair in swap.words])
    return Side(
        tokens=names,
        special=special,
        segments=np.where(special, SPECIAL, 0),
        words=np.where(special, SPECIAL, np.cumsum(~special) - 1),
    )
