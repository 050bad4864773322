"""An SVG picture drawn in Python, in the colours of the page; it scrolls if it is wider than the page."""

from typing import Final

from attention_sieve.dashboard.components.source import Source, joined

_mount: Final = Source(
    name="drawing",
    html='<div class="drawing" role="region" tabindex="0"></div>',
    css=joined("view.css", "drawing/drawing.css"),
    js=joined("page.js", "drawing/drawing.js"),
).registered()


def drawing(svg: str, *, key: str, label: str, frame: str | None = None) -> None:
    """Show a picture.

    Args:
        svg: an SVG element written by ElementTree, so that text in it is escaped; currentColor is the text colour of
            the page.
        frame: name of attention, as `components.grid.frame_of`; fields with a number then show the head that a grid of
            the same attention previews.
    """
    _mount(key=key, data={"svg": svg, "label": label, "frame": frame}, width="stretch", height="content")
