"""Stories: a click shows the head that best shows a pattern in the reader's own sentence, or in an example that stands
in for it: by its attention in this one sentence, so as an example, not a test."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head, head_name, highest_head
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText
from attention_sieve.core.word_links.on_text import words_on
from attention_sieve.dashboard import state
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.controls import is_pair_here
from attention_sieve.dashboard.progress import in_its_place
from attention_sieve.dashboard.samples import EXAMPLE
from attention_sieve.dashboard.views.text import wording
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED, PAIR_TYPED
from attention_sieve.dashboard.views.text.simple_patterns import LEAST_SHARE, SimplePattern, share_on, simple_links

SENTENCE: Final = EXAMPLE.segments[0]
"""The example of all stories but one, so that heads can be compared on the same words."""
SENTENCE_WITH_SUBJECT: Final = "The committee finally proposed a smaller budget."
"""The example of a verb's subject: in the other one, no head of the bundled checkpoint joins the two."""
VISITED: Final = "been_here"
UNFOLDED: Final = "examples"
"""Key of whether the chips are unfolded."""
CHIP: Final = "story"
"""Key of the chips in the session and in the link."""
_SHOWN_STORY: Final = "story told"
"""Key of the story whose head was chosen, and the fingerprint of the checkpoint."""
_STORY_TEXT: Final = "text of the story"
"""Key of the typed text about which the story is told."""
_EXAMPLE: Final = "example of the story"
"""Key of the example to put on screen, if the reader's own text lacks the words of the story."""
_OWN_TEXT: Final = "text before the story"
_PUT_TEXT: Final = "text put on screen"
MOST_NAMED: Final = 3
"""Words named on each side of what is to be seen."""

Links = Bool[np.ndarray, "query key"]


@dataclass(frozen=True, kw_only=True)
class Story:
    """A pattern of attention by which a head is selected."""

    links_of: Callable[[TokenizedText], Links]
    """The pairs of query and key that the head should link: in any text, or for words in the example."""
    see: str
    """What to see, after the head's name and "88% of ", with the words on both sides where the links join words."""
    see_back: str = ""
    """The same for heads that look from the key to the query; empty if only those in the other direction count."""
    joins_words: bool = False
    """Whether the links join single words, so that other words can be compared that look at the same ones."""
    relation: str = ""
    """The relation from the key to the query by which the words are found in other texts; empty if they cannot be."""
    example: str = SENTENCE
    """Put on screen if the reader's own text has no such words."""

    def links_in(self, text: PassText, typed: str) -> Links:
        """The links in a text, which was typed so; none if it has no such words."""
        if typed == self.example or not self.joins_words:
            return self.links_of(text.queries)
        links = np.zeros((len(text.queries.ids), len(text.queries.ids)), dtype=bool)
        for name, dependent, head in text.pairs:
            if name == self.relation:
                links[np.ix_(head, dependent)] = True
        return links


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
    at_distance: float
    """The same between other words at the same distance; 0 where they are not compared."""

    @property
    def follows(self) -> bool:
        """Whether it gives the links LEAST_TIMES what both of these get."""
        return self.share >= LEAST_TIMES * max(self.of_others, self.at_distance)


@dataclass(frozen=True, kw_only=True)
class Telling:
    """What a story says of one text, in one direction."""

    strongest: StrongestHead
    query: int
    """Position of the token that gives most to the words it is said to look at."""
    is_named: bool
    sentence: str


def take_example() -> None:
    """Put the example on screen that a story has asked for, before the text box is drawn."""
    if (example := st.session_state.pop(_EXAMPLE, None)) is not None:
        put_on_screen(example)
        st.session_state[_STORY_TEXT] = example
    if st.session_state.get(CHIP) and st.session_state.get(_STORY_TEXT) not in (None, st.session_state.get("text")):
        st.session_state[CHIP] = None  # the reader has typed another text since


def examples(can_read: bool, first_lesson: Callable[[], None]) -> None:
    """Draw a button that unfolds a chip for each story, where the attention reads a sentence without a target
    (`can_read`).

    Args:
        first_lesson: starts the first lesson, which is offered on a first visit.
    """
    with st.popover(wording.EXAMPLES, key=UNFOLDED, on_change="rerun"):
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
            if is_pair_here():
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
def tell(typed: str, text_attention: TextAttention, fingerprint: str, pin: Callable[[int], None]) -> bool:
    """Choose the head of the clicked story, pin the word that it speaks of, and say what to see.

    Puts the example on screen if the text has no such words, or the checkpoint no such head in it.

    Args:
        fingerprint: of the checkpoint; under another one, another head is chosen.
        pin: pins a token that looks, by its position.

    Returns: whether a story is told.
    """
    name = st.session_state.get(CHIP)
    if name not in STORIES:
        return False
    st.session_state.setdefault(_STORY_TEXT, typed)
    told = tellings(STORIES[name], text_attention, typed)
    named = [each for each in told if each.is_named]
    if not named and typed != STORIES[name].example:
        st.session_state[_EXAMPLE] = STORIES[name].example
        st.rerun()
    if not told:
        return False  # the words are missing if a checkpoint reads only the beginning of the sentence
    telling = max(named or told, key=lambda each: each.strongest.share)
    # A link that somebody sent has its own choice of heads.
    if st.session_state.setdefault(_SHOWN_STORY, (name, fingerprint)) != (name, fingerprint):
        st.session_state[_SHOWN_STORY] = (name, fingerprint)
        if telling.is_named:
            if STORIES[name].joins_words:
                pin(telling.query)
            state.push_heads([telling.strongest.head])
    st.markdown(telling.sentence)
    return True


def tellings(story: Story, text_attention: TextAttention, typed: str) -> list[Telling]:
    """What can be told of a text: from query to key, and where the story allows it back; nothing of a long text."""
    if text_attention.overview is not None:
        return []
    links = story.links_in(text_attention.text, typed)
    directions = [(links, story.see), *([(links.T, story.see_back)] if story.see_back else [])]
    return [
        _telling(story, text_attention, visible, see)
        for of_direction, see in directions
        if (visible := np.tril(of_direction) if text_attention.causal else of_direction).any()
    ]


def _telling(story: Story, text_attention: TextAttention, links: Links, see: str) -> Telling:
    queries = text_attention.text.queries
    words = queries.segments != SPECIAL if story.joins_words else None
    head = strongest(text_attention.attention, links, text_attention.causal, words)
    is_named = head.share >= LEAST_SHARE and head.follows
    if story.joins_words:
        query, key = (_named(queries, np.asarray(links.any(axis=axis))) for axis in (1, 0))
        see = see.format(queries=query, keys=key)
    facts = (head_name(*head.head), head.share, head.even, see, head.of_others if story.joins_words else None)
    n_heads = text_attention.attention.shape[0] * text_attention.attention.shape[1]
    sentence = wording.story(*facts, n_heads) if is_named else wording.no_such_head(*facts)
    to_keys = (text_attention.attention[head.head] * links).sum(axis=-1)
    return Telling(strongest=head, query=int(to_keys.argmax()), is_named=is_named, sentence=sentence)


def _named(text: TokenizedText, tokens: Bool[np.ndarray, " token"]) -> str:
    """The words of some tokens, in a sentence."""
    words = [word.text for word in words_on(text, (0, len(text.ids))) if tokens[list(word.tokens)].any()]
    return wording.words(words[:MOST_NAMED], are_all=len(words) <= MOST_NAMED)


def strongest(
    attention: Float[np.ndarray, "layer head query key"],
    links: Links,
    causal: bool,
    words: Bool[np.ndarray, " token"] | None = None,
) -> StrongestHead:
    """The head with the largest share of attention on some links, among those that look there less from other words.

    Args:
        links: at least one to a key that its query can attend to.
        causal: whether tokens cannot attend to later tokens.
        words: the tokens that are no special tokens, to pass over heads that give the links less than LEAST_TIMES
            times what other words give to the same keys, or what they give at the same distance. If all do, the one
            that gives the links most beyond these is taken. None to take every head.
    """
    links = np.tril(links) if causal else links
    queries = np.flatnonzero(links.any(axis=1))
    shares = share_on(attention, links)
    of_others, at_distance = np.zeros((2, *shares.shape))
    if words is not None:
        of_others, at_distance = _of_others(attention, links, causal, words), _at_distance(attention, links, words)
    anyway = np.maximum(of_others, at_distance)
    follows = shares >= LEAST_TIMES * anyway
    head = highest_head(np.where(follows, shares, np.nan) if follows.any() else shares - anyway)
    visible = queries + 1 if causal else np.full(len(queries), links.shape[1])
    even = float((links[queries].sum(axis=1) / visible).mean())
    return StrongestHead(
        head=head,
        share=float(shares[head]),
        even=even,
        of_others=float(of_others[head]),
        at_distance=float(at_distance[head]),
    )


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


def _at_distance(
    attention: Float[np.ndarray, "layer head query key"], links: Links, words: Bool[np.ndarray, " token"]
) -> Float[np.ndarray, "layer head"]:
    """Mean attention between words that no link joins, at the distance of each link; 0 where there are none."""
    queries, keys = np.nonzero(words[:, None] & words & ~links)
    shares = []
    for query, key in np.argwhere(links):
        is_at_distance = keys - queries == key - query
        if is_at_distance.any():
            shares.append(attention[:, :, queries[is_at_distance], keys[is_at_distance]].mean(axis=-1))
    return np.mean(shares, axis=0) if shares else np.zeros(attention.shape[:2])


def _begin() -> None:
    """Tell the clicked story of the reader's own text, or of the example where there is none, and fold the chips."""
    st.session_state[UNFOLDED] = False
    if st.session_state.get(CHIP) is None:
        return
    typed = st.session_state.get("text", "")
    if is_example(typed) and _OWN_TEXT in st.session_state:
        st.session_state["text"] = st.session_state.pop(_OWN_TEXT)
    elif not is_own(typed):
        put_on_screen(STORIES[st.session_state[CHIP]].example)
    st.session_state[_STORY_TEXT], st.session_state[_SHOWN_STORY] = st.session_state["text"], None


def is_example(typed: str) -> bool:
    """Whether a text is one of the examples that pages show before a reader types."""
    return typed in (SENTENCE, SENTENCE_WITH_SUBJECT, EXAMPLE_TYPED, PAIR_TYPED)


def is_own(typed: str) -> bool:
    """Whether the reader has typed a text, rather than the page."""
    return bool(typed) and not is_example(typed) and typed != st.session_state.get(_PUT_TEXT)


def put_on_screen(typed: str) -> None:
    """Put a text on screen that the reader has not typed; the reader's own text can be restored."""
    previous = st.session_state.get("text", "")
    if is_own(previous):
        st.session_state[_OWN_TEXT] = previous
    st.session_state["text"] = st.session_state[_PUT_TEXT] = typed


def _back(own_text: str) -> None:
    st.session_state["text"] = own_text
    st.session_state[CHIP] = None
    del st.session_state[_OWN_TEXT]


def _words(*pairs: tuple[str, str], example: str = SENTENCE) -> Callable[[TokenizedText], Links]:
    """From the tokens of one word to those of another, for each pair of words of an example."""

    def links(text: TokenizedText) -> Links:
        result = np.zeros((len(text.ids), len(text.ids)), dtype=bool)
        for word, target in pairs:
            result |= tokens_of(text, example, word)[:, None] & tokens_of(text, example, target)
        return result

    return links


def tokens_of(text: TokenizedText, example: str, word: str) -> Bool[np.ndarray, " token"]:
    """The tokens of a word that occurs once in an example, and not at its beginning."""
    start = example.index(f" {word}") + 1
    return (text.segments != SPECIAL) & (text.spans[:, 0] < start + len(word)) & (text.spans[:, 1] > start)


def _simple(pattern: SimplePattern, text: TokenizedText) -> Links:
    return simple_links(text)[pattern]


STORIES: Final[dict[str, Story]] = {
    wording.PREVIOUS_WORD: Story(links_of=partial(_simple, "previous word"), see=wording.SEE_PREVIOUS_WORD),
    wording.OBJECT: Story(
        links_of=_words(("closed", "shop")),
        see=wording.SEE_OBJECT,
        see_back=wording.SEE_OBJECT_BACK,
        joins_words=True,
        relation="dobj",
    ),
    wording.SUBJECT: Story(
        links_of=_words(("proposed", "committee"), example=SENTENCE_WITH_SUBJECT),
        see=wording.SEE_SUBJECT,
        see_back=wording.SEE_SUBJECT_BACK,
        joins_words=True,
        relation="nsubj",
        example=SENTENCE_WITH_SUBJECT,
    ),
    wording.HER: Story(links_of=_words(("her", "baker")), see=wording.SEE_HER, joins_words=True),
    wording.RESTING: Story(links_of=partial(_simple, "rests"), see=wording.SEE_RESTING),
}
