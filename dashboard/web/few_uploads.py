"""Limits the number of uploads that one session of a public server can hold.

Streamlit limits the size of an upload, not their number, and keeps each until its session ends or removes it.
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
    """Middleware that answers 413 to an upload beyond the limit of a session."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._arriving: Counter[str] = Counter()
        """Uploads in progress, by session: they count, though the server does not hold them yet."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        upload = _UPLOAD.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if upload is None:
            await self._app(scope, receive, send)
            return
        page = upload[1]
        if _n_held(page) + self._arriving[page] >= self._most:
            message = f"This page holds {self._most} uploads already. Remove one of them first.\n"
            await PlainTextResponse(message, 413)(scope, receive, send)
            return
        self._arriving[page] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._arriving[page] -= 1
            if not self._arriving[page]:
                del self._arriving[page]


def _n_held(page: str) -> int:
    """Number of uploads of a session that the server holds."""
    manager = get_instance().uploaded_file_mgr
    assert isinstance(manager, MemoryUploadedFileManager), "Streamlit's server keeps uploads in memory"
    return len(manager.file_storage.get(page, ()))
