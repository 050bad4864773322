"""Grades one planted model, and all that stand in a folder."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attention_sieve as sieve
from benchmarks.planted.check import opened as opened_by_transformers
from benchmarks.planted.grades.claims import Opened, claims, roles
from benchmarks.planted.grades.copying import copying
from benchmarks.planted.grades.importance import direct_attribution, importance, measured_sets
from benchmarks.planted.grades.records import ModelGrades, Refusal, Statement
from benchmarks.planted.grades.sentences import links, names
from benchmarks.planted.truth import Truth


def grades_of(folder: Path) -> ModelGrades:
    """What the program says of a planted model, beside the truth.

    Args:
        folder: The model.
    """
    started, truth = time.process_time(), Truth.read(folder)
    opened = Opened(truth, sieve.load(folder, device="cpu"), opened_by_transformers(folder))
    refusals = list[Refusal]()
    statements = tuple(_statements(opened, refusals))
    measures = tuple(importance(opened, refusals.append))
    direct, by_logit = direct_attribution(opened, refusals.append)
    sets = measured_sets(opened)
    seconds = time.process_time() - started
    return ModelGrades(truth, statements, tuple(refusals), (*measures, *by_logit), sets, direct, seconds)


def _statements(opened: Opened, refusals: list[Refusal]) -> Iterator[Statement]:
    yield from claims(opened, refusals.append)
    yield from roles(opened)
    if not opened.has_words:
        return
    yield from names(opened)
    yield from links(opened)
    if opened.is_causal:
        yield from copying(opened, refusals.append)


def grade_all(folders: Sequence[Path], output: Path) -> None:
    """Grade the models that have no file of grades yet, and print a line for each.

    Args:
        folders: Of planted models.
        output: Where the grades are kept, a file for each model.
    """
    output.mkdir(parents=True, exist_ok=True)
    for number, folder in enumerate(folders, start=1):
        file = output / f"{folder.name}.json"
        if file.exists():
            continue
        grades = grades_of(folder)
        grades.write(file)
        wrong = sum(statement.outcome == "wrong" for statement in grades.statements)
        said = f"{len(grades.statements)} statements, {wrong} wrong, {grades.seconds:.1f} s"
        print(f"{number} of {len(folders)}, {folder.name}: {said}", flush=True)
