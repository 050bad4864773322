"""Reads columns of texts from a Parquet file, where a few bytes may expand to any amount of text."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.errors import TextError, first_line, quoted

BYTES_AT_ONCE: Final = 2**28
"""Decoded bytes that are in memory at once, unless a single row takes more."""
LARGEST_GROUP: Final = 2**30
"""Maximum size of a row group in bytes, uncompressed, before repeated texts are expanded: the format may put all of
them into one page, which is read as a whole."""
ROWS_AT_ONCE: Final = 1_000


def parquet_columns(path: Path) -> tuple[str, ...]:
    """Names of the columns of a file.

    Raises: TextError for a file of another format; OSError.
    """
    with _opened(path) as file, _damage_named():
        return tuple(file.schema_arrow.names)


def parquet_rows(path: Path, names: Sequence[str]) -> Iterator[dict[str, str | None]]:
    """The rows of a file, with a bounded number of bytes in memory at once.

    A text that is repeated is written once, as an entry of a dictionary, so a row group can hold a thousand times as
    much as it says. No single text is longer than all that its group holds, which limits the rows of a batch.

    Args:
        path: the file.
        names: of columns with texts.

    Raises: TextError for a file of another format, and for a column that does not hold texts or has the name of
        another; OSError.
    """
    with _opened(path) as file:
        for name in names:
            _check_column(file, name)
        for number in range(file.num_row_groups):
            with _damage_named():
                # Of all columns: what a damaged file says of one of them ends the process when it is read.
                n_bytes = file.metadata.row_group(number).total_byte_size
            if n_bytes > LARGEST_GROUP:
                raise TextError(
                    f"Row group {number + 1:,} holds {n_bytes / 1e9:.1f} GB, and at most {LARGEST_GROUP / 1e9:.1f} GB "
                    "are read at once. Write the file with fewer rows in a group, or with the columns of texts alone."
                )
            n_rows = min(ROWS_AT_ONCE, max(1, BYTES_AT_ONCE // max(1, n_bytes)))
            batches = file.iter_batches(n_rows, row_groups=[number], columns=list(names))
            while rows := _next_rows(batches):
                yield from rows


def _next_rows(batches: Iterator[Any]) -> list[dict[str, str | None]]:
    with _damage_named():
        batch = next(batches, None)
        return [] if batch is None else batch.to_pylist()


def _opened(path: Path) -> Any:
    from pyarrow import parquet

    with _damage_named():
        return parquet.ParquetFile(path)


@contextmanager
def _damage_named() -> Iterator[None]:
    """Context manager that turns the library's errors for a damaged file into TextError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system, not of the library
            raise
        raise TextError(f"This is not a Parquet file that can be read ({first_line(error)}). Write it again.") from None


def _check_column(file: Any, name: str) -> None:
    import pyarrow as pa

    schema = file.schema_arrow
    if (n_columns := schema.names.count(name)) > 1:
        raise TextError(f"The table has {n_columns} columns named {quoted(name)}. Give each its own name.")
    kind = schema.field(name).type
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_text = pa.types.is_string(values) or pa.types.is_large_string(values) or pa.types.is_string_view(values)
    if not (is_text or pa.types.is_null(values)):
        raise TextError(f"The column {quoted(name)} holds values of type {str(kind)[:50]}. Write texts there.")
