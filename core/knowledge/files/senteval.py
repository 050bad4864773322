"""Files in SentEval's format: a part (tr, va or te), a label and a sentence in each line, separated by tabs.

Source: the probing sets of Conneau et al. 2018, as facebookresearch/SentEval reads them.
"""

import io
from collections.abc import Iterable, Iterator
from typing import Final

from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.finetuning.data import MOST_CLASSES_OF_NUMBERS, NUMBER, check_label, refuse_unlabelled
from attention_sieve.core.knowledge.task import PARTS, Task, TaskExample
from attention_sieve.core.texts.text import Text, decoded, text_of

MAX_ROWS: Final = 200_000
"""Maximum number of rows; SentEval's files have 120,000."""
MARKS: Final = dict(zip(("tr", "va", "te"), PARTS))
"""First cell of a line -> name of the part."""
_N_CELLS: Final = 3


def read_senteval(name: str, content: bytes, *, is_regression: bool | None = None, source: str | None = None) -> Task:
    """Read a task from a file in SentEval's format.

    Args:
        content: bytes of the file, UTF-8, unpacked.
        is_regression: None to decide by the labels, as `are_targets` does.
        source: provenance of the task; None for the file itself.

    Raises: TextError, with the line.
    """
    examples = labelled_examples(_rows(decoded(content)))
    if not examples:
        raise TextError("The file has no rows. Write a part (tr, va or te), a label and a sentence in each line.")
    if is_regression is None:
        is_regression = are_targets(examples)
    return Task(name, examples, is_regression, source or f"a file in SentEval's format, {name}")


def is_senteval(content: bytes) -> bool:
    """Whether the first line of a file looks as in SentEval's format."""
    cells = content.split(b"\n", 1)[0].split(b"\t")
    return len(cells) == _N_CELLS and cells[0].decode("utf-8", errors="replace").lstrip("\ufeff") in MARKS


def write_senteval(task: Task) -> str:
    """A task as the content of a file in SentEval's format, part by part.

    Raises: AnalysisError for a task about pairs, which the format does not support.
    """
    pair = next((example for example in task.examples if len(example.text.segments) != 1), None)
    if pair is not None:
        raise AnalysisError(f"{task.name} is about pairs, and SentEval's format has one sentence in a line.")
    return "".join(
        f"{mark}\t{example.label}\t{example.text.segments[0]}\n"
        for mark, part in MARKS.items()
        for example in task.of_part(part)
    )


def are_targets(examples: tuple[TaskExample, ...]) -> bool:
    """Whether labels are regression targets: numbers with more than MOST_CLASSES_OF_NUMBERS distinct values."""
    labels = {example.label for example in examples}
    return all(map(NUMBER.fullmatch, labels)) and len(set(map(float, labels))) > MOST_CLASSES_OF_NUMBERS


def labelled_examples(rows: Iterable[tuple[int, Text, str, str]]) -> tuple[TaskExample, ...]:
    """The examples of a file.

    Args:
        rows: line, text, label and part of each.

    Raises: TextError for too many rows, and for rows without a label or with one that cannot be shown, with the line.
    """
    examples: list[TaskExample] = []
    unlabelled: list[int] = []
    for line, text, label, part in rows:
        if len(examples) == MAX_ROWS:
            raise TextError(f"There are more than {MAX_ROWS:,} rows. Choose fewer.")
        if not label:
            unlabelled.append(line)
            continue
        check_label(line, label)
        if not label.isprintable():
            raise TextError(
                f"Line {line:,}: the label has characters that cannot be shown. Write a plain name or number."
            )
        examples.append(TaskExample(text, label, part))
    refuse_unlabelled(unlabelled)
    return tuple(examples)


def _rows(content: str) -> Iterator[tuple[int, Text, str, str]]:
    for line, row in enumerate(io.StringIO(content, newline=None), start=1):
        if not row.strip():
            continue
        cells = row.removesuffix("\n").split("\t")
        if len(cells) != _N_CELLS:
            raise TextError(
                f"Line {line:,} has {len(cells):,} cell{'' if len(cells) == 1 else 's'} and {_N_CELLS} are expected: "
                "a part, a label and a sentence, separated by tabs."
            )
        mark, label, sentence = cells
        if mark.strip() not in MARKS:
            raise TextError(f'Line {line:,}: the part is "{mark[:40]}". Write tr, va or te.')
        yield line, text_of([sentence], f"Line {line:,}"), label.strip(), MARKS[mark.strip()]
