"""Bounds what one page of a public server can have uploaded at once.

Streamlit bounds the size of an upload, never how many there are, and keeps each until its page is closed or removes it.
"""

import re
from collections import Counter
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime import get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

_UPLOAD: Final = re.compile("/_stcore/upload_file/([^/]+)/[^/]+/?$")


class FewUploads:
    """Middleware that answers 413 to an upload of a page that has as many already."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        """Stand before this app.

        Args:
            app: Streamlit's.
            most: uploads of one page at once.
        """
        self._app = app
        self._most = most
        self._arriving: Counter[str] = Counter()
        """Uploads on their way, by page: they are not held yet, and count."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        upload = _UPLOAD.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if upload is None:
            await self._app(scope, receive, send)
            return
        page = upload[1]
        if _n_held(page) + self._arriving[page] >= self._most:
            said = f"This page holds {self._most} uploads already. Remove one of them first.\n"
            await PlainTextResponse(said, 413)(scope, receive, send)
            return
        self._arriving[page] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._arriving[page] -= 1
            if not self._arriving[page]:
                del self._arriving[page]


def _n_held(page: str) -> int:
    """Uploads of a page that the server holds."""
    held = get_instance().uploaded_file_mgr
    assert isinstance(held, MemoryUploadedFileManager), "Streamlit's server keeps uploads in memory"
    return len(held.file_storage.get(page, ()))
