"""Makes names from users and files safe to draw in a figure."""

import re
from typing import Final

NOT_IN_XML: Final = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow; vl_convert aborts the process if a title contains one."""


def drawable(name: str, most: int | None = None) -> str:
    """Replace characters that cannot be drawn.

    Args:
        most: maximum number of characters; longer names are cut at the start. None for no limit.
    """
    clean = NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", name)
    return clean if most is None or len(clean) <= most else "…" + clean[1 - most :]
