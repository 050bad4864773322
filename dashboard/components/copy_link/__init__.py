"""A button that copies the address of what is on screen."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.dashboard.components.source import Source, as_text, joined

_mount: Final = Source(
    name="copy_link",
    html=joined("copy_link/copy_link.html"),
    css=joined("view.css", "copy_link/copy_link.css"),
    js=joined("copy_link/copy_link.js"),
).registered()


def copy_link(left_out: Sequence[str]) -> None:
    """Draw the button, which copies or shows the address, and then says what is left out of the link."""
    _mount(key="copy link", data=as_text({"left_out": " ".join(left_out)}), height="content")
