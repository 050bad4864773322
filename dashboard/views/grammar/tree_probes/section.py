"""Probes: dependency heads predicted from all attention heads together, against fixed offsets and random weights."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import queries_text
from attention_sieve.core.running import Journal, Progress
from attention_sieve.core.texts.parsers import parser_option
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.tree_probes.kept import KeptProbes
from attention_sieve.core.tree_probes.probe import ProbeResults
from attention_sieve.core.tree_probes.run import ProbeQuestion, train_probes
from attention_sieve.core.tree_probes.texts import attention_bytes, left_out, little_data, split
from attention_sieve.core.tree_probes.word_vectors import MAX_LINE_BYTES, WordVectors, vectors_from_lines
from attention_sieve.dashboard import costs, runs, state
from attention_sieve.dashboard import wording as dashboard_wording
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import THEN, call, reads_texts
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.public import NOT_HERE, is_public
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts, policy, trees_of
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.tree_probes import wording
from attention_sieve.dashboard.views.grammar.tree_probes.results import ProbeView, show_results
from attention_sieve.dashboard.views.grammar.tree_probes.settings import TrainingPlan, training_plan

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
TEST_TEXTS: Final = "test-texts.jsonl"


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

    if is_public():
        st.info(NOT_HERE)
        return
    folder = runs.folder_of("tree-probes", visit.engine, visit.settings, policy(), visit.texts, plan.key)
    kept = KeptProbes(folder)
    question = ProbeQuestion(
        texts=texts,
        trees=trees,
        train=train,
        test=test,
        kinds=plan.kinds,
        settings=visit.settings,
        how=plan.settings,
        vectors=None,
        too_long=policy(),
    )

    def work(journal: Journal) -> None:
        vectors = None if plan.vectors is None else _vectors(plan.vectors, parsed, trees)
        on_checkpoint = partial(_on_checkpoint, visit, plan.settings.seed)
        train_probes(on_checkpoint, replace(question, vectors=vectors), journal, kept)

    progress = runs.look(folder)
    results = kept.read(plan.kinds)
    if progress is not None and progress.state == "running":
        _watch(folder)
    elif results is None or not results.has(plan.kinds):
        _say_end(progress, results is not None)
        _say_cost(visit.engine, question)
        label = wording.TRAIN if results is None else dashboard_wording.GO_ON
        runs.begin_button(folder, "train", label, work, visit.engine.files.name)
    if results is not None:
        state.remember_off(visit.choice)
        _show_results(results, visit, plan)


def _on_checkpoint(
    visit: Visit, seed: int, control: bool, work: Callable[[Checkpoint], Any], watch: Callable[[], None]
) -> Any:
    """Work on the visit's checkpoint, or on its control of random weights, between other sessions' batches."""
    files = randomly_initialised(visit.engine.files, seed) if control else visit.engine.files
    return visit.inference.run(replace(visit.engine, files=files), work, lambda _: watch())


def _watch(folder: Path) -> None:
    def say(progress: Progress) -> str:
        return dashboard_wording.running(progress, wording.PIECE)

    runs.panel(folder, "tree probes", say)


def _say_end(progress: Progress | None, has_results: bool) -> None:
    if progress is not None and progress.state == "failed":
        show_error(AnalysisError(progress.message))
    elif progress is not None and progress.state in ("stopped", "left"):
        st.info(wording.STOPPED if has_results else wording.STOPPED_EARLY, icon=":material/pause_circle:")


def _say_cost(engine: Engine, question: ProbeQuestion) -> None:
    n_words = sum(len(question.trees[position].heads) for position in question.train)
    training = sum(
        costs.of_tree_probe(engine.files, len(question.train), n_words, question.how.epochs, words=kind.words)
        for kind in question.kinds
    )
    n_passes = len(question.texts) * len({kind.control for kind in question.kinds})
    costs.say(engine.files, n_passes, question.texts, training)


def _show_results(results: ProbeResults, visit: Visit, plan: TrainingPlan) -> None:
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
