"""Reading JSON from untrusted files."""

import json
from typing import Any


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON text.

    Args:
        content: the text, or its bytes in UTF-8.

    Raises: ValueError for content that is not JSON or not UTF-8, has a number of more than 4,300 digits, or is nested
        too deeply for Python's parser.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
