"""Files in SentEval's format: a part (tr, va or te), a label and a sentence in each line, separated by tabs.

Source: the probing sets of Conneau et al. 2018, as facebookresearch/SentEval reads them.
"""

import io
from collections.abc import Iterator
from typing import Final

from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.finetuning.data import MOST_CLASSES_OF_NUMBERS, NUMBER, check_label, refuse_unlabelled
from attention_sieve.core.knowledge.task import PARTS, Task, TaskExample
from attention_sieve.core.texts.text import decoded, text_of

MAX_ROWS: Final = 200_000
"""Maximum number of rows; SentEval's files have 120,000."""
MARKS: Final = dict(zip(("tr", "va", "te"), PARTS))
"""First cell of a line -> name of the part."""
_N_CELLS: Final = 3


def read_senteval(name: str, content: bytes, *, is_regression: bool | None = None, source: str | None = None) -> Task:
    """Read a task from a file in SentEval's format.

    Args:
        name: of the task.
        content: bytes of the file, UTF-8, unpacked.
        is_regression: None to decide by the labels, as `are_targets` does.
        source: provenance of the task; None for the file itself.

    Raises: TextError, with the line.
    """
    examples = tuple(_examples(decoded(content)))
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


def checked_label(line: int, label: str) -> str:
    """The label of a row, which is not empty.

    Raises: TextError for one that is very long, or has characters that cannot be shown.
    """
    check_label(line, label)
    if not label.isprintable():
        raise TextError(f"Line {line:,}: the label has characters that cannot be shown. Write a plain name or number.")
    return label


def _examples(content: str) -> Iterator[TaskExample]:
    n_rows = 0
    unlabelled: list[int] = []
    for line, row in enumerate(io.StringIO(content, newline=None), start=1):
        if not row.strip():
            continue
        n_rows += 1
        if n_rows > MAX_ROWS:
            raise TextError(f"There are more than {MAX_ROWS:,} rows. Choose fewer.")
        cells = row.removesuffix("\n").split("\t")
        if len(cells) != _N_CELLS:
            raise TextError(
                f"Line {line:,} has {len(cells):,} cell{'' if len(cells) == 1 else 's'} and {_N_CELLS} are expected: "
                "a part, a label and a sentence, separated by tabs."
            )
        mark, label, sentence = cells
        if mark.strip() not in MARKS:
            raise TextError(f'Line {line:,}: the part is "{mark[:40]}". Write tr, va or te.')
        text = text_of([sentence], f"Line {line:,}")
        if not label.strip():
            unlabelled.append(line)
            continue
        yield TaskExample(text, checked_label(line, label.strip()), MARKS[mark.strip()])
    refuse_unlabelled(unlabelled)
