"""What a reader gives: a Text, and the readers that turn typed lines and uploaded files into texts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """One text of one or two segments, as it was typed or read."""

    segments: tuple[str, ...]
    """One segment, or two for a pair."""
    words: tuple[tuple[str, ...], ...] | None = None
    """Words of each segment where the file brought its own; a segment is then its words joined by blanks."""
