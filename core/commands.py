"""What commands share: options, reading texts, loading a checkpoint, writing a table, a progress bar."""

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, TypeVar
from uuid import uuid4

import pandas as pd
from tqdm import tqdm

from core.attention.settings import ONE_STACK, TWO_STACKS, PassSettings, head_names
from core.checkpoints.checkpoint import DTYPES, Checkpoint
from core.checkpoints.find import LARGEST_SEED, find_checkpoint, load_checkpoint, randomly_initialised
from core.errors import AnalysisError, TextError, quoted, shortened
from core.passes.prepare import check_settings, prepare_all
from core.passes.question import Item, Question, Result, answer
from core.passes.texts import PassText
from core.texts.text import MAX_BYTES, Text, read_file
from core.texts.tokens import TooLong

TABLES: Final = (".parquet", ".csv")

Done = TypeVar("Done")
NAMED: Final = 100
"""Characters of a file's name that its unfinished form keeps."""


def add_checkpoint_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which checkpoint is looked at, and how."""
    parser.add_argument("--checkpoint", required=True, help="a hub id, a folder, or: bundled")
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu")
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--attention", choices=(*ONE_STACK, *TWO_STACKS), help="of an encoder-decoder")
    parser.add_argument(
        "--off", type=heads, action="extend", default=[], help="heads to switch off, as layer-head: 3-7,2-5"
    )


def add_random_weights_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that puts a control in the checkpoint's place."""
    parser.add_argument(
        "--random-weights",
        type=random_seed,
        metavar="SEED",
        help="a control: the same shape with weights before any training",
    )


def add_texts_options(parser: argparse.ArgumentParser, suffixes: str) -> None:
    """Add the options that say which texts are read.

    Args:
        parser: of the command.
        suffixes: of files that the command reads, for its help.
    """
    parser.add_argument("--texts", required=True, type=Path, help=suffixes)
    parser.add_argument("--text-columns", help="column or two columns of a table, as a,b")
    parser.add_argument("--too-long", default="error", choices=("error", "skip", "truncate"))


def heads(written: str) -> tuple[tuple[int, int], ...]:
    """Heads as `3-7,2-5`: layer and head, both 0-based."""
    matches = [re.fullmatch(r"\s*(\d{1,9})-(\d{1,9})\s*", part, re.ASCII) for part in written.split(",")]
    if not all(matches):
        raise argparse.ArgumentTypeError(f"{quoted(written)} does not name heads; write layer-head, as in 3-7,2-5")
    return tuple((int(head[1]), int(head[2])) for head in matches if head)


def random_seed(written: str) -> int:
    """What random numbers begin with: as much as torch takes."""
    if not re.fullmatch(r"\d{1,19}", written, re.ASCII) or int(written) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(
            f"{quoted(written)} is not a seed; write a whole number from 0 to {LARGEST_SEED}"
        )
    return int(written)


def read_texts(path: Path, columns: str | None = None) -> tuple[Text, ...]:
    """The texts of a file.

    Raises: TextError.
    """
    return read_file(
        path.name, read_bytes(path), tuple(name.strip() for name in columns.split(",")) if columns else None
    )


def read_bytes(path: Path) -> bytes:
    """A file's content, unless it is too large to be read.

    Raises: TextError.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)  # a device has no size, and may have no end
    except OSError as error:
        raise TextError(f"{shortened(str(path))} cannot be read ({error.strerror}). Check the path.") from None
    if len(content) > MAX_BYTES:
        raise TextError(f"{path} is larger than {MAX_BYTES // 10**6} MB. Split it.")
    return content


def loaded(chosen: argparse.Namespace) -> tuple[Checkpoint, PassSettings]:
    """The checkpoint of add_checkpoint_options, and what its passes are asked.

    Raises: CheckpointError; AnalysisError for an attention or a head that it has not.
    """
    files, seed = find_checkpoint(chosen.checkpoint), getattr(chosen, "random_weights", None)
    files = files if seed is None else randomly_initialised(files, seed)
    checkpoint = load_checkpoint(files, device=chosen.device, dtype=chosen.dtype)
    asked = PassSettings(chosen.attention or files.kinds[0], tuple(sorted(set(chosen.off))))
    check_settings(checkpoint, asked)
    return checkpoint, asked


def prepared_texts(
    checkpoint: Checkpoint, texts: Sequence[Text], settings: PassSettings, too_long: TooLong
) -> dict[int, PassText]:
    """Tokens of each text by its place; says on standard error what was left out or cut.

    Raises: TextTooLong for the first such text (`error` only); NoTokens; PairNeeded; TextError where none is left.
    """
    prepared, left_out = prepare_all(checkpoint, texts, settings, too_long)
    say_left_out(len(left_out), sum(_is_cut(text) for text in prepared.values()), len(texts), checkpoint.max_tokens)
    return prepared


def answers(
    checkpoint: Checkpoint,
    question: Question[Item, Result],
    items: Sequence[Item],
    prepared: Mapping[int, PassText],
    settings: PassSettings,
    doing: str | None = None,
) -> dict[int, Result]:
    """A question's results in the order of the items, computed under a progress bar; as `core.passes.question.answer`.

    Args:
        doing: what the bar says is done.

    Returns: result by the item's index.
    """
    work = answer(checkpoint, question, items, prepared, settings)
    return dict(sorted(progress_bar(work, len(prepared), doing), key=lambda indexed: indexed[0]))


def say_left_out(n_left_out: int, n_cut: int, n_texts: int, max_tokens: int) -> None:
    """Say on standard error how many texts were left out or cut.

    Raises: TextError where none is left.
    """
    said = f"{n_left_out} of {n_texts} texts have more than {max_tokens} tokens"
    if n_left_out == n_texts:
        raise TextError(f"{said}. Give shorter texts, or cut them with --too-long truncate.")
    if n_left_out:
        print(f"{said} and were left out.", file=sys.stderr)
    if n_cut:
        print(f"{n_cut} of {n_texts} texts were cut to {max_tokens} tokens.", file=sys.stderr)


def _is_cut(text: PassText) -> bool:
    return max(text.queries.n_cut, text.keys.n_cut) > 0


def progress_bar(work: Iterable[Sequence[Done]], n_texts: int, doing: str | None = None) -> Iterable[Done]:
    """What batches of work give, one by one, under a bar that counts them; silent where nobody watches."""
    with tqdm(desc=doing, total=n_texts, unit="text", disable=not sys.stderr.isatty()) as bar:
        for batch in work:
            yield from batch
            bar.update(len(batch))


def checkpoint_facts(checkpoint: Checkpoint, asked: PassSettings) -> dict[str, str]:
    """What a file says about the checkpoint that it comes from."""
    return {
        "checkpoint": checkpoint.files.name,
        "fingerprint": checkpoint.files.fingerprint,
        "dtype": checkpoint.dtype,
        "attention": asked.kind,
        "heads off": head_names(asked.off),
    }


def check_output(output: Path, suffixes: Sequence[str] = (), others: Iterable[Path | None] = ()) -> None:
    """Refuse what cannot be written before the work is done.

    Args:
        output: the file to write.
        suffixes: that it may have; none for any.
        others: that the command reads or writes, too; None for one that was not named.

    Raises: AnalysisError.
    """
    try:
        _check_place(output, others)
    except OSError as error:  # such as a name that is too long
        raise AnalysisError(
            f"{shortened(str(output))} cannot be written ({error.strerror or error}). Choose another place."
        ) from None
    if suffixes and output.suffix.lower() not in suffixes:
        raise AnalysisError(
            f"{shortened(str(output))} cannot be written in this format. Choose a name that ends in "
            f"{', '.join(suffixes)}."
        )
    _check_writable(output)


def _check_place(output: Path, others: Iterable[Path | None]) -> None:
    """Refuse a place where there is something else.

    Raises: AnalysisError; OSError for a name that the system does not take.
    """
    folder, shown = output.resolve().parent, shortened(str(output))
    if not folder.is_dir():
        at, name = shortened(str(folder)), shortened(output.name)
        raise AnalysisError(f"There is no folder {at} to write {name} to. Make it first.")
    if output.is_dir():
        raise AnalysisError(f"{shown} is a folder. Name a file in it.")
    if output.is_fifo():
        raise AnalysisError(f"{shown} is a pipe, which takes no whole file. Name a file.")
    if any(_is_same(output, other) for other in others if other):
        raise AnalysisError(f"{shown} is another file of this command, which would be overwritten. Name a new one.")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, also as hard links."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def _check_writable(output: Path) -> None:
    """Try it, as permissions do not tell all; what is there is left as it is.

    Raises: AnalysisError.
    """
    try:
        if not output.exists():
            with TemporaryFile(dir=output.resolve().parent):
                pass
        elif output.is_file():
            with output.open("ab"):
                pass
    except OSError as error:
        raise AnalysisError(f"{output} cannot be written ({error.strerror}). Choose another place.") from None


def write_table(output: Path, table: pd.DataFrame, facts: Mapping[str, str]) -> None:
    """Write a table as Parquet or CSV, by the suffix.

    Args:
        output: ends in one of TABLES.
        table: with a plain index.
        facts: where it comes from; in Parquet the table's `attrs`, in CSV columns that say the same in every row.

    Raises: AnalysisError.
    """
    if output.suffix.lower() == ".parquet":
        table.attrs = dict(facts)
        write(output, partial(table.to_parquet, index=False))
    else:
        write(output, partial(table.assign(**facts).to_csv, index=False))


def check_name(folder: Path) -> None:
    """Refuse a name that the system does not take, such as one of 300 characters.

    Raises: AnalysisError.
    """
    try:
        folder.exists()
    except OSError as error:
        why = error.strerror or error
        raise AnalysisError(f"{shortened(str(folder))} cannot be made ({why}). Choose another place.") from None


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it; one that is there stays as it is.

    Raises: AnalysisError where that fails.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise AnalysisError(f"{shortened(str(folder))} cannot be made ({why}). Choose another place.") from None


def write(output: Path, how: Callable[[Path], object]) -> None:
    """Write a file; an older one of its name stays as it is until the new one is whole.

    Args:
        output: the file.
        how: writes to the path that it is given.

    Raises: AnalysisError where that fails.
    """
    try:
        write_whole(output, how)
    except OSError as error:
        raise AnalysisError(f"{output} cannot be written ({error.strerror or error}). Choose another place.") from None


def write_whole(output: Path, how: Callable[[Path], object]) -> None:
    """As `write`.

    Raises: OSError.
    """
    if output.exists() and not output.is_file():
        how(output)  # a device, such as /dev/stdout
        return
    target = output.resolve()  # of a link, what it leads to
    part = target.with_name(f"{target.name[:NAMED]}-{uuid4().hex[:8]}.part")
    try:
        how(part)
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
