"""The second riddle: heads without which the small decoder says another word; then a sentence of the reader's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER
from attention_sieve.core.importance.fewest_heads import FewestHeads, Heads
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls, drawer, link, offers, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.drawing import drawing
from attention_sieve.dashboard.components.grid import GridOnText, patterns_of, role_grid
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.text.bars import bars_of, bars_svg, read_names
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.second_riddle import wording
from attention_sieve.dashboard.views.second_riddle.data import is_changed, n_changed_at_random, next_words, search_heads
from attention_sieve.dashboard.views.second_riddle.verdict import PAIRS, RIDDLE, verdict_of
from attention_sieve.dashboard.views.text.on_screen import waiting

if TYPE_CHECKING:
    from attention_sieve.core.passes.outputs import NextTokens

STYLE: Final = Path(__file__).with_name("second_riddle.css")
NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
OWN: Final = "sentence"
"""Key, and query parameter, of the reader's own sentence."""
ATTEMPT: Final = "second riddle"
"""Key of the reader's attempt."""
CLICKED: Final = "heads-off"
"""Query parameter of the heads that the reader has switched off here, in the form of `state.HEADS`."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What the reader has done with a text so far."""

    text: Text
    off: Heads = ()
    n_changes: int = 0
    is_hinted: bool = False


def show() -> None:
    about = f"**{shared_wording.model_name(SAMPLE_DECODER)}**"
    frame.page(wording.TITLE, wording.SEE, _riddle, NOTES, about=about, settings=drawer.device_settings)


def _riddle() -> None:
    if not offers.has_decoder():
        st.info(wording.NOT_YET)
        return
    st.html(f"<style>{STYLE.read_text('utf-8')}</style>")
    places = frame.places()
    with places.controls:
        buttons = st.container(horizontal=True, width="content")
        typed = _own_sentence()
    choice = replace(state.choice(), checkpoint=SAMPLE_DECODER, off=(), kind="self")
    engine = controls.other_engine(choice, SAMPLE_DECODER)
    visit = Visit(choice=choice, engine=engine, inference=controls.inference(), texts=())
    text = Text((typed,)) if typed else RIDDLE
    with places.finding:
        with waiting("" if visit.inference.is_loaded(engine) else shared_wording.loading(SAMPLE_DECODER)) as report:
            text_attention, _ = visit.inference.look(engine, text, visit.settings, report=report)
        all_on = next_words(visit, text, ())
        search = None if text == RIDDLE else search_heads(visit, text, text_attention, all_on)
        attempt = _attempt(text, () if search is None else search.heads, text_attention.attention.shape[:2])
        now = next_words(visit, text, attempt.off)
        said, bars = st.columns([3, 2], gap="medium", vertical_alignment="center")
        with said:
            _say(text, search, attempt, (all_on, now))
        with bars:
            _bars(now, is_off=bool(attempt.off))
    with buttons:
        _buttons(attempt)
    with places.picture:
        _grid(text_attention, attempt)
    with said:
        if not attempt.off or is_changed(all_on, now):
            n_changed = n_changed_at_random(visit, text, all_on.ids[0], n_in_set := len(attempt.off) or 2)
            st.caption(wording.control(n_changed, n_in_set, read_names(all_on.names)[0]))
        if search is not None:
            st.caption(wording.n_tried(search))


def _own_sentence() -> str:
    with st.form("own sentence", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input(
            wording.OWN,
            key=OWN,
            placeholder=wording.OWN_PLACEHOLDER,
            help=wording.OWN_HELP,
            bind="query-params",
            persist_state="session",
        )
        st.form_submit_button(wording.LOOK, icon=":material/search:")
    return (typed or "").strip()


def _attempt(text: Text, at_first: Heads, shape: Sequence[int]) -> Attempt:
    attempt: Attempt | None = st.session_state.get(ATTEMPT)
    linked = state.heads_of_link(CLICKED)
    if attempt is None or attempt.text != text or linked is not None:
        off = at_first if linked is None else tuple(state.heads_inside(linked, *shape))
        n_changes = 0 if attempt is None else attempt.n_changes + 1
        attempt = st.session_state[ATTEMPT] = Attempt(text=text, off=off, n_changes=n_changes)
    if attempt.off == at_first:
        link.put([CLICKED], {})
    else:
        state.put_in_link(attempt.off, CLICKED)
    return attempt


def _say(text: Text, search: FewestHeads | None, attempt: Attempt, tokens: "tuple[NextTokens, NextTokens]") -> None:
    before, now = tokens
    shares = np.exp(now.log_probabilities[1])
    word, said = read_names(before.names)[0], read_names(now.names)[int(shares.argmax())]
    st.markdown(wording.sentence(text.segments[0], word, said))
    share = float(shares[now.ids.index(before.ids[0])])
    numbers = wording.numbers(word, float(np.exp(before.log_probabilities[0][0])), share, len(attempt.off))
    if search is not None and attempt.off == search.heads:
        frame.say_finding(wording.found(search, word, said), numbers)
        return
    is_riddle = text == RIDDLE
    verdict = verdict_of(attempt.off, is_changed=is_changed(before, now), pairs=PAIRS if is_riddle else ())
    if is_riddle and verdict == "found" and len(attempt.off) == 2:
        numbers += f". {wording.others()}"
    elif is_riddle and attempt.is_hinted:
        numbers += f". {wording.hint()}"
    frame.say_finding(wording.finding(verdict, attempt.off, (word, said), is_riddle=is_riddle), numbers)


def _buttons(attempt: Attempt) -> None:
    if attempt.text == RIDDLE:
        st.button(
            wording.SHOW if attempt.is_hinted else wording.HINT,
            key="hint",
            icon=":material/lightbulb:",
            on_click=_change,
            kwargs={"off": PAIRS[0]} if attempt.is_hinted else {"is_hinted": True},
        )
    st.button(
        wording.ALL_ON, key="all on", icon=":material/power:", disabled=not attempt.off, on_click=_change, args=((),)
    )


def _change(off: Heads | None = None, *, is_hinted: bool | None = None) -> None:
    attempt: Attempt = st.session_state[ATTEMPT]
    st.session_state[ATTEMPT] = replace(
        attempt,
        off=attempt.off if off is None else off,
        is_hinted=attempt.is_hinted if is_hinted is None else is_hinted,
        n_changes=attempt.n_changes + 1,
    )


def _toggle(heads: list[Head]) -> None:
    """Switch a clicked head off, or on again."""
    if heads:
        _change(tuple(sorted({heads[-1]} ^ set(st.session_state[ATTEMPT].off))))


def _grid(looked: TextAttention, attempt: Attempt) -> None:
    n_layers, n_heads = looked.attention.shape[:2]
    layer = PAIRS[0][0][0]
    grid = RoleGrid(
        label=wording.grid(attempt.text.segments[0]),
        scores=np.empty((0, n_layers, n_heads)),
        holds=np.empty((0, n_layers, n_heads), dtype=bool),
        tau=0,
        roles=(),
        off=attempt.off,
        highlight=[(layer, head) for head in range(n_heads)] if attempt.is_hinted else None,
        sentences=_cell_sentences(looked),
        layers_across=True,
    )
    role_grid(grid, Selection("riddle heads", [], attempt.n_changes, _toggle), GridOnText(patterns=patterns_of(looked)))


def _cell_sentences(looked: TextAttention) -> list[list[str]]:
    tokens = read_names(looked.text.keys.tokens)
    last = np.nan_to_num(looked.attention[:, :, -1], nan=0)
    return [
        [wording.cell(tokens[-1], tokens[int(row.argmax())], float(row.max())) for row in of_layer] for of_layer in last
    ]


def _bars(now: "NextTokens", *, is_off: bool) -> None:
    before, after = np.exp(now.log_probabilities)
    bars = bars_of(read_names(now.names), after, before if is_off else None)
    drawing(bars_svg(bars), key="riddle bars", label=bars.description)
