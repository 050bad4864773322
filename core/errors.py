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


class NoTokens(TextError):
    """A text, or a segment of a pair, of which no token is left.

    Attributes:
        position: 0-based place of the text among those given; None for the one text at hand.
    """

    def __init__(self, position: int | None) -> None:
        super().__init__(
            f"{_named(position)} has a segment in which this checkpoint knows no token. Give it at least one word."
        )
        self.position = position

    def at(self, position: int | None) -> "NoTokens":
        """The same about another place."""
        return NoTokens(position)


class PairNeeded(TextError):
    """A text without a target, where a decoder has to read one.

    Attributes:
        position: 0-based place of the text among those given; None for the one text at hand.
    """

    def __init__(self, position: int | None) -> None:
        super().__init__(
            f"{_named(position)} has no target for the decoder to read. Give source and target as a pair, with ||| "
            "between the two, or look at the encoder's attention."
        )
        self.position = position

    def at(self, position: int | None) -> "PairNeeded":
        """The same about another place."""
        return PairNeeded(position)


class TextTooLong(TextError):
    """A text has more tokens than the checkpoint can take.

    Attributes:
        position: 0-based place of the text among those given; None for the one text at hand.
        n_tokens: tokens of the text, special tokens included.
        limit: tokens the checkpoint takes.
    """

    def __init__(self, position: int | None, n_tokens: int, limit: int) -> None:
        super().__init__(
            f"{_named(position)} has {n_tokens:,} tokens and this checkpoint takes {limit:,}. "
            "Leave it out, cut it, or choose a checkpoint that takes longer texts."
        )
        self.position, self.n_tokens, self.limit = position, n_tokens, limit

    def at(self, position: int | None) -> "TextTooLong":
        """The same about another place."""
        return TextTooLong(position, self.n_tokens, self.limit)


class EveryTextTooLong(TextError):
    """No text is left, because all are longer than the checkpoint takes.

    Attributes:
        texts: place and number of tokens of each.
    """

    def __init__(self, texts: tuple[tuple[int, int], ...]) -> None:
        longest = max(n_tokens for _, n_tokens in texts)
        super().__init__(
            f"Every text is longer than this checkpoint takes (the longest has {longest:,} tokens). "
            "Cut them, give shorter ones, or choose a checkpoint that takes longer texts."
        )
        self.texts = texts


def _named(position: int | None) -> str:
    return "The text" if position is None else f"Text {position + 1}"
