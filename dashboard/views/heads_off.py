"""Heads switched off: the buttons that do it, and what changes then, on one text and over a corpus."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Bool, Float

from attention_sieve.cache.looks import changed
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.dashboard import link, state, wording
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.text.arcs import visible
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.state import GUESS, Choice
from attention_sieve.dashboard.views.corpus import Corpus, corpus, kept_corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import halves, toggle
from attention_sieve.dashboard.views.text.on_screen import text_facts, waiting

if TYPE_CHECKING:
    from attention_sieve.core.passes.outputs import HeadOutput

MOST_CHANGES: Final = 12
"""Number of role changes that are listed; the file has all."""


def switch_buttons(choice: Choice, heads: list[Head]) -> None:
    """Buttons that switch the chosen heads off, and back on those that are off."""
    on = [head for head in heads if head not in choice.off]
    off = [head for head in heads if head in choice.off]
    if on:
        st.button(
            wording.switch("off", [head_name(*head) for head in on]),
            key="switch off",
            icon=":material/power_off:",
            help=wording.SWITCH_HELP,
            on_click=state.switch_off,
            args=([*choice.off, *on],),
        )
    if off:
        st.button(
            wording.switch("on", [head_name(*head) for head in off]),
            key="switch on",
            icon=":material/power:",
            on_click=state.switch_off,
            args=([head for head in choice.off if head not in off],),
        )


def what_changes(visit: Visit, screen: PassedText) -> None:
    """Show what the heads that are off did: to the model's output, and to the roles of later heads on this text."""
    if screen.all_on is None:
        return
    st.subheader(wording.what_changes(len(visit.choice.off)))
    left, right = halves()
    with left:
        _output(visit, screen)
    with right:
        _roles(visit, screen, screen.all_on)


def _output(visit: Visit, screen: PassedText) -> None:
    token = token_to_predict(screen)
    with waiting() as report:
        change = visit.inference.on_screen(visit.engine, changed, screen.text, visit.settings, token, report=report)
    if change.cosine is not None:
        st.metric(wording.COSINE, f"{change.cosine:.4f}", help=wording.COSINE_HELP, border=True)
    if change.head is None:
        st.markdown(wording.EMBEDS_ONLY)
        return
    if change.head.token is not None and screen.text_attention.causal:  # the section on the next token has it
        return
    moves = wording.output_moves(change.head.unit, change.head.distance)
    st.markdown(moves, help=None if change.head.distance is None else wording.MOVES_HELP)
    table = _output_table(change.head)
    bar = st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)
    number = st.column_config.NumberColumn(format="%.3f")
    columns = dict.fromkeys(("all heads on", "without"), number if change.head.unit == "value" else bar)
    st.dataframe(table, hide_index=True, column_config=columns)
    table_downloads("output", table, text_facts(visit, screen.text))


def token_to_predict(screen: PassedText) -> int | None:
    """Position of the token that the reader has picked, at first from the link; None for the model's default."""
    positions = _own_tokens(screen)
    if (value := link.take(GUESS)) is not None:
        linked = int(value) if re.fullmatch("[0-9]{1,6}", value) else None
        st.session_state[GUESS] = linked
        if linked not in positions:
            link.say(wording.no_such_guess(link.quoted(value)))
    token = st.session_state.get(GUESS)
    return token if token in positions else None


def _own_tokens(screen: PassedText) -> list[int]:
    """Positions of the tokens that the tokenizer did not add; of all of them where ids were given."""
    queries = screen.text_attention.text.queries
    return [int(position) for position in np.flatnonzero((queries.segments != SPECIAL) | (queries.given is not None))]


def ask_which_token(screen: PassedText, guessed: int) -> None:
    """Let the reader pick another token for the language model to predict; the link has its position."""
    st.session_state[GUESS] = guessed
    tokens, is_causal = screen.text_attention.text.queries.tokens, screen.text_attention.causal
    picked = st.selectbox(
        wording.NEXT_TOKEN if is_causal else wording.MASKED_WORD,
        _own_tokens(screen),
        format_func=lambda position: f"“{tokens[position]}” ({position})",
        key=GUESS,
        help=wording.NEXT_TOKEN_HELP if is_causal else wording.MASKED_WORD_HELP,
        persist_state="session",
    )
    link.put([GUESS], {GUESS: str(picked)})


def _output_table(head: "HeadOutput") -> pd.DataFrame:
    name = "class" if head.token is None else "token"
    # A token that begins a word begins with a space, which a table would not show.
    return pd.DataFrame({name: list(map(visible, head.names)), "all heads on": head.before, "without": head.after})


def _roles(visit: Visit, screen: PassedText, all_on: PassedText) -> None:
    choice, before = visit.choice, all_on.scores
    holds = (all_on.roles(choice.criterion), screen.roles(choice.criterion))
    table = role_changes(screen.scored.roles, (before, screen.scores), holds)
    n_heads = table[["layer", "head"]].drop_duplicates().shape[0]
    first_off = min(layer for layer, _ in choice.off)
    n_later = before.shape[2] * (before.shape[1] - first_off - 1)
    st.markdown(wording.roles_change(n_heads, n_later, choice.criterion.tau, choice.scale))
    if len(table):
        shown = table.head(MOST_CHANGES).drop(columns=["layer", "head"]).rename(columns={"name": "head"})
        number = st.column_config.NumberColumn(format="%.2f")
        st.dataframe(shown, hide_index=True, column_config=dict.fromkeys(("all heads on", "without"), number))
        facts = text_facts(visit, screen.text) | provenance.threshold_facts(choice)
        table_downloads("role changes", table, facts)


def role_changes(
    roles: tuple[str, ...],
    scores: tuple[Float[np.ndarray, "role layer head"], Float[np.ndarray, "role layer head"]],
    holds: tuple[Bool[np.ndarray, "role layer head"], Bool[np.ndarray, "role layer head"]],
) -> pd.DataFrame:
    """Roles that heads gain or lose on one text, the largest difference first.

    Args:
        scores: with all heads on, and without some.
        holds: which head has which role, likewise.
    """
    before, after = scores
    coarse, fine = shown_roles(before, roles)
    rows = [
        {
            "name": head_name(layer, head),
            "layer": layer,
            "head": head,
            "role": role,
            "change": "gained" if holds[1][index, layer, head] else "lost",
            "all heads on": float(before[index, layer, head]),
            "without": float(after[index, layer, head]),
        }
        for index, role in enumerate(roles)
        if role in coarse + fine
        for layer, head in np.argwhere(holds[0][index] != holds[1][index]).tolist()
    ]
    columns = ["name", "layer", "head", "role", "change", "all heads on", "without"]
    table = pd.DataFrame(rows, columns=columns)
    order = (table["all heads on"] - table["without"]).abs().sort_values(ascending=False, kind="stable").index
    return table.loc[order]


def with_all_on(visit: Visit) -> Corpus | None:
    """The corpus with all heads on, for comparison where some are off; computed only on request."""
    if not visit.choice.off:
        return None
    all_on = replace(visit, choice=replace(visit.choice, off=()))
    cached = kept_corpus(all_on)
    return corpus(all_on) if cached is None and toggle(wording.COMPARE, key="compare") else cached


def say_role_changes(now: HeadTests, before: HeadTests, coarse: tuple[str, ...]) -> None:
    """Say how many coarse roles are gained and lost over the corpus."""
    indices = [now.roles.index(role) for role in coarse]
    held, held_before = now.holds[indices], before.holds[indices]
    gained, n_lost = counted(int((held & ~held_before).sum()), "role"), int((held_before & ~held).sum())
    st.markdown(f"Compared with all heads on: {gained} gained, {n_lost:,} lost.")
