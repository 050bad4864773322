"""The errors a reader sees. Each message says what was found and what to do."""


class AnalysisError(Exception):
    """A sentence for the reader; pages and the command line catch this and nothing broader."""


class CheckpointError(AnalysisError):
    """A checkpoint cannot be used: not found, not safetensors, unknown architecture, or its self-check failed."""


class TextError(AnalysisError):
    """Texts cannot be read: encoding, columns, a broken line, or too many of them."""


class ColumnsNeeded(TextError):
    """A table's header names no known text column; the reader has to pick.

    Attributes:
        columns: the header's names, in order.
    """

    def __init__(self, message: str, columns: tuple[str, ...]) -> None:
        super().__init__(message)
        self.columns = columns


class TextTooLong(TextError):
    """A text has more tokens than the checkpoint can take.

    Attributes:
        position: 0-based place of the text among those given.
        n_tokens: tokens of the text, special tokens included.
        limit: tokens the checkpoint takes.
    """

    def __init__(self, position: int, n_tokens: int, limit: int) -> None:
        super().__init__(
            f"Text {position + 1} has {n_tokens:,} tokens and this checkpoint takes {limit:,}. "
            "Leave it out, cut it, or choose a checkpoint that takes longer texts."
        )
        self.position, self.n_tokens, self.limit = position, n_tokens, limit
