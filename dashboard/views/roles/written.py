"""The tab *Your roles* of the page Roles: the roles that the reader wrote, and a form to write one."""

import re
from functools import partial
from typing import Any, Final, get_args

import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles import rules
from attention_sieve.core.roles.measures import RoleSet
from attention_sieve.core.roles.record import LACKS
from attention_sieve.core.roles.roles import role_named
from attention_sieve.core.roles.sieves import sieve_cells, with_notes
from attention_sieve.core.texts.patterns import QUERY
from attention_sieve.core.texts.text import Text, decoded, read_typed
from attention_sieve.dashboard import state
from attention_sieve.dashboard.components.arcs import MOST_HEADS, attention_arcs
from attention_sieve.dashboard.components.arcs.look import ArcSettings, ArcStyle, Overlay
from attention_sieve.dashboard.components.into_view import scroll_to
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.plain import errors_shown, plain, show_error
from attention_sieve.dashboard.views.arcs import maps_of
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.roles import wording
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED, NUMBER

TOML: Final = "role as TOML"
"""Key of the role that is being written, of which the form below writes what it can."""
GRID: Final = "roles grid"
"""Place of the page's grid, where a role is seen once it is scored."""
IN_FORM: Final = "role in the form"
"""Key of what the form wrote last."""
COLOURS: Final = ("#AA3377", "#332288", "#117733", "#882255")
"""Colours of the first roles."""
CONDITIONS: Final = {
    "any": "",
    "words": "words",
    "of a kind": "kinds",
    "a part of speech": "pattern",
    "a named entity": "entities",
    "dependents in a relation": "dependent_of",
    "heads in a relation": "head_of",
    "at a position": "positions",
    "a word of a tree": "tree",
}
PARTS_OF_SPEECH: Final = ("NOUN", "PROPN", "VERB", "AUX", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CCONJ", "PART")
AT_OFFSET: Final = "offset"
WHERE: Final = {"anywhere": "", "at a distance": AT_OFFSET, **{name: name for name in get_args(rules.Relative)}}


def written_roles(visit: Visit, heads: list[Head]) -> None:
    st.markdown(wording.WRITTEN_SEE)
    for name in state.written():
        _own(name)
    _form(visit, heads)


def _own(name: str) -> None:
    role, look = rules.written_role(name), LOOKS[name]
    with st.container(horizontal=True, vertical_alignment="center", border=True, key=f"role {look.letter}"):
        st.markdown(f"**{plain(role.name)}** ({look.letter})", width="stretch")
        change = partial(st.session_state.update, {TOML: rules.toml_of(rules.table_of(role))})
        st.button("Change", key=f"change {look.letter}", on_click=change, type="tertiary")
        st.download_button(
            "Save",
            partial(rules.toml_of, rules.table_of(role)),
            file_name=f"{role.name}.toml",
            mime="application/toml",
            key=f"save {look.letter}",
            on_click="ignore",
            type="tertiary",
        )
        others = tuple(other for other in state.written() if other != name)
        remove = partial(state.write_roles, others)
        st.button("Remove", key=f"remove {look.letter}", on_click=remove, type="tertiary")


@st.fragment
def _form(visit: Visit, heads: list[Head]) -> None:
    """Write a role; the page is drawn anew once it is to be scored."""
    with st.container(border=True):
        table = _named() | _sides()
        if table != st.session_state.get(IN_FORM):
            st.session_state[IN_FORM], st.session_state[TOML] = table, rules.toml_of(table)
        with st.expander("The role as a file"):
            st.caption(wording.TOML_HELP)
            st.text_area("The role as a file", key=TOML, height="content", label_visibility="collapsed")
            st.file_uploader("Open a file", type=["toml"], key="role file", on_change=_uploaded, max_upload_size=1)
        try:
            role = rules.read_role(st.session_state[TOML])
            name = role.id
            others = tuple(other for other in state.written() if rules.written_role(other).name != role.name)
            state.checked_written((*others, name))
            _preview(visit, name, heads[-MOST_HEADS:])
        except AnalysisError as error:
            show_error(error)
            return
        if st.button("Score this role", key="score role", type="primary", disabled=name in state.written()):
            state.write_roles((*others, name))
            scroll_to(GRID)
            st.rerun()


def _named() -> dict[str, Any]:
    number = len(state.written())
    taken = {look.letter for look in LOOKS.values()} | {LOOKS[name].letter for name in state.written()}
    free = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" if letter not in taken]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Name", "my role", max_chars=50, key="role name", persist_state="session")
        letter = st.selectbox("Letter", free, key=f"role letter {number}", width=90)
        colour = st.color_picker("Colour", COLOURS[number % len(COLOURS)], key=f"role colour {number}")
    return {"role": rules.FORMAT, "name": name, "letter": letter, "colour": colour}


def _sides() -> dict[str, Any]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        queries = _condition("from", "From tokens that are")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        keys = _condition("to", "to tokens that are")
        is_pair = any(node["RIGHT_ID"] == QUERY for node in keys.get("tree", ()))  # which says where a key stands
        known = {"anywhere": ""} if is_pair else WHERE
        index = 0 if is_pair else 1
        key = f"role where {is_pair}"
        name = st.selectbox("and stand", known, index=index, key=key, disabled=is_pair, persist_state="session")
        where = known[name]
        if where == AT_OFFSET:
            first, last = st.slider(
                "Tokens after the one that looks", -10, 10, (-1, -1), key="role offsets", persist_state="session"
            )
            keys["offset"] = [first, last]
        elif where:
            keys["relative"] = where
        if where in ("head", "dependent"):
            keys["relations"] = _parts(st.text_input("Relations", "nsubj", key="role relations"))
    return {**({"from": queries} if queries else {}), "to": keys}


def _condition(side: str, label: str) -> dict[str, Any]:
    name = CONDITIONS[st.selectbox(label, CONDITIONS, key=f"role {side}", persist_state="session")]
    key = f"role {side} {name}"
    match name:
        case "":
            return {}
        case "kinds":
            kinds = st.multiselect("Any of", rules.KINDS, ["punctuation"], key=key, persist_state="session")
            return {name: kinds}
        case "pattern":
            parts = st.multiselect("Any of", PARTS_OF_SPEECH, ["VERB"], key=key, persist_state="session")
            return {name: [{"POS": {"IN": parts}}]}
        case "tree":
            return {name: _tree(key, may_look=side == "to")}
        case _:
            typed = st.text_input("Any of", wording.FIRST_VALUES[name], key=key, persist_state="session")
            values = _parts(typed)
            is_number = name == "positions" and all(re.fullmatch("-?[0-9]{1,6}", value) for value in values)
            return {name: [int(value) for value in values] if is_number else values}


def _tree(key: str, *, may_look: bool) -> list[dict[str, Any]]:
    """A pattern of two words of a tree, of which the second may be the one that looks."""
    parts = st.multiselect("Parts of speech", PARTS_OF_SPEECH, ["VERB"], key=key, persist_state="session")
    operator = wording.BESIDE[st.selectbox("that have a", wording.BESIDE, key=f"{key} with", persist_state="session")]
    others = st.multiselect("Its parts of speech", PARTS_OF_SPEECH, key=f"{key} other", persist_state="session")
    relations = _parts(st.text_input("Its relation to its head", "nsubj", key=f"{key} dep", persist_state="session"))
    looks = may_look and st.checkbox("which looks", value=True, key=f"{key} looks", persist_state="session")
    second = {name: {"IN": values} for name, values in (("POS", others), ("DEP", relations)) if values}
    return [
        {"RIGHT_ID": "word", "RIGHT_ATTRS": {"POS": {"IN": parts}} if parts else {}},
        {"LEFT_ID": "word", "REL_OP": operator, "RIGHT_ID": QUERY if looks else "other", "RIGHT_ATTRS": second},
    ]


def _parts(typed: str) -> list[str]:
    return [part.strip() for part in typed.split(",") if part.strip()]


def _uploaded() -> None:
    """Take an uploaded role in place of what is written; its text is checked as if it were typed."""
    if (file := st.session_state["role file"]) is not None:
        with errors_shown():
            st.session_state[TOML] = decoded(file.getvalue())


def _preview(visit: Visit, name: str, heads: list[Head]) -> None:
    """Count the cases of a role in the text on screen, and lay them over the arcs of the chosen heads."""
    text = _text_on_screen()
    text_attention, _ = visit.inference.look(visit.engine, text, visit.settings, too_long="truncate")
    noted = with_notes(text_attention.text, text, RoleSet((name,)))
    cells = sieve_cells(name, noted, text_attention.causal)
    st.markdown(wording.cases(int(cells.any(axis=1).sum()), int(cells.sum()), plain(" / ".join(text.segments))))
    if not cells.any() and (lacks := role_named(name).lacks) != LACKS:
        st.caption(plain(f"{lacks[0].upper()}{lacks[1:]}."))
    in_window = cells[slice(*text_attention.window.queries), slice(*text_attention.window.keys)]
    if heads and in_window.any():
        first = text_attention.window.queries[0] + int(in_window.any(axis=1).argmax())
        attention_arcs(
            maps_of(text_attention, heads, visit.engine),
            Selection("role arcs", ArcSettings(sieve=name, pin=f"from-{first}"), (name, text)),
            ArcStyle(controls="without"),
            overlay=Overlay(chosen=(name, in_window)),
        )


def _text_on_screen() -> Text:
    """The text that Inspect shows, or its example."""
    try:
        texts = read_typed(st.session_state.get("text") or st.query_params.get("text") or EXAMPLE_TYPED)
    except AnalysisError:
        texts = read_typed(EXAMPLE_TYPED)
    return texts[min(st.session_state.get(NUMBER, 0), len(texts) - 1)]
