"""Redirects a former or misspelt address to the page that is meant, and any other unknown one to the first page, which
says so."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final
from urllib.parse import quote_plus

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from attention_sieve.dashboard.pages import NO_PAGE

FORMER: Final = {"parsing": "grammar", "similar": "similarity"}
"""Former addresses of pages. Each was also the first word of the page's own query parameters."""
LEAST_ALIKE: Final = 0.75
"""Least similarity (difflib) of a misspelt name and the one that is meant."""
_NAME: Final = re.compile("/([^/.]+)")
"""Path of one part that is no file; the other endpoints of Streamlit have more parts."""


class KnownAddresses:
    """Middleware that redirects a browser from an address that no page has, and handles nothing else."""

    def __init__(self, app: ASGIApp, pages: Mapping[str, str]) -> None:
        """Take the address of each page by its names: the address itself, and its title."""
        self._app = app
        self._addresses = frozenset(pages.values())
        self._pages = {_letters(name): address for name, address in pages.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = _NAME.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if name is None or name[1] in self._addresses or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self._app(scope, receive, send)
            return
        query = scope["query_string"].decode("latin-1")
        if address := FORMER.get(name[1]):
            query = re.sub(rf"(?<![^&]){name[1]}(?=\+|%20)", address, query)
        else:
            address = self._meant(name[1])
        parameters = [query] if address else [f"{quote_plus(NO_PAGE)}={quote_plus(name[1])}", query]
        query = "&".join(filter(None, parameters))
        await RedirectResponse(f"./{address or ''}{'?' if query else ''}{query}")(scope, receive, send)

    def _meant(self, name: str) -> str | None:
        """Address of the page with nearly this name; None without one."""
        alike = get_close_matches(_letters(name), self._pages, n=1, cutoff=LEAST_ALIKE)
        return self._pages[alike[0]] if alike else None


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
