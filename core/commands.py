"""Shared by all commands: reading texts, loading a checkpoint, writing a table, a progress bar."""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, TypeVar
from uuid import uuid4

import pandas as pd

from attention_sieve.core.answering import (
    Analysis,
    AnswerQuestion,
    Finding,
    Input,
    Item,
    Question,
    Reading,
    Result,
    Settings,
    Watch,
    answer,
    find_in,
    text_itself,
)
from attention_sieve.core.attention.settings import PassSettings, head_names
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.errors import AnalysisError, TextError, shortened
from attention_sieve.core.passes.texts import PassText, check_settings, prepare_all
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.texts.parsers import parsed_by, trees_source
from attention_sieve.core.texts.text import Text, read_bytes, read_file, texts_sha256
from attention_sieve.core.texts.tokens import TooLong

PARQUET: Final = ".parquet"
CSV: Final = ".csv"
LATEX: Final = ".tex"
TABLES: Final = (PARQUET, CSV, LATEX)
TABLE_FILE: Final = f"{', '.join(TABLES[:-1])} or {TABLES[-1]}"
MOST_ROWS: Final = 40
"""Of a table of LaTeX on one page; a longer one is broken over pages."""
INTERRUPTED: Final = 130
"""Exit status of a program that was ended from the keyboard."""

Done = TypeVar("Done")
NAMED: Final = 100
"""Characters of a file's name that are kept in the name of its unfinished copy."""


def read_texts(path: Path, columns: str | None = None, parser: str | None = None) -> tuple[Text, ...]:
    """The texts of a file. Columns of a table are one name, or two separated by a comma.

    Raises: TextError; AnalysisError for a parser that is not installed.
    """
    names = tuple(name.strip() for name in columns.split(",")) if columns else None
    return parsed_by(read_file(path.name, read_bytes(path), names), parser)


def facts_of_texts(texts: Sequence[Text]) -> dict[str, str]:
    """Metadata of a result file on its texts: their digest, and their parsers where one was chosen."""
    chosen = any(text.parser is not None for text in texts)
    return {"texts sha256": texts_sha256(texts), **({"trees": trees_source(texts)} if chosen else {})}


def loaded(options: argparse.Namespace) -> tuple[Checkpoint, PassSettings]:
    """The checkpoint and the settings of its passes, from the options of
    attention_sieve.core.options.add_checkpoint_options.

    Raises: CheckpointError; AnalysisError if the checkpoint lacks the requested attention or head.
    """
    files, seed = find_checkpoint(options.checkpoint), getattr(options, "random_weights", None)
    files = files if seed is None else randomly_initialised(files, seed)
    checkpoint = load_checkpoint(files, device=options.device, dtype=options.dtype)
    settings = PassSettings(options.attention or files.kinds[0], tuple(sorted(set(options.off))))
    check_settings(checkpoint, settings)
    return checkpoint, settings


def check_named_heads(options: argparse.Namespace) -> None:
    """Raise for heads that a command names and its checkpoint, by its configuration, does not have: before texts are
    read and parsed, and weights loaded.

    Raises: AnalysisError, also for a checkpoint that cannot be found.
    """
    named = [*(getattr(options, "off", None) or ()), *(getattr(options, "heads", None) or ())]
    # A fine-tuning run, which its saved steps stand for, need not be a checkpoint itself.
    if named and options.checkpoint and not getattr(options, "over_steps", False):
        files = find_checkpoint(options.checkpoint)
        files.check_heads(options.attention or files.kinds[0], named)


def prepared_texts(
    checkpoint: Checkpoint, texts: Sequence[Text], settings: PassSettings, too_long: TooLong
) -> dict[int, PassText]:
    """Tokens of each text by its index; prints to standard error how many texts were left out or truncated.

    Raises: TextTooLong for the first such text (`error` only); NoTokens; PairNeeded; TextError if no text remains.
    """
    prepared, left_out = prepare_all(checkpoint, texts, settings, too_long)
    say_left_out(
        len(left_out), sum(text.lengths["n_cut"] > 0 for text in prepared.values()), len(texts), checkpoint.max_tokens
    )
    return prepared


def progress_bar(
    work: Iterable[Sequence[Done]], n_texts: int, doing: str | None = None, bar: Callable[..., Any] = ProgressBar
) -> Iterable[Done]:
    """The results of all batches, one by one, while the progress is shown by a bar with tqdm's arguments."""
    with bar(desc=doing, total=n_texts, unit="text") as shown:
        for batch in work:
            yield from batch
            shown.update(len(batch))


def answers(
    reading: Reading[Any],
    question: Question[Item, Result],
    items: Sequence[Item],
    doing: str | None = None,
    watch: Watch = progress_bar,
) -> dict[int, Result]:
    """A question's results in the order of the items, computed while `watch` shows the progress. There is an item for
    each input of the reading.

    Returns: result by the item's index.
    """
    work = reading.answer(reading.checkpoint, question, items, reading.prepared, reading.pass_settings)
    return dict(sorted(watch(work, len(reading.prepared), doing), key=lambda indexed: indexed[0]))


def reading_of(
    checkpoint: Checkpoint,
    settings: PassSettings,
    inputs: Sequence[Input],
    too_long: TooLong,
    answer: AnswerQuestion = answer,
    text_of: Callable[[Any], Text] = text_itself,
) -> Reading[Input]:
    """Texts, or other inputs, as a checkpoint reads them; prints and raises as `prepared_texts`."""
    prepared = prepared_texts(checkpoint, [text_of(item) for item in inputs], settings, too_long)
    return Reading(checkpoint=checkpoint, pass_settings=settings, inputs=inputs, prepared=prepared, answer=answer)


def write_reading(
    output: Path,
    analysis: Analysis[Input, Item, Result, Settings, Finding],
    reading: Reading[Input],
    settings: Settings,
    text_facts: Mapping[str, str],
) -> Finding:
    """Write the table of what an analysis finds in texts that are prepared, under bars of progress. `text_facts` is the
    metadata of the file on the texts.

    Raises: AnalysisError of any stage.
    """
    finding = find_in(analysis, reading, settings, progress_bar)
    write_table(output, analysis.table(finding), finding_facts(analysis, reading, finding, settings, text_facts))
    return finding


def finding_facts(
    analysis: Analysis[Input, Item, Result, Settings, Finding],
    reading: Reading[Input],
    finding: Finding,
    settings: Settings,
    text_facts: Mapping[str, str],
) -> dict[str, str]:
    """Metadata of a file of a finding; arguments as of `write_reading`."""
    n_texts = {} if "texts" in analysis.columns else {"texts": str(len(reading.prepared))}
    checkpoint_values = checkpoint_facts(reading.checkpoint, reading.pass_settings)
    return {**checkpoint_values, **n_texts, **text_facts, **analysis.facts(finding, settings)}


def say_left_out(n_left_out: int, n_cut: int, n_texts: int, max_tokens: int) -> None:
    """Print to standard error how many texts were left out or truncated.

    Raises: TextError if no text remains.
    """
    finding = f"{n_left_out} of {n_texts} texts have more than {max_tokens} tokens"
    if n_left_out == n_texts:
        raise TextError(f"{finding}. Give shorter texts, or truncate them with --too-long truncate.")
    if n_left_out:
        print(f"{finding} and were left out.", file=sys.stderr)
    if n_cut:
        print(f"{n_cut} of {n_texts} texts were truncated to {max_tokens} tokens.", file=sys.stderr)


def checkpoint_facts(checkpoint: Checkpoint, settings: PassSettings) -> dict[str, str]:
    """Metadata of a result file: its checkpoint, number format, attention and heads that are off."""
    files = checkpoint.files
    return {
        "checkpoint": files.name,
        "fingerprint": files.fingerprint,
        "dtype": checkpoint.dtype,
        **files.facts_of_weights,
        "attention": settings.kind,
        "heads off": head_names(settings.off),
    }


def check_output(output: Path, suffixes: Sequence[str] = (), others: Iterable[Path | None] = ()) -> None:
    """Raise before the work begins if the output cannot be written. Suffixes are the allowed ones, empty for any; a
    device such as /dev/null needs none. Others are further files of the command, None for an option that was not given.

    Raises: AnalysisError.
    """
    with _told(output):  # such as a name that is too long
        _check_path(output, others)
    if suffixes and output.suffix.lower() not in suffixes and not output.is_char_device():
        raise AnalysisError(
            f"{shortened(str(output))} cannot be written in this format. Choose a name that ends in "
            f"{', '.join(suffixes)}."
        )
    # Permissions alone are not conclusive; an existing file is left unchanged.
    with _told(output):
        if not output.exists():
            with TemporaryFile(dir=output.resolve().parent):
                pass
        elif output.is_file():
            with output.open("ab"):
                pass


@contextmanager
def _told(path: Path, done: str = "written") -> Iterator[None]:
    """Tell the user what the system refuses.

    Raises: AnalysisError for an OSError.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise AnalysisError(f"{shortened(str(path))} cannot be {done} ({why}). Choose another place.") from None


def _check_path(output: Path, others: Iterable[Path | None]) -> None:
    """Raise if the path is taken or has no folder.

    Raises: AnalysisError; OSError for a name that the system does not accept.
    """
    folder, name_shown = output.resolve().parent, shortened(str(output))
    if not folder.is_dir():
        parent, name = shortened(str(folder)), shortened(output.name)
        raise AnalysisError(f"There is no folder {parent} to write {name} to. Create it first.")
    if output.is_dir():
        raise AnalysisError(f"{name_shown} is a folder. Name a file in it.")
    if output.is_fifo():
        raise AnalysisError(f"{name_shown} is a pipe, and results can only be written to a file. Name a file.")
    if any(_is_same(output, other) for other in others if other):
        raise AnalysisError(
            f"{name_shown} is also another file of this command, and would be overwritten. Choose another name."
        )


def _is_same(a: Path, b: Path) -> bool:
    """Whether two paths refer to the same file, including hard links."""
    return a.resolve() == b.resolve() or (a.exists() and b.exists() and a.samefile(b))


def write_table(output: Path, table: pd.DataFrame, facts: Mapping[str, str]) -> None:
    """Write a table as Parquet, CSV or LaTeX, by the suffix.

    Args:
        output: ends in one of TABLES.
        table: a table with a default index.
        facts: its origin; in Parquet the table's `attrs`, in CSV columns with the same value in every row, in LaTeX
            comments.

    Raises: AnalysisError; ValueError if a fact has the name of a column, which it would replace.
    """
    if taken := [name for name in facts if name in table.columns]:
        raise ValueError(f"Facts and table both have a column {taken[0]!r}.")
    if output.suffix.lower() == PARQUET:
        table.attrs = dict(facts)
        write(output, partial(table.to_parquet, index=False))
    elif output.suffix.lower() == LATEX:
        write(output, lambda file: Path(file).write_text(latex_table(table, facts), encoding="utf-8"))
    else:
        write(output, partial(table.assign(**facts).to_csv, index=False))


def latex_table(table: pd.DataFrame, facts: Mapping[str, str]) -> str:
    """A table for a paper, which needs the package booktabs (and longtable beyond MOST_ROWS rows).

    Numbers have three digits; whatever LaTeX reads as a command in names and texts is escaped.
    """
    comments = "".join(f"% {name}: {' '.join(value.split())}\n" for name, value in facts.items())
    rows = table.to_latex(index=False, escape=True, float_format="%.3g", na_rep="--", longtable=len(table) > MOST_ROWS)
    return comments + str(rows)


def check_name(folder: Path) -> None:
    """Raise for a name that the system does not accept, such as one of 300 characters.

    Raises: AnalysisError.
    """
    with _told(folder, "made"):
        folder.exists()


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, unless it exists.

    Raises: AnalysisError if that fails.
    """
    with _told(folder, "made"):
        folder.mkdir(parents=True, exist_ok=True)


def write(output: Path, write_to: Callable[[Path], object]) -> None:
    """Write a file; an existing one is replaced only once the new one is complete.

    Raises: AnalysisError if that fails.
    """
    with _told(output):
        write_whole(output, write_to)


def write_whole(output: Path, write_to: Callable[[Path], object]) -> None:
    """As `write`.

    Raises: OSError.
    """
    if output.exists() and not output.is_file():
        write_to(output)  # a device, such as /dev/stdout
        return
    target = output.resolve()  # follows links
    temporary = target.with_name(f"{target.name[:NAMED]}-{uuid4().hex[:8]}.part")
    try:
        write_to(temporary)
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
