"""A text with its mentions, and what the chosen head chooses for each."""

from collections.abc import Sequence
from typing import Final

import streamlit as st

from core.coreference import NO_CHOICE, Candidates, MentionChoices
from core.mentions import MentionText
from dashboard import coreference_wording as wording
from dashboard.downloads import table_downloads
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.coreference_table import choices_table
from dashboard.plain import plain
from dashboard.state import Head
from dashboard.views.coreference_pass import Coreference

PICKED: Final = "coreference text"
"""Query parameter of the text that is shown, by its number in the file."""
LONGEST_NAME: Final = 60
"""Characters of a text's beginning in the list."""
RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
CHECK, CROSS, ARROW = "✓", "✗", "→"


def choices_in_a_text(found: Coreference, heads: list[Head], facts: dict[str, str]) -> None:
    """The choices of the head that was chosen last, in a text to be picked."""
    st.subheader(wording.TEXT)
    if not heads:
        st.info(wording.NO_HEAD)
        return
    head, texts, candidates = heads[-1], found.windows.texts, found.scores.candidates
    place = _picked(texts)
    one = choices_table([texts[place]], [found.choices[place]], head, candidates)
    right = one["right"].dropna()
    st.markdown(f"{wording.in_text(head_name(*head), int(right.sum()), len(right))} {wording.LEGEND}")
    with st.container(border=True, key="marked-text"):
        st.markdown(marked_text(texts[place], found.choices[place], head, candidates))
    with st.expander(wording.AS_TABLE):
        st.dataframe(one.drop(columns="text"), hide_index=True, key="choices", placeholder="–")
    table_downloads(
        "choices", choices_table(texts, found.choices, head, candidates), {**facts, "head": head_name(*head)}
    )


def _picked(texts: Sequence[MentionText]) -> int:
    """Place of the text that the reader picked; at first the one that the link numbers, of other texts the first.

    The link is written by hand: a bound list writes what it shows, and uploaded text is no part of a link.
    """
    numbers, names = range(1, len(texts) + 1), tuple(map(_beginning, texts))
    key = f"{PICKED} {hash(names)}"  # other texts, another list
    if PICKED not in st.session_state:
        linked = st.query_params.get(PICKED, "")
        st.session_state[PICKED] = True
        st.session_state[key] = next((number for number in numbers if str(number) == linked), 1)
    picked = st.selectbox(
        wording.PICK_TEXT,
        numbers,
        format_func=lambda number: f"{number}: {names[number - 1]}",
        key=key,
        persist_state="session",
    )
    if st.query_params.get(PICKED, "1") != str(picked):
        st.query_params[PICKED] = str(picked)
    return int(picked) - 1


def _beginning(text: MentionText) -> str:
    whole = f"{text.name} – {text.text.segments[0]}"
    return whole if len(whole) <= LONGEST_NAME else whole[: LONGEST_NAME - 1] + "…"


def marked_text(text: MentionText, choices: MentionChoices, head: Head, candidates: Candidates) -> str:
    """A text as Markdown that shows it as it is, with a mark at the head word of every mention.

    Args:
        text: with its mentions.
        choices: what every head chose.
        head: layer and head that are looked at.
        candidates: among which words.
    """
    segment, pieces, done = text.text.segments[0], list[str](), 0
    for place, mention in enumerate(text.mentions):
        start, end = text.spans[mention.head]
        pieces += [plain(segment[done:start]), _mark(text, choices, head, candidates, place)]
        done = end
    return "".join([*pieces, plain(segment[done:])])


def _mark(text: MentionText, choices: MentionChoices, head: Head, candidates: Candidates, place: int) -> str:
    """The head word of a mention with its number, and where it refers back, what was chosen and whether it is right."""
    shown, antecedents = text.shown, text.antecedents[place]
    word = f"{plain(shown[text.mentions[place].head])}{_raised(place)}"
    if not antecedents:
        return f":gray-background[{word}]"
    if not choices.is_read[place]:
        return f":gray-background[{word} {wording.NOT_READ}]"
    found = int(choices.of(candidates)[*head, place])
    numbers = {mention.head: number for number, mention in enumerate(text.mentions)}
    if found == NO_CHOICE:
        named = wording.NOTHING_CHOSEN
    else:
        named = _raised(numbers[found]) if found in numbers else f"“{plain(shown[found])}”"
    if found in (text.mentions[before].head for before in antecedents):
        return f":green-background[{word} {ARROW} {named} {CHECK}]"
    return f":orange-background[{word} {ARROW} {named} {CROSS} ({_raised(antecedents[-1])})]"


def _raised(place: int) -> str:
    """The number of a mention, raised."""
    return str(place + 1).translate(RAISED)
