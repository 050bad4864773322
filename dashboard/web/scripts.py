"""Sends the scripts of Streamlit's page, of which a first visit fetches a hundred, with little work for each.

Streamlit hands every step of sending a file to another thread: finding it, opening it, reading it. Each step waits for
its turn while a thread imports what the first visit needs. These files are small and lie on this machine, so here they
are read at once, which takes less than half of the processor's time.
"""

from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.file_util import get_static_dir
from streamlit.web.server.starlette.starlette_server_config import STATIC_ASSET_CACHE_MAX_AGE_SECONDS

FOLDER: Final = Path(get_static_dir(), "static", "js")
CACHE: Final = f"public, immutable, max-age={STATIC_ASSET_CACHE_MAX_AGE_SECONDS}"
"""What Streamlit allows for these files: their names change with their contents."""


class Scripts:
    """Middleware that sends Streamlit's scripts and hands all other requests on."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before this app."""
        self._app = app
        self._files = {f"/static/js/{path.name}": path for path in FOLDER.glob("*.js")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        path = self._files.get(scope["path"]) if is_get else None
        if path is None:
            await self._app(scope, receive, send)
            return
        headers = {"Cache-Control": CACHE, "ETag": f'"{path.name}"'}
        if Headers(scope=scope).get("if-none-match") == headers["ETag"]:
            answer = Response(status_code=304, headers=headers)
        else:
            answer = Response(path.read_bytes(), headers=headers, media_type="text/javascript")
        await answer(scope, receive, send)
