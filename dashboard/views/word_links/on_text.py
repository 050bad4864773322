"""Which heads look from one word of the text on screen to another: a ranked list and a map of all heads."""

from typing import Final

import streamlit as st

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.word_links.on_text import word_links
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.word_links.maps import NamedLinks, link_map, link_table
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.progress import in_its_place
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.text.on_screen import OnScreen
from attention_sieve.dashboard.views.word_links import wording
from attention_sieve.dashboard.views.word_links.choice import pick_words
from attention_sieve.dashboard.views.word_links.on_corpus import over_the_corpus

LISTED: Final = 4


@in_its_place
def linking_heads(visit: Visit, screen: OnScreen, attention: TextAttention, heads: list[Head]) -> None:
    with st.container(key="word-links"):
        try:
            words = pick_words(attention)
            links = None if words is None else word_links(attention, [*words.queries.values()], [*words.keys.values()])
        except AnalysisError as error:
            show_error(error)
            return
        if attention.overview is not None:
            st.caption(wording.IN_VIEW)
        if words is None or links is None:
            st.caption(wording.HINT)
        else:
            criterion = visit.choice.criterion
            beats = links.beats_chance(criterion.alpha, criterion.correction)
            named = NamedLinks(links=links, queries=[*words.queries], keys=[*words.keys], beats=beats)
            _ranking(visit, named)
            _all_heads(visit, screen, named, heads)
        over_the_corpus(visit, words, heads)


def _ranking(visit: Visit, named: NamedLinks) -> None:
    links, alpha, off = named.links, visit.choice.criterion.alpha, visit.choice.off
    best, *_ = links.ranked
    share, even = float(links.shares[best]), float(links.even[best])
    by_chance = wording.by_chance(even, float(links.chance[best[0]]), int(links.n_links[best[0]]))
    link = wording.link(*named.words(best), share, by_chance)
    n_beyond, n_heads = int(named.beats.sum()), links.shares.size - len(visit.removed)
    if not n_beyond:
        st.markdown(wording.none_beyond_chance(head_name(*best), link, alpha))
        return
    st.markdown(wording.strongest(head_name(*best), link, n_beyond, n_heads, alpha))
    with st.container(horizontal=True, gap="small"):
        for rank, head in enumerate(links.ranked[: min(LISTED, n_beyond)]):
            query, key = named.words(head)
            words = (query if len(named.queries) > 1 else "", key if len(named.keys) > 1 else "")
            label = wording.entry(head_name(*head), float(links.shares[head]), head in off, *words)
            st.button(label, key=f"linking head {rank}", on_click=state.push_heads, args=([head],))


def _all_heads(visit: Visit, screen: OnScreen, named: NamedLinks, heads: list[Head]) -> None:
    engine = visit.engine
    query, key = (of_side[0] if len(of_side) == 1 else wording.ANY for of_side in (named.queries, named.keys))
    criterion = visit.choice.criterion
    facts = provenance.text_facts(visit.choice, engine, screen.text) | {
        "from": query,
        "to": key,
        "alpha": f"{criterion.alpha:g}",
        "correction": criterion.correction,
    }
    title = wording.map_title(query, key)
    label = f"Word links in {plain(engine.files.name)}: {title}"
    reset = (engine.files.fingerprint, named.beats.shape, tuple(heads))
    picture = link_map(named, title=title, label=label, outline=wording.BEATS_CHANCE)
    selection = head_selection("word link map", heads, reset, state.push_heads)
    show_head_map(picture, selection, file="map of word links", facts=facts)
    table = with_sentences(link_table(named), kept_sentences(visit))
    table_downloads("word links", table, facts)
