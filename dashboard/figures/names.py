"""Names that a person or a file brought, as a figure can draw them."""

import re
from typing import Final

NOT_IN_XML: Final = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow; vl_convert ends the whole process when one of them is in a title."""


def drawable(name: str, most: int | None = None) -> str:
    """A name with the characters that no picture takes replaced.

    Args:
        name: any text.
        most: characters that there is room for; of a longer name the end is kept. None for any number.
    """
    clean = NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", name)
    return clean if most is None or len(clean) <= most else "…" + clean[1 - most :]
