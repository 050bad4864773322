"""Stories: a click shows a sentence, and the head of the checkpoint that best shows a pattern in it.

The head is chosen by its attention in this one sentence: a story is an example, not a test.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from core.attention.settings import Head, head_name, highest_head
from core.passes.texts import TextAttention
from core.statistics.key_matched import LEAST_TIMES
from core.texts.tokens import SPECIAL, TokenizedText
from dashboard import state
from dashboard.components.first_screen import first_screen_is_drawn
from dashboard.progress import in_its_place
from dashboard.views.text import wording
from dashboard.views.text.typed import EXAMPLE_TYPED

SENTENCE: Final = "The old baker quietly closed her small shop because customers had slowly left."
"""The same for all stories, so that heads can be compared on the same words."""
LEAST_SHARE: Final = 0.3
"""Minimum share of a head's attention for a story to name it, so that the arcs described are visible."""
VISITED: Final = "been_here"
"""Name of the cookie of a previous visit."""
CHIP: Final = "story"
"""Key of the chips in the session and in the link."""
_SHOWN_STORY: Final = "story told"
"""Key of the story whose head was chosen, and the fingerprint of the checkpoint."""
_OWN_TEXT: Final = "text before the story"
_PUT_TEXT: Final = "text put on screen"

Links = Bool[np.ndarray, "query key"]


@dataclass(frozen=True, kw_only=True)
class Story:
    """A pattern of attention by which a head is selected."""

    links_of: Callable[[TokenizedText], Links]
    """The pairs of query and key that the head should link."""
    see: str
    """What to see, after the head's name and "88% of "."""
    see_back: str = ""
    """The same in the opposite direction, for causal models; not needed if `see` looks back already."""
    joins_words: bool = False
    """Whether the links join single words, so that other words can be compared that look at the same ones."""


@dataclass(frozen=True, kw_only=True)
class StrongestHead:
    """The head that gives most of its attention to a story's links."""

    head: Head
    share: float
    """Share of its attention on the links, mean over the queries that have one."""
    even: float
    """The same for uniform attention."""
    of_others: float
    """The same for the other words that can look at the same keys; 0 where they are not compared."""


def chips(can_read: bool, first_lesson: Callable[[], None]) -> None:
    """Draw a chip for each story.

    Args:
        can_read: whether the selected attention can read one sentence without a target.
        first_lesson: starts the first lesson, offered on a first visit.
    """
    if st.session_state.get(CHIP) and st.session_state.get("text", SENTENCE) != SENTENCE:
        st.session_state[CHIP] = None  # the reader has typed another text since
    with st.container(horizontal=True, vertical_alignment="bottom", key="stories"):
        if can_read:
            st.pills(
                wording.STORIES,
                list(STORIES),
                key=CHIP,
                wrap=True,
                bind="query-params",
                persist_state="session",
                on_change=_begin,
            )
        if first_screen_is_drawn():
            compare = st.session_state["pages"]["compare"]
            st.page_link(compare, label=wording.BEFORE_AND_AFTER, icon=":material/compare:")
            if not been_here():
                st.button(
                    wording.FIRST_LESSON,
                    key="first lesson",
                    icon=":material/school:",
                    type="tertiary",
                    on_click=first_lesson,
                )
        if own_text := st.session_state.get(_OWN_TEXT):
            st.button(
                wording.OWN_TEXT,
                key="own text",
                icon=":material/undo:",
                type="tertiary",
                on_click=_back,
                args=(own_text,),
            )


def been_here() -> bool:
    """Whether this browser has visited before; `dashboard/web/visited.js` sets the cookie when it leaves."""
    return VISITED in st.context.cookies


@in_its_place
def tell(typed: str, text_attention: TextAttention, fingerprint: str) -> bool:
    """Choose the head of the clicked story, and say what to see; whether there is one for the text on screen.

    Args:
        typed: content of the text area.
        text_attention: the attention of the text on screen.
        fingerprint: of the checkpoint; under another one, another head is chosen.
    """
    name = st.session_state.get(CHIP)
    if name not in STORIES or typed != SENTENCE:
        return False
    story = STORIES[name]
    links, see = story.links_of(text_attention.text.queries), story.see
    if text_attention.causal and story.see_back:
        links, see = links.T, story.see_back
    if not links.any():
        return False  # the words are missing if a checkpoint reads only the beginning of the sentence
    words = text_attention.text.queries.segments != SPECIAL if story.joins_words else None
    strongest_head = strongest(text_attention.attention, links, text_attention.causal, words)
    is_named = strongest_head.share >= max(LEAST_SHARE, LEAST_TIMES * strongest_head.of_others)
    # A link that somebody sent has its own choice of heads.
    if st.session_state.setdefault(_SHOWN_STORY, (name, fingerprint)) != (name, fingerprint):
        st.session_state[_SHOWN_STORY] = (name, fingerprint)
        if is_named:
            state.push_heads([strongest_head.head])
    sentence = wording.story if is_named else wording.no_such_head
    name_of_head = head_name(*strongest_head.head)
    of_others = strongest_head.of_others if story.joins_words else None
    st.markdown(sentence(name_of_head, strongest_head.share, strongest_head.even, see, of_others))
    return True


def strongest(
    attention: Float[np.ndarray, "layer head query key"],
    links: Links,
    causal: bool,
    words: Bool[np.ndarray, " token"] | None = None,
) -> StrongestHead:
    """The head with the largest share of attention on some links, among those that look there less from other words.

    Args:
        attention: of one text.
        links: at least one to a key that its query can attend to.
        causal: whether tokens cannot attend to later tokens.
        words: the tokens that are no special tokens, to pass over heads that give the keys of the links less than
            LEAST_TIMES times what other words give them, unless all do; None to take every head.
    """
    links = np.tril(links) if causal else links
    queries = np.flatnonzero(links.any(axis=1))
    shares = (attention[:, :, queries] * links[queries]).sum(axis=-1).mean(axis=-1)
    of_others = np.zeros_like(shares) if words is None else _of_others(attention, links, causal, words)
    follows = shares >= LEAST_TIMES * of_others
    head = highest_head(np.where(follows, shares, np.nan) if follows.any() else shares)
    visible = queries + 1 if causal else np.full(len(queries), links.shape[1])
    even = float((links[queries].sum(axis=1) / visible).mean())
    return StrongestHead(head=head, share=float(shares[head]), even=even, of_others=float(of_others[head]))


def _of_others(
    attention: Float[np.ndarray, "layer head query key"], links: Links, causal: bool, words: Bool[np.ndarray, " token"]
) -> Float[np.ndarray, "layer head"]:
    """Mean attention to the keys of the links from words that no link joins to them; 0 where there is no such word."""
    shares = []
    for keys in links[links.any(axis=1)]:
        others = words & ~links[:, keys].any(axis=1) & ~keys
        if causal:
            others &= np.arange(len(others)) > np.flatnonzero(keys).max()
        if others.any():
            shares.append((attention[:, :, others] * keys).sum(axis=-1).mean(axis=-1))
    return np.mean(shares, axis=0) if shares else np.zeros(attention.shape[:2])


def _begin() -> None:
    """Put the sentence on screen; the reader's own text can be restored."""
    if st.session_state.get(CHIP) is None:
        return
    put_on_screen(SENTENCE)
    st.session_state[_SHOWN_STORY] = None


def put_on_screen(typed: str) -> None:
    """Put a text on screen that the reader has not typed; the reader's own text can be restored."""
    previous = st.session_state.get("text", "")
    if previous not in ("", SENTENCE, EXAMPLE_TYPED, st.session_state.get(_PUT_TEXT)):
        st.session_state[_OWN_TEXT] = previous
    st.session_state["text"] = st.session_state[_PUT_TEXT] = typed


def _back(own_text: str) -> None:
    st.session_state["text"] = own_text
    st.session_state[CHIP] = None
    del st.session_state[_OWN_TEXT]


def _previous_word(text: TokenizedText) -> Links:
    is_word = text.segments != SPECIAL
    is_previous = text.words[:, None] - 1 == text.words
    return is_previous & is_word[:, None] & is_word


def _words(*pairs: tuple[str, str]) -> Callable[[TokenizedText], Links]:
    """From the tokens of one word to those of another, for each pair of words of SENTENCE."""

    def links(text: TokenizedText) -> Links:
        result = np.zeros((len(text.ids), len(text.ids)), dtype=bool)
        for word, target in pairs:
            result |= _tokens(text, word)[:, None] & _tokens(text, target)
        return result

    return links


def _tokens(text: TokenizedText, word: str) -> Bool[np.ndarray, " token"]:
    start = SENTENCE.index(f" {word}") + 1
    return (text.segments != SPECIAL) & (text.spans[:, 0] < start + len(word)) & (text.spans[:, 1] > start)


def _resting(text: TokenizedText) -> Links:
    """From every word to the special tokens, or to the first token where the tokenizer adds none."""
    special = text.segments == SPECIAL
    targets = special if special.any() else np.arange(len(text.ids)) == 0
    return ~targets[:, None] & targets


STORIES: Final[dict[str, Story]] = {
    wording.PREVIOUS_WORD: Story(links_of=_previous_word, see=wording.SEE_PREVIOUS_WORD),
    wording.OBJECT: Story(
        links_of=_words(("closed", "shop")),
        see=wording.SEE_OBJECT,
        see_back=wording.SEE_OBJECT_BACK,
        joins_words=True,
    ),
    wording.SUBJECT: Story(
        links_of=_words(("closed", "baker"), ("left", "customers")), see=wording.SEE_SUBJECT, joins_words=True
    ),
    wording.HER: Story(links_of=_words(("her", "baker")), see=wording.SEE_HER, joins_words=True),
    wording.RESTING: Story(links_of=_resting, see=wording.SEE_RESTING),
}
"""Stories by the label of their chip."""
