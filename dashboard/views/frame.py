"""What every page has, from top to bottom: one line with its title, the checkpoint and the texts; the finding; one
large picture; the controls of that picture; sections that open; how to read it, how it is computed, what the paper
found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.core.attention.settings import Head, Kind, PassSettings, head_name
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls, drawer, state, wording
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.terms import sentence
from attention_sieve.dashboard.files.downloads import (
    all_downloads,
    are_all_asked_for,
    leave_out,
    page_download,
    references_download,
)
from attention_sieve.dashboard.languages import Prose
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.web.session import unseen

NO_NUMBERS: Final[Mapping[str, str]] = {}
PAGES_OF_RESULTS: Final = ("roles", "surface", "compare")
"""Pages that draw a results folder."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Visit:
    """What one run of a page works with."""

    choice: Choice
    """The settings that all pages share."""
    engine: Engine
    """The checkpoint, and where it runs."""
    inference: Inference
    """Shared by all sessions."""
    texts: tuple[Text, ...]
    """The texts of the corpus that the chosen attention can read."""

    @property
    def removed(self) -> tuple[Head, ...]:
        """Heads that were removed, or whose layer has no attention; no count of its heads includes them."""
        return self.engine.files.removed_of(self.settings.kind)

    @property
    def settings(self) -> PassSettings:
        """The settings of a forward pass, as far as this checkpoint leaves a choice."""
        return self.choice.pass_settings(self.engine)


@dataclass(frozen=True, kw_only=True)
class Notes:
    """The collapsed notes at the foot of a page."""

    method: str
    """How it is computed: Markdown with TeX."""
    caveat: str = wording.NOT_EXPLANATION
    """Follows the method."""
    paper: str = ""
    """What the paper found; empty where no paper is followed."""
    paper_title: str = wording.PAPER_TITLE


def read_notes(folder: Path, numbers: Mapping[str, str] = NO_NUMBERS, *, paper_title: str = "") -> Notes:
    """Read a page's `method.md`, and its `paper.md` where it has one.

    Args:
        numbers: value of each placeholder of the two files, from the constants that decide them.
        paper_title: title above `paper.md`; by default that of one paper.

    Raises: KeyError for a placeholder without a number, ValueError for a stray `@`.
    """
    method, paper = (folder / name for name in ("method.md", "paper.md"))
    return Notes(
        method=Prose(method.read_text("utf-8")).substitute(numbers),
        paper=Prose(paper.read_text("utf-8")).substitute(numbers) if paper.exists() else "",
        paper_title=paper_title or wording.PAPER_TITLE,
    )


@dataclass(frozen=True, eq=False)
class Places:
    """The places of a page, from top to bottom. What decides a picture is drawn before it, in a place below it."""

    finding: DeltaGenerator
    """For `say_finding`, and what has to be known to read it."""
    picture: DeltaGenerator
    """One large picture, whole on a projector."""
    controls: DeltaGenerator
    """Of that picture, in a row."""
    sections: DeltaGenerator
    """All else: tabs and what unfolds, each named by its question."""


def places() -> Places:
    """Lay a page out. Each place keeps its index while those above it are filled, so that none is drawn twice."""
    found = Places(
        st.container(key="finding"),
        st.container(key="picture"),
        st.container(key="picture controls", horizontal=True, vertical_alignment="bottom"),
        st.container(key="sections"),
    )
    for place in (found.finding, found.picture, found.controls, found.sections):
        place.empty()  # without an element the container would take up no space
    return found


def say_finding(finding: str, numbers: str = "") -> None:
    """Say what a page found, at its top.

    Args:
        finding: one sentence of at most 20 words, as Markdown.
        numbers: on what it rests, smaller behind it, as Markdown.
    """
    with st.container(key="found"):
        st.markdown(f"{finding} :small[:gray[{numbers}]]" if numbers else finding)


def page(
    title: str,
    see: str,
    body: Callable[[], None],
    notes: Notes | Callable[[], Notes],
    *,
    about: str | None = None,
    settings: Callable[[], None] = drawer.test_settings,
) -> None:
    """Draw a page.

    Args:
        see: how to read what the page shows, in a sentence or two.
        body: draws the rest; an AnalysisError that it raises is shown as a sentence in its place.
        notes: collapsed notes below, or a function that reads them, called after the first screen is drawn.
        about: what the page works with, as Markdown beside its title; None for the chosen checkpoint and texts.
        settings: draws the drawer with the settings that the page uses.
    """
    # In a lesson its panel stands in the place of the title; settings that differ from the usual ones stay in force.
    if state.lesson_is_on(st.session_state["page"] or "inspect") and drawer.SETTINGS.isdisjoint(st.query_params):
        section("", body, notes)
        return
    head(title, about, settings=settings)
    section(see, body, notes)


def head(title: str, about: str | None = None, *, settings: Callable[[], None] = drawer.test_settings) -> None:
    """Draw the first line of a page. The arguments are those of `page`."""
    with st.container(horizontal=True, vertical_alignment="center", key="page head"):
        st.title(title, anchor=False, width="content")
        st.markdown(about_checkpoint_and_texts() if about is None else about, width="stretch")
        settings()


def about_checkpoint() -> str:
    """The chosen checkpoint by its own name, with its numbers of layers and heads once they are known."""
    name, engine = st.session_state["checkpoint"] or "", st.session_state.get("engine")
    line = f"**{plain(wording.model_name(name))}**"
    if engine is None or engine.files.name != name or not (engine.files.n_layers and engine.files.n_heads):
        return line
    return line + wording.n_layers_and_heads(engine.files.n_layers, engine.files.n_heads)


def about_checkpoint_and_texts() -> str:
    return f"{about_checkpoint()} · {plain(st.session_state['corpus'])}"


def section(see: str, body: Callable[[], None], notes: Notes | Callable[[], Notes]) -> None:
    """Draw a page without a title of its own: one of several in tabs. The arguments are those of `page`."""
    with errors_shown():
        body()
    if not first_screen_is_drawn() or state.lesson_is_on(st.session_state["page"] or "inspect"):
        return
    notes = notes() if callable(notes) else notes
    with st.container(horizontal=True, key="notes"):
        if see:
            _note(wording.HOW_TO_READ, partial(sentence, see, key=f"see {see[:16]}"))
        _note(wording.HOW, partial(_how, notes))
        if notes.paper:
            _note(notes.paper_title, partial(st.markdown, notes.paper))
        # Last, because these come and go with what the page draws.
        page_download()
        all_downloads()


def _how(notes: Notes) -> None:
    st.markdown(notes.method)
    if notes.caveat:
        st.markdown(notes.caveat)
    st.markdown(wording.READMES)
    references_download()


def _note(title: str, draw: Callable[[], object]) -> None:
    """Draw a note once it is opened: folded away, it would be sent and laid out again after every change."""
    with st.expander(title, key=f"unfolded {title}", on_change="rerun") as folded:
        if folded.open:
            draw()


def visit() -> Visit | None:
    """What a page on the corpus works with; None while texts are missing, after asking for them.

    Raises: AnalysisError where the checkpoint or the texts cannot be read.
    """
    return with_corpus(without_corpus())


def without_corpus() -> Visit:
    """What a page works with before it reads the corpus, or without it: no texts.

    Raises: AnalysisError where the checkpoint cannot be read.
    """
    choice = state.choice()
    controls.heads_off(choice)
    return Visit(choice=choice, engine=controls.engine(choice), inference=controls.inference(), texts=())


def with_corpus(visit: Visit) -> Visit | None:
    """Add the texts of the corpus; None while there are none, after asking for them.

    Raises: AnalysisError where the texts cannot be read.
    """
    corpus = controls.corpus_texts(visit.choice)
    texts = readable(visit.choice, visit.engine, corpus)
    if not texts:
        ask_for_texts(visit.choice, corpus)
        return None
    return replace(visit, texts=texts)


def readable(choice: Choice, engine: Engine, texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """The texts that the chosen attention can read; says so where some have no target for a decoder."""
    kind = choice.pass_settings(engine).kind
    usable = tuple(text for text in texts if can_read(kind, text))
    if len(usable) < len(texts):
        st.info(wording.without_target(len(texts) - len(usable), len(texts)))
    return usable


def can_read(kind: Kind, text: Text) -> bool:
    """Whether an attention can read a text: a decoder needs a source and a target."""
    return kind not in ("decoder", "cross") or len(text.segments) == 2


def ask_for_texts(choice: Choice, texts: tuple[Text, ...]) -> None:
    """Say how to add texts if there are none; `readable` has reported texts that cannot be read."""
    if choice.corpus == A_RESULTS_FOLDER:
        _lead_to_results()
    elif not texts:
        st.info(wording.WAIT_UPLOAD if choice.corpus == controls.UPLOAD else wording.WAIT_TYPED)


def _lead_to_results() -> None:
    """Links to the pages that draw the chosen results folder, from a page that needs texts."""
    name = st.session_state.get("results")
    if not name:
        st.info(wording.WAIT_RESULTS)
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="results without texts"):
        st.markdown(wording.results_without_texts(plain(str(name))), width="content")
        for page in PAGES_OF_RESULTS:
            st.page_link(st.session_state["pages"][page])
        use = partial(st.session_state.update, {"corpus": controls.corpora()[0]})
        st.button(wording.USE_SAMPLES, key="use samples", type="tertiary", icon=":material/article:", on_click=use)


def tabs(key: str, views: Mapping[str, Callable[[], None]]) -> None:
    """Draw tabs, of which only the open one runs, but all where the reader asks for all files of the page.

    Args:
        key: of the tabs in the session and in the link.
        views: function that draws each tab, by its title.
    """
    containers = st.tabs(list(views), key=key, on_change="rerun", bind="query-params")
    for tab, (title, draw) in zip(containers, views.items(), strict=True):
        if tab.open:
            with tab:
                draw()
        elif are_all_asked_for():
            try:
                with unseen(), tab:
                    draw()
            except AnalysisError as error:
                leave_out(title, str(error))


def link_to_inspect(heads: Sequence[Head]) -> None:
    """Link to the page Inspect with the chosen heads, if there are any."""
    if heads:
        names = ", ".join(head_name(*head) for head in heads)
        with st.container(key="to inspect", width="content"):
            st.page_link(st.session_state["pages"]["inspect"], label=f"Inspect {names}", icon=":material/search:")
