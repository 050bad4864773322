"""Probes: how well all heads together tell which word is a word's head, against fixed offsets and random weights."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from io import BytesIO
from typing import Any, Final

import streamlit as st

from cache.inference import Engine
from cache.probe_runs import ProbeRun
from cache.probing import ProbeQuestion, train_probes
from cache.recent import Recent
from core.analysis import queries_text
from core.errors import AnalysisError
from core.parses import Dependencies
from core.probe_texts import attention_bytes, few_test_texts, few_words, left_out, split
from core.texts import Text
from core.word_vectors import MAX_LINE_BYTES, WordVectors, vectors_from_lines
from dashboard import controls, parsing_wording, provenance, state
from dashboard import probing_wording as wording
from dashboard import wording as shared_wording
from dashboard.plain import show_error
from dashboard.state import Choice
from dashboard.views.corpus import ask_about_long_texts, ask_for_texts, policy, readable
from dashboard.views.probe_choice import Asked, choose, facts_of
from dashboard.views.probe_results import Shown, show_results
from dashboard.views.relation_pass import trees_of

LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at a run that is on."""
RUNS: Final = 16
"""The latest that are kept, with what they found."""


def show_section() -> None:
    """Draw the section."""
    st.markdown(wording.SEE)
    try:
        _probes()
    except AnalysisError as error:
        show_error(error)
    with st.expander(shared_wording.HOW):
        st.markdown(wording.METHOD)
        st.markdown(shared_wording.NOT_EXPLANATION)
    with st.expander(shared_wording.PAPER_TITLE):
        st.markdown(wording.PAPER)


def _probes() -> None:
    chosen = state.choice()
    controls.heads_off(chosen)
    engine, inference = controls.engine(chosen), controls.inference()
    settings = chosen.pass_settings(engine)
    if settings.kind == "cross":
        st.info(parsing_wording.CROSS)
        return
    given = controls.corpus_texts(chosen)
    texts = readable(chosen, engine, given)
    if not texts:
        ask_for_texts(chosen, given)
        return
    asked = choose()
    if asked is None:
        return
    read = tuple(queries_text(text, settings.kind) for text in (*texts, *asked.test_texts))
    trees = trees_of(read)
    if trees is None:
        return
    train, test = _parts(len(texts), asked)
    _say_size(engine, trees, train, test, sum(text.heads is not None for text in read))

    def begun() -> ProbeRun:
        question = ProbeQuestion(
            texts=(*texts, *asked.test_texts),
            trees=trees,
            train=train,
            test=test,
            kinds=asked.kinds,
            settings=settings,
            how=asked.how,
            vectors=None if asked.vectors is None else _vectors(asked.vectors, read, trees),
            too_long=policy(),
        )
        return ProbeRun(partial(train_probes, inference, engine, question))

    run = _run((engine, settings, policy(), texts, asked.ingredients), begun)
    if run is not None:
        state.remember_off(chosen)
        _show_run(run, chosen, engine, asked, len(texts))


def _run(question: Hashable, begun: Callable[[], ProbeRun]) -> ProbeRun | None:
    """The run that answers a question; begins it, or begins it anew where it came to no end, when the reader asks."""
    run = _runs().get(question)
    if run is None or run.is_stopped or run.error is not None:
        label = wording.TRAIN if run is None else wording.TRAIN_AGAIN
        if st.button(label, key="train", icon=":material/play_arrow:"):
            _runs().put(question, begun(), 1)
            st.rerun()
    return run


def _show_run(run: ProbeRun, chosen: Choice, engine: Engine, asked: Asked, n_texts: int) -> None:
    """How far a run is while it is on, and what it has found."""
    if run.is_on:
        _watch(run, asked.how.epochs)
    elif run.error is not None:
        raise run.error
    results = run.results
    if run.is_stopped:
        st.info(wording.STOPPED if results is not None and results.found else wording.STOPPED_EARLY)
    if results is None:
        return
    ask_about_long_texts(results.too_long)
    if said := left_out(results.n_left_out):
        st.caption(said)
    facts = {**provenance.corpus_facts(chosen, engine, n_texts), **facts_of(asked)}
    show_results(Shown(results=results, engine=engine, facts=facts))


def _watch(run: ProbeRun, most_epochs: int) -> None:
    """A bar that looks again by itself, and the way to stop."""
    n_found = _n_found(run)

    @st.fragment(run_every=LOOK_AGAIN)
    def watch() -> None:
        stand = run.look()
        if not run.is_on or _n_found(run) > n_found:
            st.rerun()  # there is more to draw below
        st.progress(stand.share, wording.stand(stand, most_epochs))
        st.button(
            wording.STOP, key="stop probes", icon=":material/stop_circle:", help=wording.STOP_HELP, on_click=run.stop
        )

    with st.container(border=True, key="probe run"):
        watch()


def _n_found(run: ProbeRun) -> int:
    return 0 if run.results is None else len(run.results.found)


@st.cache_resource(show_spinner=False)
def _runs() -> Recent[Hashable, ProbeRun]:
    """The latest runs, whoever began them: equal questions are trained once."""
    return Recent(RUNS)


def _parts(n_texts: int, asked: Asked) -> tuple[list[int], list[int]]:
    """Places of the texts to learn from and of those to test on."""
    if asked.test_texts:
        return list(range(n_texts)), list(range(n_texts, n_texts + len(asked.test_texts)))
    train, test = split(n_texts, asked.test_share, asked.how.seed)
    return train.tolist(), test.tolist()


def _say_size(
    engine: Engine, trees: Sequence[Dependencies], train: Sequence[int], test: Sequence[int], n_gold: int
) -> None:
    """What there is to learn from and to test on, what it costs, and whether it is little."""
    n_words = [len(tree.heads) for tree in trees]
    n_train_words = sum(n_words[place] for place in train)
    n_layers, n_heads = engine.files.n_layers, engine.files.n_heads
    megabytes = None
    if n_layers and n_heads:  # whether it fits the loaded checkpoint says, as texts may be cut
        megabytes = attention_bytes(n_words, n_layers, n_heads) / 2**20
    st.markdown(wording.size(len(train), len(test), n_train_words, megabytes, n_gold))
    if few := list(filter(None, (few_words(n_train_words, len(train)), few_test_texts(len(test))))):
        st.info("\n\n".join(few))


def _vectors(file: Any, texts: Sequence[Text], trees: Sequence[Dependencies]) -> WordVectors:
    content = BytesIO(file.getvalue())
    lines = iter(lambda: content.readline(MAX_LINE_BYTES + 1), b"")
    return vectors_from_lines(file.name, lines, [tree.words.shown(text) for text, tree in zip(texts, trees)])
