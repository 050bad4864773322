"""The command `python -m attention_sieve tree-probes`: how well all heads together predict the syntactic head of each
word."""

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.checkpoints.find import load_checkpoint, randomly_initialised
from attention_sieve.core.commands import (
    TABLE_FILE,
    TABLES,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    progress_bar,
    read_texts,
    write,
    write_table,
)
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_journal_option,
    add_output_option,
    add_parser_options,
    add_settings_options,
    add_texts_options,
    column_list,
    settings_of,
)
from attention_sieve.core.passes.texts import PassText, check_settings, queries_text
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.running import GO_ON, Journal, carried_out, check_ended
from attention_sieve.core.texts.relations import Dependencies, dependencies
from attention_sieve.core.texts.text import SUFFIXES, Text, texts_sha256
from attention_sieve.core.tree_probes.features import check_kind
from attention_sieve.core.tree_probes.kept import KeptProbes
from attention_sieve.core.tree_probes.probe import (
    LEVEL,
    RIGHT_BRANCHING,
    AttachmentScore,
    ProbeKind,
    ProbeResults,
    ProbeTraining,
    TreeProbeSettings,
)
from attention_sieve.core.tree_probes.run import ProbeQuestion, train_probes
from attention_sieve.core.tree_probes.texts import (
    attention_bytes,
    check_fits,
    left_out,
    little_data,
    split,
)
from attention_sieve.core.tree_probes.word_vectors import UNKNOWN, WordVectors, vectors_from_file
from attention_sieve.core.usage import HEAD_COLUMNS

Done = TypeVar("Done")
NONE: Final = "none"
EMBEDDINGS: Final = "embeddings"
COLUMNS: Final = {
    **HEAD_COLUMNS,
    "w": "weight of the attention from a candidate to the word; a norm if it depends on words",
    "u": "weight of the attention from the word to a candidate, likewise",
    "control_w": "w of the random control",
    "control_u": "u of the random control",
}


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "tree-probes",
        help="train a probe that predicts syntactic heads from all attention heads",
        description=f"{inspect.cleandoc(tree_probes.__doc__ or '')}{column_list('Columns', COLUMNS)}",
    )
    add_checkpoint_options(parser)
    add_texts_options(
        parser, f"training texts: {', '.join(SUFFIXES)}; parsed by spaCy if the file has no dependency trees"
    )
    add_parser_options(parser)
    parser.add_argument("--test-texts", type=Path, help="file of test texts; default: a share of --texts is held out")
    parser.add_argument(
        "--test-share", type=float, default=0.25, help="share of --texts held out for testing; default: %(default)s"
    )
    parser.add_argument(
        "--words",
        default=NONE,
        help="word vectors on which the weight of a head may depend: none, embeddings (those of the checkpoint), or a "
        "text file in GloVe's format; default: %(default)s",
    )
    add_settings_options(parser, TreeProbeSettings())
    parser.add_argument(
        "--memory-mb", type=int, default=1024, help="memory limit for attention maps in MB; default: %(default)s"
    )
    parser.add_argument(
        "--random-control", action="store_true", help="train a second probe on the same model with random weights"
    )
    add_journal_option(parser, "; probes that are trained are kept there, and a repeated command skips them")
    add_output_option(parser, f"file to write: {TABLE_FILE}; a summary is written beside it")
    parser.set_defaults(run=tree_probes, folder_of_run="journal")


def tree_probes(arguments: argparse.Namespace) -> None:
    """Train a probe that predicts the syntactic head of each word from all attention heads; write a row per head.

    The probe is compared with fixed offsets and, with --random-control, with a probe on a model with random weights.
    Its scores (UAS), settings and learning curve, and the number of words that were left out because they or their
    heads have no tokens, are written beside the output, to a file of the same name that ends in .summary.json.
    """
    settings = settings_of(arguments, TreeProbeSettings(words=arguments.words != NONE))
    inputs = [arguments.texts, arguments.test_texts, Path(arguments.words)]
    check_output(arguments.output, TABLES, inputs)
    check_output(_summary_path(arguments.output), others=inputs)
    check_ended(arguments.journal)
    journal = _ShownJournal(arguments.journal, arguments.checkpoint)
    with carried_out(journal, GO_ON if arguments.journal else ""):
        checkpoints = _Checkpoints(*loaded(arguments), settings.seed, arguments)
        question, facts = _read(arguments, checkpoints, settings)
        found = train_probes(checkpoints.run, question, journal, _kept(arguments.journal, question, facts), turn=None)
        if sentence := left_out(found.n_left_out):
            print(sentence, file=sys.stderr)
        _write(arguments, settings, found, facts)


class _ShownJournal(Journal):
    """A journal whose reports are shown on standard error, too."""

    def part(self, doing: str, n_done: int = 0, n_all: int = 0, detail: str = "") -> None:
        """See Journal."""
        super().part(doing, n_done, n_all, detail)
        self._bar.set_description(f"{self.progress.piece}: {doing}{detail}", refresh=False)
        self._bar.reach(n_done, n_all)

    @cached_property
    def _bar(self) -> ProgressBar:
        return ProgressBar(unit="text")


class _Checkpoints:
    """The checkpoint and its control, of which one is in memory at a time."""

    def __init__(self, checkpoint: Checkpoint, settings: PassSettings, seed: int, arguments: argparse.Namespace):
        self.settings, self.facts = settings, checkpoint_facts(checkpoint, settings)
        self._files, self._seed, self._arguments = checkpoint.files, seed, arguments
        self._loaded: dict[bool, Checkpoint] = {False: checkpoint}

    def run(self, control: bool, work: Callable[[Checkpoint], Done], watch: object = None) -> Done:
        """Work on the checkpoint, or on its control."""
        if control not in self._loaded:
            self._loaded.clear()  # first of all
            files = randomly_initialised(self._files, self._seed) if control else self._files
            loaded = load_checkpoint(files, device=self._arguments.device, dtype=self._arguments.dtype)
            check_settings(loaded, self.settings)
            self._loaded[control] = loaded
        return work(self._loaded[control])


def _summary_path(output: Path) -> Path:
    return output.with_suffix(".summary.json")


def _read(
    arguments: argparse.Namespace, checkpoints: _Checkpoints, settings: TreeProbeSettings
) -> tuple[ProbeQuestion, dict[str, str]]:
    """The probes to train on the texts that are not left out, and their provenance; says how much there is."""
    kind = checkpoints.settings.kind
    check_kind(kind)
    texts = first_texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
    if arguments.test_texts is None:
        train, test = split(len(first_texts), arguments.test_share, settings.seed)
    else:
        texts = (
            *first_texts,
            *read_texts(arguments.test_texts, arguments.text_columns, arguments.parser),
        )
        train, test = np.arange(len(first_texts)), np.arange(len(first_texts), len(texts))
    prepared = checkpoints.run(
        False, lambda checkpoint: prepared_texts(checkpoint, texts, checkpoints.settings, arguments.too_long)
    )
    parsed = dependencies([queries_text(texts[index], kind) for index in prepared])
    trees = list(progress_bar(([tree] for tree in parsed), len(prepared), "parsing"))
    places = {index: place for place, index in enumerate(prepared)}
    question = ProbeQuestion(
        texts=[texts[index] for index in prepared],
        trees=trees,
        train=[places[index] for index in train.tolist() if index in places],
        test=[places[index] for index in test.tolist() if index in places],
        kinds=[ProbeKind(settings.words, control) for control in (False, True)[: 1 + arguments.random_control]],
        settings=checkpoints.settings,
        how=settings,
        vectors=_vectors(arguments.words, texts, prepared, trees),
        too_long=arguments.too_long,
        most_bytes=arguments.memory_mb * 2**20,
    )
    n_words = [min(len(tree.heads), text.n_tokens) for tree, text in zip(trees, prepared.values())]
    checkpoints.run(False, lambda checkpoint: _say_size(n_words, checkpoint.attentions[kind], question.most_bytes))
    n_learned = sum(n_words[place] for place in question.train)
    for warning in little_data(n_learned, len(question.train), len(question.test)):
        print(warning, file=sys.stderr)
    return question, checkpoints.facts | {"words": arguments.words, "texts sha256": texts_sha256(texts)}


def _kept(folder: Path | None, question: ProbeQuestion, facts: Mapping[str, str]) -> KeptProbes:
    """The probes in a folder that depend on the same as those of a question."""
    trees = [[tree.heads.tolist(), list(tree.relations)] for tree in question.trees]
    vectors = None
    if question.vectors is not None:
        parts = (question.vectors.table, *question.vectors.rows)
        vectors = sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    how = asdict(question.how)
    return KeptProbes(folder, [dict(facts), question.too_long, trees, vectors, question.train, question.test, how])


def _say_size(n_words: Sequence[int], layers: AttentionLayers, budget: int) -> None:
    check_fits(n_words, layers.n_layers, layers.n_heads, budget)
    megabytes = attention_bytes(n_words, layers.n_layers, layers.n_heads) / 2**20
    print(f"The attention of {len(n_words):,} texts takes {megabytes:,.0f} MB of memory.", file=sys.stderr)


def _vectors(
    words: str, texts: Sequence[Text], prepared: Mapping[int, PassText], trees: Sequence[Dependencies]
) -> WordVectors | None:
    """Vectors of the words of the prepared texts from a file; None without one."""
    if words in (NONE, EMBEDDINGS):
        return None
    word_forms = [
        tree.words.shown(queries_text(texts[index], text.kind)) for (index, text), tree in zip(prepared.items(), trees)
    ]
    vectors = vectors_from_file(Path(words), word_forms)
    is_unknown = np.concatenate(vectors.rows) == UNKNOWN
    print(f"{is_unknown.sum():,} of {len(is_unknown):,} words have no vector in {words}.", file=sys.stderr)
    return vectors


def _write(
    arguments: argparse.Namespace,
    settings: TreeProbeSettings,
    found: ProbeResults,
    facts: Mapping[str, str],
) -> None:
    kinds = sorted(found.probes, key=lambda kind: kind.control)
    results = {"random control" if kind.control else "probe": found.probes[kind] for kind in kinds}
    scores = {name: result.score for name, result in results.items()}
    scores |= {_offset_name(offset): score for offset, score in found.offsets.items()}
    columns: dict[str, np.ndarray] = {}
    for prefix, result in zip(("", "control_"), results.values()):
        columns |= {f"{prefix}{name}": weight.ravel() for name, weight in zip("wu", result.training.probe.weights)}
    n_layers, n_heads = results["probe"].training.probe.weights.shape[1:]
    index = pd.MultiIndex.from_product([range(n_layers), range(n_heads)], names=["layer", "head"])
    write_table(arguments.output, pd.DataFrame(columns, index=index).reset_index(), facts)
    summary = {
        **facts,
        "settings": asdict(settings),
        "UAS": {name: asdict(score) for name, score in scores.items()},
        "words left out": found.n_left_out,
        "training": {name: _course(result.training) for name, result in results.items()},
    }
    write(
        _summary_path(arguments.output),
        lambda path: path.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", "utf-8"),
    )
    print(_table(scores))


def _course(training: ProbeTraining) -> dict[str, Any]:
    return {
        "texts": training.n_texts,
        "texts held out": training.n_held_out,
        "best epoch": training.best,
        "a_start, a_end": training.probe.root_parts.tolist(),
        "epochs": [asdict(epoch) for epoch in training.epochs],
    }


def _offset_name(offset: int) -> str:
    return "right-branching" if offset == RIGHT_BRANCHING else f"offset {offset:+d}, best on the training texts"


def _table(scores: Mapping[str, AttachmentScore]) -> str:
    width = max(map(len, scores))
    first = next(iter(scores.values()))
    rows = [f"UAS on {first.n_words:,} words of {first.n_texts:,} texts, with its {LEVEL:.0%} interval"]
    rows += [f"{name:{width}}  {s.share:6.1%}  {s.low:6.1%} to {s.high:6.1%}" for name, s in scores.items()]
    return "\n".join(rows)
