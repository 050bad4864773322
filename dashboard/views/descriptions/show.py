"""Draws the description of a head: its sentence, and the texts that show it most clearly."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.descriptions.examples import examples
from attention_sieve.core.descriptions.rests import resting
from attention_sieve.core.texts.parsers import trees_source
from attention_sieve.dashboard.components.marked_texts import marked_texts
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.descriptions import wording
from attention_sieve.dashboard.views.descriptions.known import (
    Described,
    can_parse,
    request_descriptions,
    requested_descriptions,
)
from attention_sieve.dashboard.views.descriptions.marked import Shown, shown_links, shown_rests
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.text import stories

RESTS: Final = "rests shown"
"""Key of whether the reader wants to see where heads rest."""


def show_description(visit: Visit, tested: Corpus, head: Head, buttons: DeltaGenerator, in_text: str = "") -> None:
    """Show the description of a head with its evidence and examples, or a button to compute it.

    Args:
        in_text: a sentence on what the head does in the text on screen, which follows; escaped for Markdown.
    """
    described = requested_descriptions(visit, tested.tests)
    if described is not None:
        description = described.heads[head]
        does = plain(wording.does(description))
        sentence = f"{wording.over(description)} **{head_name(*head)}** {does} {in_text}"
        relations = trees_source(described.texts)
        st.markdown(sentence, help=plain(wording.evidence(description, relations)))
        _examples(visit, described, head, buttons)
    if described is None or (described.predictions is None and can_parse(visit)):
        buttons.button(
            wording.ASK if described is None else wording.ASK_RELATIONS,
            help=wording.ASK_HELP,
            key="describe heads",
            icon=":material/manage_search:",
            on_click=request_descriptions,
            args=(visit,),
        )


def _examples(visit: Visit, described: Described, head: Head, buttons: DeltaGenerator) -> None:
    """The clearest examples; a click puts one on screen."""
    _, clearest = examples(
        described.heads[head], described.texts, described.surface, described.predictions, described.mentions
    )
    if clearest:
        _draw(wording.EXAMPLES, shown_links(clearest), head)
        return
    fact = resting(described.heads[head])
    if fact is None:
        return
    if not st.session_state.get(RESTS):
        show = partial(st.session_state.update, {RESTS: True})
        buttons.button(wording.SHOW_RESTS, key="show rests", icon=":material/short_text:", on_click=show)
        return
    _draw(wording.rest_examples(fact, described.heads[head].sight), shown_rests(visit, described, fact, head), head)


def _draw(caption: str, texts: Sequence[Shown], head: Head) -> None:
    if not texts:
        return
    st.caption(caption)
    marked_texts(
        [text.marked for text in texts],
        key="examples",
        label=wording.examples_of(head_name(*head)),
        on_pick=lambda index: stories.put_on_screen(texts[index].typed),
    )
