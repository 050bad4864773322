"""Errors in a worker's thread: out of memory, and errors passed on to waiting sessions."""

import logging
import traceback

from core.checkpoints.checkpoint import Checkpoint
from core.errors import AnalysisError, CheckpointError, TextError, panicked

_log = logging.getLogger(__name__)


class TooLarge(TextError):
    """A single text needs more memory than available.

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
        """The same error for a text at another position."""
        return TooLarge(position, self.n_tokens)


def no_room(checkpoint: Checkpoint) -> AnalysisError:
    """What is said where memory runs out on a job."""
    return AnalysisError(
        f"This needs more memory than {checkpoint.device} has room for beside {checkpoint.files.name}. Choose a "
        "shorter text, a smaller checkpoint or another device."
    )


def for_readers(error: BaseException) -> BaseException:
    """An error as those who wait can meet it: on a panic, which is no Exception, a page's thread would end for good."""
    return error if isinstance(error, Exception | KeyboardInterrupt | SystemExit) else CheckpointError(panicked(error))


def let_go(error: BaseException, is_bug: bool = True) -> None:
    """Put a bug into the log, and take the frames off an error: they refer to a model, or to the tensors of a pass.

    Whoever waits raises the error again, and may keep it for long.
    """
    if is_bug and not isinstance(error, AnalysisError):
        _log.error("A pass failed.\n%s", "".join(traceback.format_exception(error)))
    reason: BaseException | None = error
    while reason is not None:
        reason.__traceback__ = None
        reason = reason.__cause__ or reason.__context__
