"""Errors that are shown to the user. Each message says what is wrong and what to do about it."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, Self

PROGRAM: Final = "attention-sieve" if Path(sys.argv[0]).stem == "attention-sieve" else "python -m attention_sieve"
"""How the command line was called, for messages that name a command: with uvx, only the first way is there."""
LONGEST_QUOTED: Final = 100
"""Maximum number of characters of a quoted name or word in a message."""
PANIC: Final = ("pyo3_runtime", "PanicException")
"""Module and name of the class of panics in pyo3, which does not let Python import it."""
OUT_OF_MEMORY: Final = ("can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Parts of torch's messages: a GPU has its own error class, a CPU raises any RuntimeError."""
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that a terminal obeys."""
_TOO_LONG: Final = re.compile(rf"\S{{{LONGEST_QUOTED + 1},}}")


class AnalysisError(Exception):
    """An error with a message for the user; pages and the command line catch this class and nothing broader.

    Very long names in the message are shortened to both ends, and control characters are spelled out.
    """

    def __init__(self, message: str) -> None:
        plain = "\n".join(map(plain_controls, message.split("\n")))
        super().__init__(_TOO_LONG.sub(lambda word: shortened(word[0]), plain))


def plain_controls(text: str) -> str:
    """A line for a terminal, in which control characters are spelled out."""
    return _CONTROLS.sub(lambda control: ascii(control[0])[1:-1], text)


def shortened(name: str) -> str:
    """A name, which may contain spaces, for a message: a very long one is shortened to both ends."""
    half = (LONGEST_QUOTED - 1) // 2
    return name if len(name) <= LONGEST_QUOTED else f"{name[:half]}…{name[-half:]}"


class CheckpointError(AnalysisError):
    """A checkpoint cannot be used: not found, not safetensors, unknown architecture, or its self-check failed."""


class HubOutOfReach(CheckpointError):
    """The hub does not answer, and no copy of the checkpoint is on this machine."""


class FetchNeeded(CheckpointError):
    """A checkpoint of the hub would have to be downloaded, which the user has not asked for.

    Attributes:
        name: hub id.
        n_bytes: size of the download.
    """

    def __init__(self, name: str, n_bytes: int) -> None:
        super().__init__(
            f"{name} has to be fetched from the Hugging Face Hub ({max(1, round(n_bytes / 1e6)):,} MB). Fetch it if "
            "you know who made it, or choose another checkpoint."
        )
        self.name, self.n_bytes = name, n_bytes


class GrowsLarger(AnalysisError):
    """A checkpoint would have more weights without some of its heads than with them."""

    def __init__(self, name: str, n_weights: tuple[int, int]) -> None:
        super().__init__(
            f"Without these heads, {name} would have {n_weights[1]:,} weights instead of {n_weights[0]:,}: several of "
            "its heads share keys and values, and where unequal numbers of them are left, each needs a copy of its "
            "own. Remove heads that share keys and values together, the same number of each such group, or set the "
            "heads to 0 instead."
        )


class TextError(AnalysisError):
    """Texts cannot be read: encoding, columns, a broken line, or too many of them."""


class ColumnsNeeded(TextError):
    """A table's header contains no known text column, so the user has to choose one.

    Attributes:
        columns: the column names in the header, in order.
    """

    def __init__(self, message: str, columns: tuple[str, ...]) -> None:
        super().__init__(message)
        self.columns = columns


class OneTextError(TextError):
    """One of the texts cannot be used.

    Attributes:
        position: 0-based index of the text in the input; None if there is only one text.
        numbers: what the message says of it.
    """

    said: ClassVar[str]
    """The message after the name of the text, with a place for each number."""

    def __init__(self, position: int | None, *numbers: int) -> None:
        name = "The text" if position is None else f"Text {position + 1}"
        super().__init__(f"{name} {self.said.format(*numbers)}")
        self.position, self.numbers = position, numbers

    def at(self, position: int | None) -> Self:
        """The same error for a text at another position."""
        return type(self)(position, *self.numbers)


class NoTokens(OneTextError):
    """A text, or one segment of a pair, has no tokens."""

    said = "has a segment without any token of this checkpoint. Give it at least one word."


class PairNeeded(OneTextError):
    """A text has no target segment, but a decoder needs one."""

    said = (
        "has no target for the decoder to read. Give source and target as a pair, with ||| between the two, or look at "
        "the encoder's attention."
    )


class TextTooLong(OneTextError):
    """A text has more tokens than the checkpoint accepts; its numbers are `n_tokens` and `limit`."""

    said = (
        "has {:,} tokens and this checkpoint takes {:,}. Leave it out, truncate it, or choose a checkpoint that takes "
        "longer texts."
    )

    @property
    def n_tokens(self) -> int:
        """Tokens of the text, special tokens included."""
        return self.numbers[0]

    @property
    def limit(self) -> int:
        """Maximum length of the checkpoint, in tokens."""
        return self.numbers[1]


class EveryTextTooLong(TextError):
    """All texts are longer than the checkpoint accepts.

    Attributes:
        texts: index and number of tokens of each text.
    """

    def __init__(self, texts: tuple[tuple[int, int], ...]) -> None:
        longest = max(n_tokens for _, n_tokens in texts)
        super().__init__(
            f"Every text is longer than this checkpoint takes (the longest has {longest:,} tokens). "
            "Truncate them, give shorter ones, or choose a checkpoint that takes longer texts."
        )
        self.texts = texts


def quoted(value: object) -> str:
    """A value from the user in quotes, for a message, cut to LONGEST_QUOTED characters."""
    representation = repr(value)
    return representation if len(representation) <= LONGEST_QUOTED else f"{representation[: LONGEST_QUOTED - 1]}…"


def first_line(error: BaseException) -> str:
    """First line of a library's message, at most 100 characters."""
    return str(error).strip().split("\n")[0][:100] or type(error).__name__


@contextmanager
def panics_caught() -> Iterator[None]:
    """Convert errors of `tokenizers`, a library in Rust, into CheckpointErrors.

    Its panics are not Exceptions, so neither a page nor a shared thread would survive one; its errors are plain
    Exceptions.

    Raises: CheckpointError for a panic and for a plain Exception; everything else passes through, such as exceptions
    raised by signal handlers.
    """
    try:
        yield
    except BaseException as error:
        if type(error) is Exception:
            raise CheckpointError(panicked(error)) from error
        if is_panic(error):
            raise CheckpointError(panicked(error)) from None
        raise


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory is insufficient."""
    is_torchs = isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    return is_torchs or isinstance(error, MemoryError)


def is_panic(error: BaseException) -> bool:
    """Whether an error is a panic of a library in Rust; each library has its own class, by this name."""
    return (type(error).__module__, type(error).__qualname__) == PANIC


def panicked(panic: BaseException) -> str:
    """The message for a panic."""
    return (
        f"The checkpoint's tokenizer crashed ({first_line(panic)}). Save its tokenizer.json again, or choose "
        "another checkpoint."
    )
