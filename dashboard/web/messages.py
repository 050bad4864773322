"""Delivers what a page has drawn before one of its fragments is drawn again.

Where a fragment begins before all that the page drew is sent, Streamlit drops what the fragment had drawn. But it keeps
what was drawn inside: elements that the browser already has, and other fragments. Their container then never comes, and
the browser leaves the page empty. Here everything is sent, in order.
"""

from typing import Final

from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

_own: Final = ForwardMsgQueue.clear


def _clear(
    queue: ForwardMsgQueue, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None
) -> None:
    if retain_lifecycle_msgs and fragment_ids_this_run:
        queue._delta_index_map = {}  # what the fragment draws now is put at the end, and not where it stood before
    else:
        _own(queue, retain_lifecycle_msgs, fragment_ids_this_run)


def deliver_before_fragments() -> None:
    """From now on, in this server."""
    ForwardMsgQueue.clear = _clear  # type: ignore[assignment, method-assign]
