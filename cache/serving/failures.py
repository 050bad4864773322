"""Errors in a worker's thread: out of memory, and errors re-raised in waiting sessions."""

import logging
import traceback

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError, CheckpointError, OneTextError, is_panic, panicked

_log = logging.getLogger(__name__)


class TooLarge(OneTextError):
    """A single text, of so many tokens, needs more memory than available."""

    said = (
        "has {:,} tokens, more than fit into memory with this checkpoint. Cut it, leave it out, or choose a smaller "
        "checkpoint or another device."
    )


def out_of_memory(checkpoint: Checkpoint) -> AnalysisError:
    """The error for a job that ran out of memory."""
    return AnalysisError(
        f"This needs more memory than {checkpoint.device} has room for beside {checkpoint.files.name}. Choose a "
        "shorter text, a smaller checkpoint or another device."
    )


def as_exception(error: BaseException) -> BaseException:
    """The error to raise in waiting sessions: a panic is not an Exception and would end a page's thread for good."""
    return CheckpointError(panicked(error)) if is_panic(error) else error


def log_and_release(error: BaseException, is_bug: bool = True) -> None:
    """Log a bug and remove an error's tracebacks, whose frames refer to a model or the tensors of a pass.

    Waiting sessions raise the error again and may keep it for a long time.
    """
    if is_bug and not isinstance(error, AnalysisError):
        _log.error("A pass failed.\n%s", "".join(traceback.format_exception(error)))
    reason: BaseException | None = error
    while reason is not None:
        reason.__traceback__ = None
        reason = reason.__cause__ or reason.__context__
