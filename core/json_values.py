"""JSON from files that anybody may have written."""

import json
from typing import Any


def parse_json(content: str | bytes) -> Any:
    """What a JSON text says.

    Args:
        content: the text, or its bytes in UTF-8.

    Raises: ValueError for what is not JSON, not UTF-8, holds a number of more than 4,300 digits, or is nested so deeply
        that Python's parser gives up.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
