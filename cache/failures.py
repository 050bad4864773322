"""What goes wrong in a worker's thread: memory that does not suffice, and errors that are handed to those who wait."""

import logging
import traceback

from core.checkpoints import Checkpoint
from core.errors import AnalysisError, TextError

_log = logging.getLogger(__name__)


class TooLarge(TextError):
    """One text alone needs more memory than there is.

    Attributes:
        n_tokens: tokens of the text.
    """

    def __init__(self, position: int | None, n_tokens: int) -> None:
        named = "The text" if position is None else f"Text {position + 1}"
        super().__init__(
            f"{named} has {n_tokens:,} tokens, more than fit into memory with this checkpoint. Cut it, leave it out, "
            "or choose a smaller checkpoint or another device."
        )
        self.n_tokens = n_tokens

    def at(self, position: int | None) -> "TooLarge":
        """The same about another place."""
        return TooLarge(position, self.n_tokens)


def no_room(checkpoint: Checkpoint) -> AnalysisError:
    """What is said where memory runs out on a job."""
    return AnalysisError(
        f"This needs more memory than {checkpoint.device} has room for beside {checkpoint.files.name}. Choose a "
        "shorter text, a smaller checkpoint or another device."
    )


def let_go(error: BaseException, is_bug: bool = True) -> None:
    """Put a bug into the log, and take the frames off an error: they refer to a model, or to the tensors of a pass.

    Whoever waits raises the error again, and may keep it for long.
    """
    if is_bug and not isinstance(error, AnalysisError):
        _log.error("A pass failed.\n%s", "".join(traceback.format_exception(error)))
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__cause__ or found.__context__
