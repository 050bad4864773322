"""Draws what a head mostly does: its sentence, and the texts that show it most clearly."""

import streamlit as st

from core.attention.settings import Head, head_name
from core.descriptions.examples import Example, examples
from core.errors import AnalysisError
from core.texts.text import Text, write_typed
from core.texts.words import Words
from dashboard.plain import plain
from dashboard.views.corpus import Corpus
from dashboard.views.descriptions import wording
from dashboard.views.descriptions.known import Described, ask_for_them, asked_descriptions, can_parse, kept_descriptions
from dashboard.views.frame import Visit
from dashboard.views.inspect import stories


def show_description(visit: Visit, tested: Corpus, head: Head) -> None:
    """Say what a head does, what that stands on, and where it shows; or offer to find it out."""
    described = asked_descriptions(visit, tested)
    if described is not None:
        description = described.heads[head]
        st.markdown(f"**{head_name(*head)}** {plain(wording.does(description))}")
        st.caption(plain(wording.evidence(description)))
        _examples(described, head)
    if described is None or (described.predictions is None and can_parse(visit)):
        st.button(
            wording.ASK if described is None else wording.ASK_RELATIONS,
            help=wording.ASK_HELP,
            key="describe heads",
            icon=":material/manage_search:",
            on_click=ask_for_them,
            args=(visit,),
        )


def kept_sentences(visit: Visit, tested: Corpus) -> list[list[str]] | None:
    """The sentence of every head, by layer, for the tooltip; None where that needs a pass."""
    described = kept_descriptions(visit, tested)
    if described is None:
        return None
    by_layer: dict[int, list[str]] = {}
    for (layer, _), description in described.heads.items():
        by_layer.setdefault(layer, []).append(wording.tip(description))
    return list(by_layer.values())


def _examples(described: Described, head: Head) -> None:
    """The texts that show it most clearly; a click puts one on screen."""
    if described.predictions is None:
        return
    _, clearest = examples(described.heads[head], described.surface, described.predictions)
    if not clearest:
        return
    st.markdown(wording.EXAMPLES)
    for number, example in enumerate(clearest):
        text, words = described.texts[example.position], described.predictions[example.position].dependencies.words
        typed = _typed(text)
        st.button(
            _marked(text, words, example),
            key=f"example {number}",
            type="tertiary",
            icon=":material/format_quote:",
            on_click=stories.put_on_screen,
            args=(typed,),
            disabled=typed is None,
        )


def _marked(text: Text, words: Words, example: Example) -> str:
    """A text whose linked words stand out: those that look bold, those looked at on a coloured ground."""
    signs = {link.query: ("**", "**") for link in example.links} | {
        link.key: (":primary-background[", "]") for link in example.links
    }
    parts = [_marked_segment(text, words, side, signs) for side in range(len(text.segments))]
    shown = words.shown(text)
    links = ", ".join(f"{plain(shown[link.query])} → {plain(shown[link.key])}" for link in example.links)
    return f"{' / '.join(parts)} ({links})"


def _marked_segment(text: Text, words: Words, side: int, signs: dict[int, tuple[str, str]]) -> str:
    segment, at, parts = text.segments[side], 0, []
    for place in sorted(signs):
        if words.segments[place] != side:
            continue
        start, end = words.spans[place].tolist()
        before, after = signs[place]
        parts += [plain(segment[at:start]), before, plain(segment[start:end]), after]
        at = end
    return "".join([*parts, plain(segment[at:])])


def _typed(text: Text) -> str | None:
    """A text as a reader would type it; None where it holds what no line can hold."""
    try:
        return write_typed([text])
    except AnalysisError:
        return None
