"""A text with its mentions, and what the chosen head chooses for each."""

from collections.abc import Sequence
from typing import Final

import streamlit as st

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.coreference.accuracy import NO_CHOICE, Candidates, MentionChoices
from attention_sieve.core.coreference.analysis import CoreferenceFinding
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.dashboard import link
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.coreference import choices_table
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.grammar.coreference import wording

PICKED: Final = "coreference text"
"""Query parameter of the text that is shown, by its number in the file."""
LONGEST_NAME: Final = 60
"""Characters of a text's beginning in the list."""
RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
CHECK, CROSS, ARROW = "✓", "✗", "→"


def choices_in_a_text(finding: CoreferenceFinding, heads: list[Head], facts: dict[str, str]) -> None:
    if not heads:
        st.info(wording.NO_HEAD)
        return
    head, texts, candidates = heads[-1], finding.texts, finding.settings.candidates
    position = _picked(texts)
    text, choices = texts[position], finding.choices[position]
    table = choices_table([text], [choices], head, candidates)
    is_right = table["right"].dropna()
    st.markdown(f"{wording.in_text(head_name(*head), int(is_right.sum()), len(is_right))} {wording.LEGEND}")
    with st.container(border=True, key="marked-text"):
        st.markdown(marked_text(text, choices, head, candidates))
    with st.expander(wording.AS_TABLE):
        st.dataframe(table.drop(columns="text"), hide_index=True, key="choices", placeholder="–")
    table_downloads(
        "choices",
        choices_table(texts, finding.choices, head, candidates),
        {**without_command(facts), "head": head_name(*head)},
    )


def _picked(texts: Sequence[MentionText]) -> int:
    """Position of the text that the reader picked; at first the one whose number is in the link, else the first.

    The link is written by hand: a bound list writes the text that it shows, and uploaded text is no part of a link.
    """
    numbers, names = range(1, len(texts) + 1), tuple(map(_beginning, texts))
    key = f"{PICKED} {hash(names)}"  # other texts, another list
    if (value := link.take(PICKED)) is not None:
        linked = st.session_state[key] = next((number for number in numbers if str(number) == value), 1)
        if str(linked) != value:
            link.say(shared_wording.no_such_number(link.quoted(value), len(texts), linked))
    number = st.selectbox(
        wording.PICK_TEXT,
        numbers,
        format_func=lambda number: f"{number}: {names[number - 1]}",
        key=key,
        persist_state="session",
    )
    if st.query_params.get(PICKED, "1") != str(number):
        st.query_params[PICKED] = str(number)
    return int(number) - 1


def _beginning(text: MentionText) -> str:
    title = f"{text.name} – {text.text.segments[0]}"
    return title if len(title) <= LONGEST_NAME else title[: LONGEST_NAME - 1] + "…"


def marked_text(text: MentionText, choices: MentionChoices, head: Head, candidates: Candidates) -> str:
    """A text as Markdown that shows it as it is, with a mark at the head word of every mention.

    Args:
        head: layer and head whose choices are marked.
        candidates: the words that it chooses among.
    """
    segment, pieces, done = text.text.segments[0], list[str](), 0
    for number, mention in enumerate(text.mentions):
        start, end = text.spans[mention.head]
        pieces += [plain(segment[done:start]), _mark(text, choices, head, candidates, number)]
        done = end
    return "".join([*pieces, plain(segment[done:])])


def _mark(text: MentionText, choices: MentionChoices, head: Head, candidates: Candidates, mention: int) -> str:
    shown, antecedents = text.shown, text.antecedents[mention]
    word = f"{plain(shown[text.mentions[mention].head])}{_raised(mention)}"
    if not antecedents:
        return f":gray-background[{word}]"
    if not choices.is_read[mention]:
        return f":gray-background[{word} {wording.NOT_READ}]"
    choice = int(choices.of(candidates)[*head, mention])
    numbers = {mention.head: number for number, mention in enumerate(text.mentions)}
    if choice <= NO_CHOICE:
        name = wording.NOTHING_CHOSEN
    else:
        name = _raised(numbers[choice]) if choice in numbers else f"“{plain(shown[choice])}”"
    if choice in (text.mentions[before].head for before in antecedents):
        return f":green-background[{word} {ARROW} {name} {CHECK}]"
    return f":orange-background[{word} {ARROW} {name} {CROSS} ({_raised(antecedents[-1])})]"


def _raised(mention: int) -> str:
    return str(mention + 1).translate(RAISED)
