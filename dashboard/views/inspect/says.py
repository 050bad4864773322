"""What a model that predicts says of the text on screen, with and without the heads that are off: the next token, the
word in the place of a mask, or the class."""

from typing import TYPE_CHECKING

import streamlit as st

from attention_sieve.cache.looks import said
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.question import PassedText
from attention_sieve.dashboard import link
from attention_sieve.dashboard.components.drawing import drawing
from attention_sieve.dashboard.figures.text.bars import MOST, bars_of, bars_svg, read_names
from attention_sieve.dashboard.state import GUESS
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.heads_off import ask_which_token, token_to_predict
from attention_sieve.dashboard.views.inspect import wording
from attention_sieve.dashboard.views.inspect.next_token import next_token
from attention_sieve.dashboard.views.text.on_screen import waiting

if TYPE_CHECKING:
    from attention_sieve.core.passes.outputs import HeadOutput


def what_it_says(visit: Visit, screen: PassedText, heads: list[Head]) -> None:
    """Draw the section on what the model says; nothing for a checkpoint that only embeds texts."""
    if screen.text_attention.causal:
        next_token(visit, screen, heads)
        return
    output = _said(visit, screen, None)
    if output is None or output.token is None:
        link.put([GUESS], {})
    elif (token := token_to_predict(screen)) is not None:
        output = _said(visit, screen, token)
    if output is None:
        return
    st.subheader(wording.SAYS)
    if output.token is not None:
        ask_which_token(screen, output.token)
    names = read_names(output.names) if output.token is not None else list(output.names)
    st.markdown(wording.says(names, output.unit, (output.before, output.after), visit.choice.off))
    if output.unit != "value":
        bars = bars_of(names, output.after, output.before if visit.choice.off else None)
        n_rows = MOST if output.token is not None else len(bars.names)
        drawing(bars_svg(bars, n_rows), key="says", label=bars.description)


def _said(visit: Visit, screen: PassedText, token: int | None) -> "HeadOutput | None":
    with waiting() as report:
        return visit.inference.on_screen(visit.engine, said, screen.text, visit.settings, token, report=report)
