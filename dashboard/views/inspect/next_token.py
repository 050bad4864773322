"""What a causal language model expects next, with and without the heads that are off, and which heads speak for it."""

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.cache.looks import added_to_logit, expected_next, looked_from
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.generation.fetching import fetching, fetching_table
from attention_sieve.core.roles.question import PassedText
from attention_sieve.dashboard import state
from attention_sieve.dashboard.components.drawing import drawing
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.text.arcs import visible
from attention_sieve.dashboard.figures.text.bars import bars_of, bars_svg, read_names
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import command
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.heads_off import ask_which_token, token_to_predict
from attention_sieve.dashboard.views.inspect import wording
from attention_sieve.dashboard.views.pickers import from_list
from attention_sieve.dashboard.views.text.on_screen import text_facts, waiting

if TYPE_CHECKING:
    from attention_sieve.core.generation.attribution import Attribution
    from attention_sieve.core.passes.outputs import NextTokens

ASKED: Final = "asked token"
"""Key, and query parameter, of a token whose probability the reader asks for."""
TABLE_HEIGHT: Final = 320
"""Of the ranking of heads, in pixels; it scrolls."""


def next_token(visit: Visit, screen: PassedText, heads: list[Head]) -> None:
    """Draw the section for a text that is read causally; nothing for a checkpoint that predicts no next token."""
    section = st.container()
    position, asked, error = token_to_predict(screen), st.session_state.get(ASKED, ""), None
    try:
        tokens = _next_tokens(visit, screen, position, asked)
    except AnalysisError as wrong:
        tokens, error = _next_tokens(visit, screen, position, ""), wrong
    if tokens is None:
        return
    with section:
        st.subheader(wording.NEXT_TOKEN)
        ask_which_token(screen, tokens.position)
        before, after = np.exp(tokens.log_probabilities)
        names = read_names(tokens.names)
        st.markdown(wording.says(names, "probability", (before, after), visit.choice.off))
        bars = bars_of(names, after, before if visit.choice.off else None)
        drawing(bars_svg(bars), key="says", label=bars.description)
        with st.expander(wording.AS_TABLE):
            _table(visit, screen, tokens)
        st.text_input(wording.ASKED, key=ASKED, help=wording.ASKED_HELP, bind="query-params", persist_state="session")
        if error is not None:
            show_error(error)
        _attribution(visit, screen, tokens, heads)


def _next_tokens(visit: Visit, screen: PassedText, position: int | None, asked: str) -> "NextTokens | None":
    with waiting() as report:
        return visit.inference.on_screen(
            visit.engine, expected_next, screen.text, visit.settings, position, asked, report=report
        )


def _table(visit: Visit, screen: PassedText, tokens: "NextTokens") -> None:
    before, after = np.exp(tokens.log_probabilities)
    table = pd.DataFrame({"token": list(map(visible, tokens.names)), "probability": before})
    if tokens.follows is not None:
        table = table.assign(follows=[token == tokens.follows for token in tokens.ids])
    if visit.choice.off:
        change = tokens.log_probabilities[1] - tokens.log_probabilities[0]
        table = table.rename(columns={"probability": "all heads on"}).assign(without=after, change=change)
    bar = st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)
    columns = dict.fromkeys(("probability", "all heads on", "without"), bar)
    nats = st.column_config.NumberColumn(format="%+.2f", help=wording.CHANGE_HELP)
    follows = st.column_config.CheckboxColumn(help=wording.FOLLOWS_HELP)
    st.dataframe(table, hide_index=True, column_config={**columns, "change": nats, "follows": follows})
    table_downloads("next token", table, _facts(visit, screen, tokens, "--tokens=tokens.parquet"))


def _facts(visit: Visit, screen: PassedText, tokens: "NextTokens", option: str) -> dict[str, str]:
    asked = st.session_state.get(ASKED)
    options = [f"--after={tokens.position}", *([f"--token={asked}"] if asked else []), option]
    return {
        **text_facts(visit, screen.text),
        "after token": str(tokens.position),
        **command("next-token", visit.choice, visit.engine, [screen.text], *options, too_long="truncate"),
    }


def _attribution(visit: Visit, screen: PassedText, tokens: "NextTokens", heads: list[Head]) -> None:
    """A map of what each head adds to the logit of one of the tokens, and a ranking with where each looked."""
    names = {f"“{visible(name)}”": token for name, token in zip(tokens.names, tokens.ids)}
    start = next((name for name, token in names.items() if token == tokens.follows), None)
    token = from_list(wording.SPEAK_FOR, names, key="speak for", start=start)
    added = _added_to_logit(visit, screen, tokens, token)
    _fetching(visit, screen, tokens, token, added)
    if added is not None:
        _added_map(visit, screen, tokens, token, added, heads)


def _added_to_logit(visit: Visit, screen: PassedText, tokens: "NextTokens", token: int) -> "Attribution | None":
    """What each part adds to the logit of a token; None, with a sentence, where that is not known."""
    try:
        with waiting() as report:
            return visit.inference.on_screen(
                visit.engine, added_to_logit, screen.text, visit.settings, tokens.position, token, report=report
            )
    except AnalysisError as error:
        st.info(plain(str(error)))
        return None


def _added_map(
    visit: Visit,
    screen: PassedText,
    tokens: "NextTokens",
    token: int,
    added: "Attribution",
    heads: list[Head],
) -> None:
    name = visible(tokens.names[tokens.ids.index(token)])
    picture = HeadMap(
        title=wording.added(name),
        label=f"{wording.added(name)}, heads of {visit.engine.files.name}",
        values=added.adds.heads,
        bound=round_bound(float(np.nanmax(np.abs(added.adds.heads)))),
        signed=True,
        low_label=wording.AGAINST,
        high_label=wording.FOR,
        n_shared=visit.engine.files.n_shared,
    )
    reset = (visit.engine.files.fingerprint, screen.text, visit.settings, tokens.position, token, state.n_pushed())
    show_head_map(
        picture,
        head_selection("next token map", heads, (*reset, tuple(heads)), state.push_heads),
        file="map of direct logit attribution",
        facts=_facts(visit, screen, tokens, f"--token-id={token}") | {"next token": name},
    )
    st.caption(f"{wording.parts(added.adds)} {wording.ADDED_NOTE}{wording.CAP_NOTE if added.capped else ''}")


def _fetching(
    visit: Visit,
    screen: PassedText,
    tokens: "NextTokens",
    token: int,
    added: "Attribution | None",
) -> None:
    """A ranking of heads: what each adds for the token, where it looked from the token before, and what it took."""
    looked, position = screen.text_attention.text, tokens.position
    with waiting() as report:
        row = visit.inference.on_screen(visit.engine, looked_from, screen.text, visit.settings, position, report=report)
    found = fetching(row, looked.queries.ids[: position + 1], token, added)
    table = fetching_table(found, looked.keys.tokens)
    st.markdown(wording.fetched(visible(tokens.names[tokens.ids.index(token)]), found))
    logits = partial(st.column_config.NumberColumn, format="%+.2f")
    share = st.column_config.ProgressColumn("attention", format="percent", min_value=0, max_value=1)
    columns = {
        "adds": logits(help=wording.ADDED_NOTE),
        "capped": logits(help=wording.CAPPED_HELP),
        "from copies": logits(help=wording.FROM_COPIES_HELP),
        "looks at": st.column_config.TextColumn(help=wording.LOOKS_AT_HELP),
        "share": share,
        "on copies": st.column_config.ProgressColumn(
            format="percent", min_value=0, max_value=1, help=wording.on_copies_help(found.by_chance)
        ),
    }
    shown = table.assign(**{"looks at": list(map(visible, table["looks at"]))}).drop(columns=["layer", "head"])
    key = f"heads of token {position} {token}"
    st.dataframe(
        shown.rename(columns={"name": "head"}),
        hide_index=True,
        column_config=columns,
        height=TABLE_HEIGHT,
        key=key,
        on_select=partial(_choose_row, key, list(zip(table["layer"].tolist(), table["head"].tolist()))),
        selection_mode="single-row",
    )
    table_downloads("heads of the next token", table, _facts(visit, screen, tokens, f"--token-id={token}"))


def _choose_row(key: str, heads: list[Head]) -> None:
    """Choose the head of the selected row, so that its arcs are drawn."""
    if rows := st.session_state[key].selection.rows:
        state.push_heads([heads[rows[0]]])
