"""The riddle before the working page: which of the squares finds whom a pronoun means? What it says about a guess is
computed from the attention of the sentence, for any checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.word_links.on_text import words_on
from attention_sieve.core.word_links.pronouns import (
    PRONOUNS,
    PronounLink,
    PronounSentence,
    follower,
    found_before,
    pronoun_link,
)
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.arcs import attention_arcs
from attention_sieve.dashboard.components.arcs.look import ArcSettings, ArcStyle
from attention_sieve.dashboard.components.drawing import drawing
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.grid import GridOnText, frame_of, patterns_of, role_grid
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.text.arcs import square_key_svg
from attention_sieve.dashboard.languages import LANGUAGE, read_language
from attention_sieve.dashboard.pages import NO_PAGE, SECOND_RIDDLE
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.arcs import maps_of
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.riddle import wording
from attention_sieve.dashboard.views.text.on_screen import waiting
from attention_sieve.dashboard.views.text.simple_patterns import LEAST_SHARE, resting_places, simple_pattern
from attention_sieve.dashboard.views.text.stories import been_here

MOST_OTHERS: Final = 2
"""Other words that are named where a guess looks at the antecedent from them as well."""

Verdict = Literal["right", "also right", "close", "wrong"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    headline: str
    sentences: tuple[str, ...]
    """About the head that is the answer, and about the guess."""
    heads: tuple[Head, ...]
    """The answer, then the guess if it is another head."""
    pin: str
    """Pinned token, as in `attention_sieve.dashboard.components.arcs.look.ArcSettings`: the antecedent, or for a guess
    that does not look at it, the pronoun."""


def answer(here: PronounLink, text_attention: TextAttention, head: Head, guess: Head) -> Answer:
    """Compare a guess with the head that is the answer, which follows the pronoun."""
    verdict = verdict_of(here, head, guess)
    is_other = guess != head
    side, word = ("from", here.pronoun) if verdict == "wrong" else ("to", here.antecedent)
    return Answer(
        headline=wording.words(verdict.replace(" ", "_"), head=head_name(*head), guess=head_name(*guess)),
        sentences=(_of_follower(here, head), *([_of_guess(here, text_attention, guess, verdict)] if is_other else [])),
        heads=(head, *([guess] if is_other else [])),
        pin=f"{side}-{here.words.words[word].tokens[0]}",
    )


def verdict_of(here: PronounLink, head: Head, guess: Head) -> Verdict:
    if guess == head:
        return "right"
    if here.follows[guess]:
        return "also right"
    return "close" if here.attention[guess] >= LEAST_SHARE else "wrong"


def elsewhere(head: Head, links: Sequence[PronounLink]) -> str:
    found, missed = (
        [(link.sentence, float(link.attention[head])) for link in links if link.follows[head] == follows]
        for follows in (True, False)
    )
    return wording.elsewhere(found, missed)


def cell_sentences(here: PronounLink) -> list[list[str]]:
    to_words = np.nan_to_num(here.words.attention[:, :, here.pronoun], nan=0)
    return [
        [
            wording.cell(here.sentence.pronoun, here.words.words[int(shares.argmax())].text, float(shares.max()))
            for shares in of_layer
        ]
        for of_layer in to_words
    ]


def _of_follower(here: PronounLink, head: Head) -> str:
    greatest = float(here.from_others[head].max())
    return wording.of_head(head_name(*head), here.sentence, float(here.attention[head]), greatest)


def _of_guess(here: PronounLink, text_attention: TextAttention, guess: Head, verdict: Verdict) -> str:
    if verdict == "also right":
        return _of_follower(here, guess)
    share = float(here.attention[guess])
    if verdict == "wrong":
        return wording.of_other(head_name(*guess), share, _does(here, text_attention, guess))
    from_others = here.from_others[guess]
    order = np.argsort(-from_others, kind="stable")[:MOST_OTHERS]
    n_others = int((here.words.even[guess[0], :, here.antecedent] > 0).sum()) - 1
    return wording.of_column(
        head_name(*guess),
        here.sentence.antecedent,
        share,
        [(here.words.words[index].text, float(from_others[index])) for index in order],
        is_everywhere=bool(share * n_others < LEAST_TIMES * from_others.sum()),
    )


def _does(here: PronounLink, text_attention: TextAttention, head: Head) -> str:
    """What a head mostly does in the sentence, or else where it looks from the pronoun."""
    text = text_attention.text.queries
    if (does := simple_pattern(text_attention, head)) is not None:
        signs = [token for token, rests in zip(text.tokens, resting_places(text)) if rests]
        return wording.mostly(*does, signs)
    attention = text_attention.attention[head]
    to_words = [
        (
            word.text,
            float(attention[list(here.words.words[here.pronoun].tokens)][:, list(word.tokens)].sum(axis=1).mean()),
        )
        for word in words_on(text, (0, len(text.ids)))
    ]
    return wording.instead(here.sentence.pronoun, *max(to_words, key=lambda each: each[1]))


RIDDLE: Final = "riddle"
"""Key of the riddle in the session; None for those who see the working page."""
OWN: Final = "riddle own sentence"
_TRIED: Final = "riddle tried on"
"""Key of what the riddle's head is tried on."""
_STYLE: Final = Path(__file__).with_name("riddle.css")


@dataclass(frozen=True)
class _Tried:
    head: Head
    typed: str
    fingerprint: str
    """Of the checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Riddle:
    sentence: PronounSentence | None = None
    """None until one is known that a head of the checkpoint follows."""
    guess: Head | None = None
    n_guesses: int = 0


def show(promise: str) -> bool:
    """Draw the riddle, with the purpose of the page (`promise`) beside its title.

    Returns: False, with nothing drawn, for those who come by a link, come again or have left it, and where no head of
        the checkpoint follows a pronoun.
    """
    read_language()
    if RIDDLE not in st.session_state:
        st.session_state[RIDDLE] = Riddle() if _is_new_visitor() else None
    riddle: Riddle | None = st.session_state[RIDDLE]
    if riddle is None:
        return False
    try:
        visit = frame.without_corpus()
        with st.container():  # one element, however many sentences are tried: what follows keeps its place
            asked = _asked(visit, riddle)
    except AnalysisError:
        asked = None  # the working page says what is wrong
    if asked is None:
        _leave()
        return False
    try:
        _draw(visit, *asked, promise)
    except AnalysisError as error:
        show_error(error)  # of the passes of other sentences
    return True


def _is_new_visitor() -> bool:
    """Whether somebody opens the first page without a link, for the first time in this browser."""
    comes_by_link = set(st.query_params) - {LANGUAGE} or st.session_state.get(NO_PAGE) or state.is_led()
    return not (first_screen_is_drawn() or been_here() or comes_by_link)


def _asked(visit: Visit, riddle: Riddle) -> tuple[TextAttention, PronounLink] | None:
    """The sentence of the riddle: the first of which some head of the checkpoint follows the pronoun."""
    for sentence in PRONOUNS if riddle.sentence is None else (riddle.sentence,):
        text_attention = _look(visit, sentence)
        link = pronoun_link(sentence, text_attention)
        if link is not None and link.follows.any():
            st.session_state[RIDDLE] = replace(riddle, sentence=sentence)
            return text_attention, link
    return None


def _look(visit: Visit, sentence: PronounSentence) -> TextAttention:
    inference, engine = visit.inference, visit.engine
    loading = "" if inference.is_loaded(engine) else shared_wording.loading(plain(engine.files.name))
    with waiting(loading) as report:
        return inference.look(engine, sentence.text, visit.settings, too_long="truncate", report=report)[0]


def _draw(visit: Visit, text_attention: TextAttention, here: PronounLink, promise: str) -> None:
    riddle: Riddle = st.session_state[RIDDLE]
    st.html(f"<style>{_STYLE.read_text('utf-8')}</style>")
    with st.container(horizontal=True, vertical_alignment="center", key="riddle head"):
        st.title(shared_wording.TITLE, anchor=False, width="content")
        st.markdown(wording.words("promise", promise=promise), width="stretch")
        st.button(wording.words("skip"), key="skip riddle", shortcut="Esc", on_click=_leave)
    above = st.container(key="riddle question")
    left, right = st.columns([4, 3], gap="medium")
    guess = riddle.guess
    answered = None
    hint = ""
    if guess is not None and not np.isnan(here.attention[guess]):
        others = (sentence for sentence in PRONOUNS if sentence != here.sentence)
        read = (pronoun_link(sentence, _look(visit, sentence)) for sentence in others)
        links = [link for link in read if link is not None]
        head = follower(here, links)
        assert head is not None, "a sentence is asked about only if some head follows its pronoun"
        verdict = verdict_of(here, head, guess)
        if riddle.n_guesses == 1 and verdict in ("close", "wrong"):
            hint = wording.hint(head[0])
        else:
            answered = answer(here, text_attention, head, guess)
    with above:
        if hint and guess is not None:
            st.header(wording.once_more(verdict == "close"), anchor=False)
            st.markdown(f"{_of_guess(here, text_attention, guess, verdict)} {hint}")
        elif answered is None:
            st.header(wording.question(int(np.prod(here.attention.shape)), here.sentence), anchor=False)
            st.markdown(wording.how_to_read(here.sentence))
        else:
            st.header(answered.headline, anchor=False)
            st.markdown(elsewhere(answered.heads[0], links))
    with left:
        tried = [] if guess is None else [guess]
        _squares(visit, text_attention, here, tried if answered is None else list(answered.heads))
    with right:
        if answered is None:
            rows, columns = (here.words.words[index].tokens for index in (here.pronoun, here.antecedent))
            filled = np.zeros_like(text_attention.attention[0, 0]) if guess is None else text_attention.attention[guess]
            svg = square_key_svg(text_attention.text.queries.tokens, rows, columns, np.nan_to_num(filled))
            label, frame_name = wording.picture(here.sentence), frame_of(text_attention)
            drawing(svg, key="riddle picture", label=label, frame=frame_name)
        else:
            _answer(visit, text_attention, answered)
            if answered.heads == (guess,):
                _offer_card(visit, here, answered.heads[0])
            if (second := st.session_state["pages"].get(SECOND_RIDDLE.name)) is not None:
                st.page_link(second, label=wording.words("second"), icon=SECOND_RIDDLE.icon)


def _offer_card(visit: Visit, here: PronounLink, head: Head) -> None:
    """Offer the card of the head that was found, with the number of clicks."""
    # These import pandas and SciPy, for which the answer above does not wait.
    from attention_sieve.dashboard.card.of_samples import card_of_samples, described_samples
    from attention_sieve.dashboard.files.downloads import card_downloads

    described = described_samples(visit.inference, visit.engine)
    if described is None:
        return
    n_clicks = st.session_state[RIDDLE].n_guesses
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(wording.found_in(n_clicks), width="content")
        said = wording.found(n_clicks, here.sentence, float(here.attention[head]))
        card = partial(card_of_samples, visit.inference, visit.engine, described, (here.sentence.text, head), said)
        card_downloads(head_name(*head), visit.engine.files.name, card)


def _squares(visit: Visit, text_attention: TextAttention, here: PronounLink, chosen: list[Head]) -> None:
    n_layers, n_heads = here.attention.shape
    grid = RoleGrid(
        label=wording.grid(visit.engine.files.name, here.sentence),
        scores=np.empty((0, n_layers, n_heads)),
        holds=np.empty((0, n_layers, n_heads), dtype=bool),
        tau=visit.choice.criterion.tau,
        roles=(),
        sentences=cell_sentences(here),
    )
    role_grid(
        grid,
        Selection("riddle grid", chosen, st.session_state[RIDDLE].n_guesses, _guess),
        GridOnText(frame=frame_of(text_attention), patterns=patterns_of(text_attention)),
    )


def _answer(visit: Visit, text_attention: TextAttention, answered: Answer) -> None:
    """The links of the answer and of the guess, what both do, and a box for a sentence of one's own."""
    maps = maps_of(text_attention, answered.heads, visit.engine)
    st.html(f"<style>.st-key-riddle-arcs {{ --rows: {len(maps.queries.tokens)}; }}</style>")
    look = ArcSettings(rows="words", pin=answered.pin)
    attention_arcs(
        maps,
        Selection("riddle arcs", look, st.session_state[RIDDLE].n_guesses),
        ArcStyle(controls="without", dashed=answered.heads[1:]),
    )
    st.markdown("  \n".join(answered.sentences))
    took = (answered.heads[0], visit.engine.files.fingerprint)
    with st.form("riddle form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            wording.words("own"),
            key=OWN,
            placeholder=wording.words("own_placeholder"),
            help=wording.words("own_help"),
        )
        st.form_submit_button(
            wording.words("look"), key="riddle look", icon=":material/visibility:", on_click=_take_own, args=took
        )


def _guess(heads: list[Head]) -> None:
    riddle: Riddle = st.session_state[RIDDLE]
    if heads and riddle is not None:
        st.session_state[RIDDLE] = replace(riddle, guess=heads[-1], n_guesses=riddle.n_guesses + 1)


def _take_own(head: Head, fingerprint: str) -> None:
    """Go to the working page with the reader's own sentence."""
    typed = st.session_state.get(OWN, "").strip()  # a form that is sent by hand may lack its field
    if typed:
        st.session_state["text"] = typed
        st.session_state[_TRIED] = _Tried(head, typed, fingerprint)
        _leave()


def _leave() -> None:
    st.session_state[RIDDLE] = None


def say_what_it_finds(typed: str, text_attention: TextAttention, fingerprint: str) -> None:
    """Of the riddle's head, in the sentence that was typed below the riddle, as long as that is on screen."""
    tried: _Tried | None = st.session_state.get(_TRIED)
    if tried is None or (tried.typed, tried.fingerprint) != (typed, fingerprint):
        return
    links, name = found_before(text_attention, tried.head), head_name(*tried.head)
    if not links:
        st.markdown(wording.nothing_to_find(name))
        return
    found, missed = (
        [(link.sentence, float(link.attention[tried.head])) for link in links if link.follows[tried.head] == follows]
        for follows in (True, False)
    )
    st.markdown(wording.on_own(name, found, missed))
