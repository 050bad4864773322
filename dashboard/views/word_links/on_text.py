"""Which heads look from one word of the text on screen to another: a ranked list and a map of all heads; and which do
so over the corpus, for the chosen words or for words in a relation."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import streamlit as st

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import TextAttention, queries_text
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.texts.relations import ROOT, UNIVERSAL, Dependencies
from attention_sieve.core.word_links.analysis import WORD_LINK_ANALYSIS, PatternLinks, WordLinkSettings, word_link_table
from attention_sieve.core.word_links.on_text import TextWord, word_links
from attention_sieve.core.word_links.pattern import Pattern
from attention_sieve.core.wording import documents_note
from attention_sieve.dashboard import state
from attention_sieve.dashboard.components.into_view import mark_place
from attention_sieve.dashboard.figures.word_links import NamedLinks, link_map, link_table, pattern_map
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.plain import errors_shown, plain, show_error
from attention_sieve.dashboard.progress import in_its_place
from attention_sieve.dashboard.views.analysis import analysed
from attention_sieve.dashboard.views.asking import trees_of
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import from_list, one_of
from attention_sieve.dashboard.views.text.on_screen import text_facts
from attention_sieve.dashboard.views.word_links import wording
from attention_sieve.dashboard.views.word_links.choice import WordChoice, pick_words


def over_the_corpus(visit: Visit, words: WordChoice | None, heads: list[Head]) -> None:
    """Draw the links over the corpus once the reader opens the expander."""
    with st.expander(wording.OVER, key="links over corpus", on_change="rerun") as expander:
        if not expander.open:
            return
        with errors_shown():
            _answer(visit, words, heads)


def _answer(visit: Visit, words: WordChoice | None, heads: list[Head]) -> None:
    WORD_LINK_ANALYSIS.question(WORD_LINK_ANALYSIS.settings).check(visit.settings.kind)
    texts = tuple(queries_text(text, visit.settings.kind) for text in visit.texts)
    trees = trees_of(visit, texts)
    if trees is None:
        return
    pattern = _pattern(words, trees)
    if pattern is None:
        st.caption(wording.TWO_OR_RELATION)
        return
    criterion = visit.choice.criterion
    settings = WordLinkSettings(pattern=pattern, alpha=criterion.alpha, correction=criterion.correction)
    found = analysed(visit, WORD_LINK_ANALYSIS, settings, asks=False)
    if found is None:
        return
    links = found.finding.links
    title = wording.pattern(pattern.query, pattern.key, pattern.relation, pattern.from_dependent)
    _best(links, title)
    facts = found.facts(*_options(pattern))
    label = f"Links {title} in {visit.engine.files.name}"
    picture = pattern_map(links, settings.alpha, title=f"% of attention {title}", label=label, beats=wording.BEATS)
    reset = (visit.engine.files.fingerprint, links.shares.shape, tuple(heads))
    selection = head_selection("pattern map", heads, reset, state.push_heads)
    file = "map of links over the corpus"
    show_head_map(picture, selection, file=file, facts={**facts, "texts": str(links.n_texts)})
    st.caption(f"{wording.OVER_NOTE} {documents_note(links.n_documents)}")
    table = word_link_table(found.finding).sort_values("share", ascending=False, kind="stable", ignore_index=True)
    table_downloads("links over the corpus", with_sentences(table, kept_sentences(visit)), facts)


def _pattern(words: WordChoice | None, trees: Sequence[Dependencies]) -> Pattern | None:
    """The pattern of the chosen words and relation; None while they do not determine one."""
    counts = Counter(
        UNIVERSAL.get(name, name)
        for tree in trees
        for name, head in zip(tree.relations, tree.heads.tolist())
        if head != ROOT
    )
    names = {name: name for name, _ in counts.most_common()}
    options = {wording.NO_RELATION: None, **names}
    relation = from_list(wording.RELATION, options, key="linked by", help=wording.RELATION_HELP)
    directions = {wording.FROM_DEPENDENT: True, wording.FROM_HEAD: False}
    from_dependent = True if relation is None else one_of(wording.WAY, directions, key="links from")
    query, key = (None, None) if words is None else (_only(words.queries), _only(words.keys))
    if relation is None and (query is None or key is None):
        return None
    return Pattern(query, key, relation, from_dependent=from_dependent)


def _only(words: dict[str, TextWord]) -> str | None:
    """The chosen word, wherever it occurs; None for any."""
    return next(iter(words.values())).text if len(words) == 1 else None


def _best(links: PatternLinks, title: str) -> None:
    st.markdown(wording.over(plain(title), links.n_pairs, links.n_texts))
    if (held_out := links.held_out) is not None:
        names = [head_name(*head) for head in dict.fromkeys(held_out.heads)]
        even = float(links.even[[layer for layer, _ in held_out.heads]].mean())
        st.markdown(wording.held_out(names, held_out.share, held_out.low, held_out.high, even, held_out.others))


def _options(pattern: Pattern) -> list[str]:
    named = {"from": pattern.query, "to": pattern.key, "relation": pattern.relation}
    of_pattern = [f"--{name}={value}" for name, value in named.items() if value]
    return of_pattern if pattern.from_dependent else [*of_pattern, "--from-head"]


LISTED: Final = 4


@in_its_place
def linking_heads(visit: Visit, screen: PassedText, attention: TextAttention, heads: list[Head]) -> None:
    with st.container(key="word-links"):
        mark_place(wording.TITLE)
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


def _all_heads(visit: Visit, screen: PassedText, named: NamedLinks, heads: list[Head]) -> None:
    engine = visit.engine
    query, key = (of_side[0] if len(of_side) == 1 else wording.ANY for of_side in (named.queries, named.keys))
    criterion = visit.choice.criterion
    facts = text_facts(visit, screen.text) | {
        "looking from": query,
        "looking at": key,
        "alpha": f"{criterion.alpha:g}",
        "correction": criterion.correction,
    }
    title = wording.map_title(query, key)
    label = f"Word links in {plain(engine.files.name)}: {title}"
    reset = (engine.files.fingerprint, named.beats.shape, tuple(heads))
    picture = link_map(named, title=title, label=label, mark=wording.BEATS_CHANCE)
    selection = head_selection("word link map", heads, reset, state.push_heads)
    show_head_map(picture, selection, file="map of word links", facts=facts)
    table = with_sentences(link_table(named), kept_sentences(visit))
    table_downloads("word links", table, facts)
