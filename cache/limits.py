"""Limits of disk and memory that environment variables set."""

import os

from attention_sieve.core.errors import AnalysisError


def limit_from(variable: str, advice: str) -> int | None:
    """A limit in bytes, from a variable that holds megabytes; None where it is not set. The advice says what to set it
    to, after "such as".

    Raises: AnalysisError if it is not a whole number.
    """
    megabytes = os.environ.get(variable)
    if not megabytes:
        return None
    if not (megabytes.isascii() and megabytes.isdigit()):
        raise AnalysisError(
            f"{variable} is {megabytes!r}, which is not a whole number of megabytes. Set it to a number such as "
            f"{advice}."
        )
    return int(megabytes) * 2**20
