"""Probes: dependency heads predicted from all attention heads together, against fixed offsets and random weights."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.serving.run import Run
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.passes.texts import queries_text
from attention_sieve.core.texts.parsers import parser_option
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.tree_probes.run import ProbeQuestion, ProbeResults, Stand, train_probes
from attention_sieve.core.tree_probes.texts import attention_bytes, left_out, little_data, split
from attention_sieve.core.tree_probes.word_vectors import MAX_LINE_BYTES, WordVectors, vectors_from_lines
from attention_sieve.dashboard import costs, state
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import THEN, call, reads_texts
from attention_sieve.dashboard.progress import stop_button
from attention_sieve.dashboard.public import NOT_HERE, is_public
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts, policy, trees_of
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.tree_probes import wording
from attention_sieve.dashboard.views.grammar.tree_probes.results import ProbeView, show_results
from attention_sieve.dashboard.views.grammar.tree_probes.settings import TrainingPlan, training_plan

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
REFRESH_SECONDS: Final = 1.0
"""Seconds between two updates of the progress bar."""
RUNS: Final = 16
"""Number of latest runs that stay in memory with their results."""

TEST_TEXTS: Final = "test-texts.jsonl"

ProbeRun = Run[Stand, ProbeResults]


def draw() -> None:
    start = frame.without_corpus()
    if start.settings.kind == "cross":
        st.info(shared_wording.CROSS)
        return
    visit = frame.with_corpus(start)
    plan = None if visit is None else training_plan()
    if visit is None or plan is None:
        return
    texts = (*visit.texts, *plan.test_texts)
    parsed = tuple(queries_text(text, visit.settings.kind) for text in texts)
    trees = trees_of(visit, parsed)
    if trees is None:
        return
    train, test = _split(len(visit.texts), plan)
    _show_size(visit.engine, trees, train, test, sum(text.heads is not None for text in parsed))

    def start_run() -> ProbeRun:
        question = ProbeQuestion(
            texts=texts,
            trees=trees,
            train=train,
            test=test,
            kinds=plan.kinds,
            settings=visit.settings,
            how=plan.settings,
            vectors=None if plan.vectors is None else _vectors(plan.vectors, parsed, trees),
            too_long=policy(),
        )
        work = partial(train_probes, partial(_on_checkpoint, visit, plan.settings.seed), question)
        return Run(work, Stand("waiting", 0.0), name="train probes")

    n_words = sum(len(trees[position].heads) for position in train)
    training = sum(
        costs.of_tree_probe(visit.engine.files, len(train), n_words, plan.settings.epochs, words=kind.words)
        for kind in plan.kinds
    )
    n_passes = len(texts) * len({kind.control for kind in plan.kinds})
    say_cost = partial(costs.say, visit.engine.files, n_passes, texts, training)
    run = _run((visit.engine, visit.settings, policy(), visit.texts, plan.key), start_run, say_cost)
    if run is not None:
        state.remember_off(visit.choice)
        _show_run(run, visit, plan)


def _on_checkpoint(
    visit: Visit, seed: int, control: bool, work: Callable[[Checkpoint], Any], watch: Callable[[], None]
) -> Any:
    """Work on the visit's checkpoint, or on its control of random weights, between other sessions' batches."""
    files = randomly_initialised(visit.engine.files, seed) if control else visit.engine.files
    return visit.inference.run(replace(visit.engine, files=files), work, lambda _: watch())


def _run(key: Hashable, start: Callable[[], ProbeRun], say_cost: Callable[[], None]) -> ProbeRun | None:
    """The run of a plan, if there is one; the reader may start it, or start again one that has stopped or failed."""
    run = _runs().get(key)
    if is_public():
        st.info(NOT_HERE)
        return None
    if run is None or run.is_stopped or run.error is not None:
        label = wording.TRAIN if run is None else wording.TRAIN_AGAIN
        say_cost()
        if st.button(label, key="train", icon=":material/play_arrow:"):
            runs = _runs()
            runs.pop(key, None)
            runs[key] = start()
            for oldest in list(runs)[:-RUNS]:
                runs.pop(oldest, None)
            st.rerun()
    return run


def _show_run(run: ProbeRun, visit: Visit, plan: TrainingPlan) -> None:
    if run.is_on:
        _watch(run, plan.settings.epochs)
    elif run.error is not None:
        raise run.error
    results = run.results
    if run.is_stopped:
        st.info(wording.STOPPED if results is not None and results.probes else wording.STOPPED_EARLY)
    if results is None:
        return
    ask_about_long_texts(results.too_long)
    if sentence := left_out(results.n_left_out):
        st.caption(sentence)
    tests = [f"--test-texts={reads_texts(plan.test_texts, TEST_TEXTS)}"] if plan.test_texts else plan.share_option
    control = ["--random-control"] if any(kind.control for kind in plan.kinds) else []
    read = ["--texts", reads_texts(visit.texts), *parser_option(visit.texts), f"--too-long={policy()}", *tests]
    lines = (
        call("tree-probes", visit.choice, visit.engine, *read, *options, *control, output=f"{name}.parquet")
        for name, options in plan.options.items()
    )
    facts = {
        **provenance.corpus_facts(visit.choice, visit.engine, len(visit.texts)),
        **plan.facts,
        "command": THEN.join(lines),
    }
    show_results(ProbeView(results=results, engine=visit.engine, facts=facts))


def _watch(run: ProbeRun, max_epochs: int) -> None:
    n_trained = _n_trained(run)

    @st.fragment(run_every=REFRESH_SECONDS)
    def watch() -> None:
        stand = run.watch()
        if not run.is_on or _n_trained(run) > n_trained:
            st.rerun()  # there are new results to draw below
        st.progress(stand.share, wording.progress(stand, max_epochs))
        stop_button("stop probes", run.stop, wording.STOP_HELP)

    with st.container(border=True, key="probe run"):
        watch()


def _n_trained(run: ProbeRun) -> int:
    return 0 if run.results is None else len(run.results.probes)


@st.cache_resource(show_spinner=False)
def _runs() -> dict[Hashable, ProbeRun]:
    """The latest runs, shared by all sessions: equal plans are trained once.

    The memory of findings would measure a run as it begins, without its results.
    """
    return {}


def _split(n_texts: int, plan: TrainingPlan) -> tuple[list[int], list[int]]:
    if plan.test_texts:
        return list(range(n_texts)), list(range(n_texts, n_texts + len(plan.test_texts)))
    train, test = split(n_texts, plan.test_share, plan.settings.seed)
    return train.tolist(), test.tolist()


def _show_size(
    engine: Engine, trees: Sequence[Dependencies], train: Sequence[int], test: Sequence[int], n_gold: int
) -> None:
    n_words = [len(tree.heads) for tree in trees]
    n_train_words = sum(n_words[position] for position in train)
    n_layers, n_heads = engine.files.n_layers, engine.files.n_heads
    megabytes = None
    if n_layers and n_heads:  # an upper bound: long texts may be cut once the checkpoint is loaded
        megabytes = attention_bytes(n_words, n_layers, n_heads) / 2**20
    st.markdown(wording.size(len(train), len(test), n_train_words, megabytes, n_gold))
    if warnings := little_data(n_train_words, len(train), len(test)):
        st.info("\n\n".join(warnings))


def _vectors(file: Any, texts: Sequence[Text], trees: Sequence[Dependencies]) -> WordVectors:
    content = BytesIO(file.getvalue())
    lines = iter(lambda: content.readline(MAX_LINE_BYTES + 1), b"")
    return vectors_from_lines(file.name, lines, [tree.words.shown(text) for text, tree in zip(texts, trees)])
