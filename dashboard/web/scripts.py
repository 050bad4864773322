"""Serves the scripts of Streamlit's page, about a hundred on a first visit, with less work than Streamlit itself."""

from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.file_util import get_static_dir

FOLDER: Final = Path(get_static_dir(), "static", "js")
CACHE: Final = "public, immutable, max-age=31536000"
"""Cache policy of Streamlit for these files: their names change with their contents."""


class Scripts:
    """Middleware that serves Streamlit's scripts and passes on all other requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._files = {f"/static/js/{path.name}": path for path in FOLDER.glob("*.js")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        path = self._files.get(scope["path"]) if is_get else None
        if path is None:
            await self._app(scope, receive, send)
            return
        headers = {"Cache-Control": CACHE, "ETag": f'"{path.name}"'}
        if Headers(scope=scope).get("if-none-match") == headers["ETag"]:
            response = Response(status_code=304, headers=headers)
        else:
            response = Response(path.read_bytes(), headers=headers, media_type="text/javascript")
        await response(scope, receive, send)
