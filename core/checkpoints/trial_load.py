"""Loads a checkpoint in a separate process, so that too much memory or time harms nothing else.

`python -m attention_sieve.core.checkpoints.trial_load NAME` is that process; `try_to_load` starts and watches it.
"""

import string
import sys
from functools import partial
from typing import Any, Final

from attention_sieve.core.checkpoints.chat_templates import try_template
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.checks.files import WEIGHT_FILES
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.limited import Failed, Limits, report_error, reported_error
from attention_sieve.core.errors import CheckpointError, panics_caught

MOST_BYTES: Final = 1_800_000_000
"""Memory limit of the process, in addition to twice the size of its weights; torch and transformers take .4 GB of it.
300 hostile checkpoints stayed below 2 GB."""
MOST_SECONDS: Final = 28
"""Limit on processor time, which leaves 2 of 30 seconds for the last check; importing torch takes half of it on a slow
machine."""
LONGEST_WAIT: Final = 180
"""Limit on wall-clock time in seconds, for a process that waits for something."""
MOST_TRIED: Final = 10**9
"""Weights of up to this many bytes are loaded on trial too: their format cannot run code, and loading larger ones takes
long."""
TEXTS: Final = (
    "The old baker quietly closed her small shop, and it wasn't her fault!",
    string.printable,
    "Zwölf Boxkämpfer; широкая электрификация; 東京都へ行く; \N{GRINNING FACE}\N{ZERO WIDTH JOINER} مرحبا",
    "the cat sat on " + "a" * 34,
    "x" * 2_000 + " " * 2_000 + "1 " * 1_000,
)
"""Texts on which its tokenizer is tried."""
MOST_TOKENS_PER_BYTE: Final = 4
"""Maximum number of tokens per byte of a text in UTF-8."""


def try_to_load(files: CheckpointFiles) -> None:
    """Load a checkpoint and tokenise a few texts with it, in a process with limited memory and time.

    Raises: CheckpointError as `load_checkpoint` does, or if the process exceeded a limit or crashed.
    """
    limits = Limits(MOST_BYTES + 2 * min(_n_bytes(files), MOST_TRIED), MOST_SECONDS, LONGEST_WAIT)
    try:
        error = reported_error("attention_sieve.core.checkpoints.trial_load", [str(files.folder)], limits)
    except Failed as failed:
        raise CheckpointError(
            f"{files.name} {failed} when it was loaded on trial, so it is not used. Save the checkpoint again, or "
            "choose another."
        ) from None
    if error:
        raise CheckpointError(error.replace(str(files.folder), files.name))


def _n_bytes(files: CheckpointFiles) -> int:
    return sum(path.stat().st_size for path in files.whole.folder.glob(WEIGHT_FILES))


def _tokenizer(files: CheckpointFiles) -> Any:
    """The tokenizer of a checkpoint, after loading its weights too unless they are large."""
    from attention_sieve.core.checkpoints.load import load_without_weights

    if _n_bytes(files) > MOST_TRIED:
        return load_without_weights(files)
    return load_checkpoint(files, device="cpu").tokenizer


@panics_caught()
def _check_tokenizer(name: str, tokenizer: Any) -> None:
    """Raise if the tokenizer makes far more tokens of a text than it has bytes."""
    for text in TEXTS:
        n_tokens, n_bytes = len(tokenizer(text)["input_ids"]), len(text.encode())
        if n_tokens > MOST_TOKENS_PER_BYTE * (n_bytes + 10):
            raise CheckpointError(
                f"The tokenizer of {name} splits a text of {n_bytes:,} bytes into {n_tokens:,} tokens. "
                "Save its tokenizer again, or choose another checkpoint."
            )


def _load(folder: str) -> None:
    files = find_checkpoint(folder)
    tokenizer = _tokenizer(files)
    _check_tokenizer(files.name, tokenizer)
    try_template(files.name, tokenizer)


if __name__ == "__main__":
    report_error(partial(_load, sys.argv[1]))
