"""Inspect: type a text, see which heads do what in it, and where a chosen head looks."""

from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import ONE_STACK, Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.roles.roles import known_roles, shown_roles
from attention_sieve.core.texts.languages import foreign_language
from attention_sieve.core.texts.parsers import ENGLISH, NO_PARSER, parsers_by_language
from attention_sieve.core.texts.text import Text, text_of, write_typed
from attention_sieve.core.texts.tokens import unknown_parts
from attention_sieve.dashboard import controls, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.grid import (
    GridOnText,
    first_head_of,
    frame_of,
    grid_of_text,
    patterns_of,
    pictures_of,
)
from attention_sieve.dashboard.drawer import test_settings
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import command, role_options
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.arcs import pin_word, sieves_on, where_heads_look
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.charts import head_selection
from attention_sieve.dashboard.views.corpus import Corpus, corpus, kept_corpus
from attention_sieve.dashboard.views.decoder_notes import decoder_notes
from attention_sieve.dashboard.views.evidence import ledger
from attention_sieve.dashboard.views.evidence.ledger import keep_button, say_what_was_kept
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.inspect import sentences, surprising_link, wording
from attention_sieve.dashboard.views.leading import begin_first_lesson, lesson_panel, lesson_place, shows
from attention_sieve.dashboard.views.pickers import first_screen, one_of, toggle
from attention_sieve.dashboard.views.riddle import show as riddle
from attention_sieve.dashboard.views.role_grid.grid import grid_over, how_decided, show_role_grid
from attention_sieve.dashboard.views.text import stories
from attention_sieve.dashboard.views.text.on_screen import (
    EXAMPLE_TYPED,
    PAIR_TYPED,
    on_screen,
    pair_fields,
    text_facts,
    text_on_screen,
)
from attention_sieve.dashboard.views.word_links import wording as words_wording
from attention_sieve.dashboard.views.word_links.choice import TABS, words_first
from attention_sieve.dashboard.views.word_swap import choice as word_swap
from attention_sieve.dashboard.views.writing import button as writing

if TYPE_CHECKING:
    from attention_sieve.core.generation.continuation import Continuation
    from attention_sieve.dashboard.views.lessons.computation import Beside

GRID: Final = "inspect grid"


def show() -> None:
    """Draw the page, or for a new visitor the riddle before it."""
    if word_swap.is_on():
        import_module("attention_sieve.dashboard.views.word_swap.page").show()
    elif not riddle.show(wording.PROMISE):
        about = frame.about_checkpoint()
        frame.page(shared_wording.TITLE, "", _inspect, _notes, about=about, settings=partial(test_settings, _roles))


def _notes() -> frame.Notes:
    """The notes at the foot; their numbers need modules for which the first grid does not wait."""
    from attention_sieve.dashboard.views.inspect.notes import NOTES

    return NOTES


def _inspect() -> None:
    choice = state.choice()
    reads_one = st.session_state.get("kinds", ONE_STACK) == ONE_STACK or choice.kind == "encoder"
    lesson = lesson_place() if state.lesson_is_on("inspect") else None
    stories.take_example()
    at_first = EXAMPLE_TYPED if reads_one else PAIR_TYPED
    if choice.corpus in controls.PROBES:
        at_first = write_typed([controls.probe_text(choice)])
    elif choice.corpus in controls.SAMPLES_IN:
        at_first = write_typed(controls.corpus_texts(choice)[:1])
    typed, text = _typed(at_first, reads_one)
    controls.heads_off(choice)
    slot = st.container()
    engine = controls.engine(choice)
    corpus_texts, problem = _corpus_texts(choice)
    texts = frame.readable(choice, engine, corpus_texts)
    visit = Visit(choice=choice, engine=engine, inference=controls.inference(), texts=texts)
    if writing.is_chat():
        text = writing.chat_of(visit, typed)
    continuation = writing.text_so_far(visit, text, slot)
    screen = on_screen(_with_template(visit), text if continuation is None else continuation.whole)
    if continuation is not None and screen is not None:
        with slot:
            _written(visit, screen, text, continuation)
    beside = None
    if lesson is not None:
        text_attention = None if screen is None else screen.text_attention
        beside = lesson_panel(lesson, visit, text_attention=text_attention, typed=typed)
    if screen is None:
        return
    state.remember_off(choice)
    with st.container(key="finding"):  # the grid below keeps its place
        _notes_on_text(screen)
        waits = lesson is None and continuation is None and _answer(visit, screen, typed)
        riddle.say_what_it_finds(typed, screen.text_attention, engine.files.fingerprint)
        if problem is not None:
            show_error(problem)
        if choice.corpus == A_RESULTS_FOLDER:
            frame.ask_for_texts(choice, corpus_texts)
    is_tested = _draw(visit, screen, beside)
    if is_tested is None:
        return
    if not texts and problem is None and choice.corpus != A_RESULTS_FOLDER:
        frame.ask_for_texts(choice, corpus_texts)
    _compute_the_rest(visit, is_tested=is_tested, waits=waits)


def _draw(visit: Visit, screen: PassedText, beside: "Beside | None") -> bool | None:
    """Draw the grid and the arcs, and what there is to say about them outside of a lesson.

    Returns: whether the corpus is tested; None in a lesson, and while what is below the first screen waits.
    """
    left, right, below = first_screen()
    with left:
        squares = st.container()
        with st.container(horizontal=True, key="grid switches"):
            patterns = toggle(wording.PATTERNS, key="patterns", start=True)
    by_corpus = beside is None and st.session_state.get("by") == wording.BY_CORPUS
    grid_shows = _Shown(by_corpus, finer=bool(st.session_state.get("finer")), patterns=patterns)
    with squares:
        decoder_notes(visit.choice)
        needs_tests = first_screen_is_drawn() or grid_shows.by_corpus
        tested = kept_corpus(visit) if visit.texts and needs_tests else None
        heads = _grid(visit, screen, tested, grid_shows, below)
    present = [head for head in heads if head not in visit.removed]
    says = "" if beside is not None else sentences.says(visit, screen, tested, heads)
    arcs = partial(where_heads_look, _with_template(visit), screen, heads, GRID, says=says)
    if beside is not None:
        with right:
            if shows("inspect", "switches"):
                _switches(visit, present)
            (beside.instead or partial(arcs, beside.asked))()
        return None
    with right:
        text_attention = arcs()
    if not first_screen_is_drawn():
        return None
    with right:
        # imports pandas, for which the first grid does not wait
        from attention_sieve.dashboard.views.inspect.says import what_it_says

        what_it_says(visit, screen, present)
    _about(visit, screen, text_attention, tested, heads, below)
    return tested is not None


def _compute_the_rest(visit: Visit, *, is_tested: bool, waits: bool) -> None:
    """Test the corpus, and measure what heads usually do if the answer to a text waits for it.

    The page stays visible meanwhile; the next run takes both from memory.
    """
    if visit.texts and not is_tested and corpus(visit) is not None:
        st.rerun()
    if waits and surprising_link.measure_habits(visit):
        st.rerun()
    surprising_link.kept_habits(visit)


def _answer(visit: Visit, screen: PassedText, typed: str) -> bool:
    """Tell the clicked story of the text, or answer a text of the reader's own with its most surprising link.

    Returns: whether the answer waits for what heads usually do.
    """
    text_attention = screen.text_attention
    if stories.tell(typed, text_attention, visit.engine.files.fingerprint, partial(pin_word, text_attention)):
        surprising_link.take_as_answer(screen.text)
        return False
    is_own = stories.is_own(typed)  # the first grid, of the example, does not wait for the store
    return (is_own or first_screen_is_drawn()) and surprising_link.answer(visit, screen, is_own=is_own)


def _notes_on_text(screen: PassedText) -> None:
    """Say whose grammar is left out, which parts the tokenizer does not know, and which words look at which others."""
    pass_text = screen.text_attention.text
    if screen.text.parser == NO_PARSER and (foreign := foreign_language(" ".join(screen.text.segments))):
        st.info(wording.not_english(foreign, foreign in parsers_by_language()))
    if pass_text.kind == "cross":
        st.info(shared_wording.ACROSS)
    elif pass_text.kind != "decoder" and (parts := unknown_parts(screen.text, pass_text.queries)):
        # A target is tokenized by itself.
        st.info(shared_wording.not_known([(plain(part), plain(token)) for part, token in parts]))


def _typed(at_first: str, reads_one: bool) -> tuple[str, Text]:
    """The typed texts, `at_first` until the reader types, and the one on screen."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="text row"):
        typed = controls.typed_texts(shared_wording.YOUR_TEXTS, "text", at_first, height="content")
        st.button(wording.LOOK, key="look", icon=":material/visibility:", help=wording.LOOK_HELP)  # a click is enough
        if not state.lesson_is_on("inspect") and state.language() == ENGLISH:  # the sentences of stories are English
            stories.examples(reads_one, begin_first_lesson)
        word_swap.change_a_word(typed)
        with st.popover(wording.MORE, key="more"):
            st.markdown(shared_wording.PAIRS_HOWTO)
            keep_button()
            pair_fields()
        writing.write_button()
    texts = (text_of([typed], "The chat"),) if writing.is_chat() else controls.read_typed_texts(typed)
    text = text_on_screen(texts)
    say_what_was_kept(text)
    if state.parser() is None and foreign_language(" ".join(text.segments)):
        text = replace(text, parser=NO_PARSER)  # English relations between its words would be nonsense
    return typed, text


def _with_template(visit: Visit) -> Visit:
    """The same with the role of a chat's template, which no text of a corpus has, where a chat is on screen."""
    if not writing.is_chat():
        return visit
    scores = visit.choice.score_settings
    roles = known_roles((*scores.roles, "template"))
    return replace(visit, choice=replace(visit.choice, score_settings=replace(scores, roles=roles)))


def _written(visit: Visit, screen: PassedText, prompt: Text, continuation: "Continuation") -> None:
    # imports pandas, for which the first grid does not wait
    from attention_sieve.dashboard.views.writing.panel import panel

    panel(visit, screen, prompt, continuation)
    writing.show_step(screen)


def _switches(visit: Visit, present: list[Head]) -> None:
    """Buttons that switch the chosen heads off, for a lesson, beside which nothing else is said about them."""
    with st.container(horizontal=True, key="lesson switches"):
        if first_screen_is_drawn():
            from attention_sieve.dashboard.views.heads_off import switch_buttons  # imports pandas: after the grid

            switch_buttons(visit.choice, present)
        else:
            st.empty()  # keeps their place


def _about(
    visit: Visit,
    screen: PassedText,
    text_attention: TextAttention,
    tested: Corpus | None,
    heads: list[Head],
    below: DeltaGenerator,
) -> None:
    """Tabs on the chosen head and on heads that link two words; then what changes without the heads that are off."""
    # These import pandas and SciPy, half a second for which the first grid does not wait.
    from attention_sieve.dashboard.views.heads_off import what_changes
    from attention_sieve.dashboard.views.inspect.head_card import head_views
    from attention_sieve.dashboard.views.saving import save_heads
    from attention_sieve.dashboard.views.word_links.on_text import linking_heads

    present = [head for head in heads if head not in visit.removed]
    with below:
        if tested is not None:
            save_heads(visit, tested, heads, (screen.text, screen.text_attention))
            ask_about_long_texts(tested.found.too_long)
        words_first()
        frame.tabs(
            TABS,
            {
                wording.THIS_HEAD: lambda: _this_head(visit, screen, tested, present),
                **head_views(visit, screen, tested, present[-1] if present else None),
                words_wording.TITLE: lambda: linking_heads(visit, screen, text_attention, present),
            },
        )
    what_changes(visit, screen)


def _this_head(visit: Visit, screen: PassedText, tested: Corpus | None, heads: list[Head]) -> None:
    """Sentences about the head chosen last, and buttons that switch the chosen heads off."""
    from attention_sieve.dashboard.views.card import offer_card
    from attention_sieve.dashboard.views.descriptions.show import show_description
    from attention_sieve.dashboard.views.heads_off import switch_buttons
    from attention_sieve.dashboard.views.inspect.head_card import head_summary

    if heads:
        described, buttons = st.container(), st.container(horizontal=True)
        with buttons:
            switch_buttons(visit.choice, heads)
            offer_card(visit, screen, tested, heads[-1])
        if tested is not None:
            with described:
                show_description(visit, tested, heads[-1], buttons, sentences.in_text(screen, heads[-1]))
        head_summary(visit, screen, tested, heads[-1])
    else:
        st.caption(wording.NO_HEAD)
    if tested is not None and ledger.is_typed(visit.choice):
        how_decided(visit, tested)


def _corpus_texts(choice: Choice) -> tuple[tuple[Text, ...], AnalysisError | None]:
    """The corpus, or the error in reading it, in spite of which the text on screen is drawn."""
    try:
        return controls.corpus_texts(choice), None
    except AnalysisError as error:
        return (), error


@dataclass(frozen=True)
class _Shown:
    by_corpus: bool
    """The roles over the corpus; otherwise those by the scores on the text."""
    finer: bool
    patterns: bool
    """What each head does in the text, in its cell."""


def _grid(
    visit: Visit, screen: PassedText, known: Corpus | None, grid_shows: _Shown, below: DeltaGenerator
) -> list[Head]:
    """The grid of heads, with sentences about them where known; its files are offered in `below`."""
    tested = known if grid_shows.by_corpus else None
    choice, engine, scores = visit.choice, visit.engine, screen.scores
    n_layers, n_heads = scores.shape[1:]
    of_roles = (scores, screen.scored.roles) if tested is None else (tested.tests.mean, tested.tests.roles)
    shown = shown_roles(*of_roles)[1 if grid_shows.finer else 0]
    facts = text_facts(visit, screen.text) | provenance.threshold_facts(choice)
    label = f"Heads of {engine.files.name}: roles on {wording.BY_TEXT if tested is None else wording.BY_CORPUS}"
    if tested is None:
        grid = _grid_of_text(visit, screen, label, shown)
        facts |= command("score", choice, engine, [screen.text], *role_options(choice, engine), too_long="truncate")
    else:
        facts |= corpora.facts(visit, tested)
        all_on = kept_corpus(replace(visit, choice=replace(choice, off=()))) if choice.off else None
        before = None if all_on is None else all_on.tests.holds
        grid = replace(grid_over(visit, tested, label), shown=shown, held_before=before)
    if known is not None and first_screen_is_drawn():
        from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences

        grid = replace(grid, sentences=kept_sentences(visit, known.tests))
    if state.lesson_is_on("inspect"):
        grid = grid.without_roles(shared_wording.A_HEAD)  # these are explained in a later lesson
    sieves = sieves_on(_with_template(visit).choice, screen.text_attention, screen.text)
    on_text = GridOnText(
        pictures=pictures_of(screen.text_attention, sieves),
        frame=frame_of(screen.text_attention),
        patterns=patterns_of(screen.text_attention) if grid_shows.patterns else None,
    )
    heads = state.chosen_heads(n_layers, n_heads, first_head_of(screen.text_attention), follow=True)
    reset = (engine.files.name, engine.files.fingerprint, visit.settings.kind, state.n_pushed())
    heads = show_role_grid(
        grid, head_selection(GRID, heads, reset), file="grid", facts=facts, on_text=on_text, files=below
    )
    state.put_in_link(heads)
    return heads


def _grid_of_text(visit: Visit, screen: PassedText, label: str, shown: tuple[str, ...]) -> RoleGrid:
    """Roles by the scores on the text, which no test can confirm."""
    criterion = visit.choice.criterion
    return replace(
        grid_of_text(screen, criterion, label, visit.engine.files.n_shared),
        shown=shown,
        off=visit.choice.off,
        held_before=None if screen.all_on is None else screen.all_on.roles(criterion),
        before=shared_wording.AGAINST,
    )


def _roles() -> None:
    """Which roles the squares show."""
    one_of(wording.BY, {wording.BY_TEXT: False, wording.BY_CORPUS: True}, key="by")
    toggle(shared_wording.FINER, key="finer")
