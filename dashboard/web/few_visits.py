"""Limits how many pages of a public server are open at once, in all and from one address, and its connections.

Streamlit and uvicorn take whoever comes. Each open page needs four file descriptors, of which a process often has
1,024: some 250 open pages, or a thousand sockets that send nothing, and no further connection could be taken.
"""

import asyncio
import errno
import logging
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS: Final = 7
"""Those that a browser has with one page for a moment: six for files, and the WebSocket that stays."""
DESCRIPTORS: Final = CONNECTIONS + 3
"""File descriptors that one page needs for a moment: beside its connections, three of the thread that draws it."""
TOLD: Final = 100
"""Connections that are one too many and get an answer that says so; beyond these, they are closed."""
OTHERS: Final = TOLD + 100
"""File descriptors for these and for everything else, such as files and processes."""
ENOUGH: Final = 8192
"""File descriptors beyond which the limit is not raised."""
AGAIN: Final = 60
"""Seconds after which a visitor who came too late may try again, and after which the same fault is logged again."""
HERE: Final = ("127.0.0.1", "::1")
"""Addresses of this machine, where a proxy may speak for many visitors."""
FULL: Final = (
    "This server has {n} open pages, as many as it can serve at once. Try again in a few minutes, or use Attention "
    "Sieve on a machine of your own."
)
FULL_ADDRESS: Final = (
    "This server has {n} open pages from your address, as many as it takes from one. Close one of them, and then load "
    "this page again."
)
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True)
class Bounds:
    """Maximum numbers of open pages."""

    in_all: int
    of_address: int


def raise_descriptor_limit() -> int:
    """Let this process have as many file descriptors as it may, up to ENOUGH; returns how many it can have now."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return ENOUGH
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= ENOUGH:
        return ENOUGH
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def bounds(in_all: int, of_address: int, n_descriptors: int) -> Bounds:
    """These bounds, or smaller ones where there are not as many file descriptors."""
    in_all = min(in_all, max(1, (n_descriptors - OTHERS) // DESCRIPTORS))
    return Bounds(in_all, min(of_address, in_all))


class FewVisits:
    """Middleware that answers 503 with a sentence to whoever opens one page too many."""

    def __init__(self, app: ASGIApp, most: Bounds) -> None:
        self._app = app
        self._most = most
        self._open: Counter[str] = Counter()
        """Open pages by address."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            bound_connections(receive, self._most)
        address = (scope.get("client") or ("",))[0]
        if scope["type"] == "websocket":
            await self._visit(address, scope, receive, send)
        elif _is_page(scope) and (refusal := self._refusal(address)):
            page = f'<!doctype html>\n<html lang="en">\n<title>Attention Sieve</title>\n<p>{refusal}</p>\n'
            await HTMLResponse(page, 503, {"Retry-After": str(AGAIN)})(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _visit(self, address: str, scope: Scope, receive: Receive, send: Send) -> None:
        """An open page: each has one WebSocket for as long as it is open."""
        if self._refusal(address):
            await send({"type": "websocket.close"})  # before it is open: an answer 403
            return
        self._open[address] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[address] -= 1
            self._open += Counter()  # drops addresses without a page

    def _refusal(self, address: str) -> str:
        """Why no further page can be opened from an address; empty if one can."""
        if self._open.total() >= self._most.in_all:
            return FULL.format(n=self._most.in_all)
        if address not in HERE and self._open[address] >= self._most.of_address:
            return FULL_ADDRESS.format(n=self._most.of_address)
        return ""


def _is_page(scope: Scope) -> bool:
    return scope["type"] == "http" and "text/html" in Headers(scope=scope).get("accept", "")


def bound_connections(receive: Receive, most: Bounds) -> None:
    """Give the server that sends these events at its start bounds of its connections, also of those that send nothing.

    Streamlit hands no option on to uvicorn, which lets an application see its settings nowhere else.
    """
    config = getattr(getattr(receive, "__self__", None), "config", None)
    if not isinstance(config, uvicorn.Config):
        logging.getLogger(__name__).warning("The number of connections is not limited: this server is not uvicorn.")
        return
    config.limit_concurrency = CONNECTIONS * most.in_all
    trusted = config.forwarded_allow_ips
    proxies = frozenset(trusted.replace(" ", "").split(",") if isinstance(trusted, str) else trusted)
    config.http_protocol_class = _bounded_protocol(most, proxies)


def _bounded_protocol(most: Bounds, proxies: frozenset[str]) -> type[asyncio.Protocol]:
    class Bounded(H11Protocol):
        """Closes a connection at once where there are too many, of which uvicorn would only answer the requests."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            address = _address(self)
            is_proxy = not proxies.isdisjoint((address, "*"))  # speaks for many visitors
            n_of_address = 0 if is_proxy else sum(_address(other) == address for other in self.connections)
            is_full = len(self.connections) > CONNECTIONS * most.in_all + TOLD
            if is_full or n_of_address > CONNECTIONS * most.of_address:
                transport.close()

    return Bounded


def _address(connection: H11Protocol | Any) -> str:
    return connection.client[0] if connection.client else ""


def log_exhaustion_rarely(loop: asyncio.AbstractEventLoop) -> None:
    """Log at most once in AGAIN seconds that no connection can be taken; asyncio logs it 20,000 times in one second."""
    logged = -float(AGAIN)

    def log(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal logged
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _EXHAUSTED:
            loop.default_exception_handler(context)
        elif loop.time() - logged >= AGAIN:
            logged = loop.time()
            logging.getLogger(__name__).error(
                "No connection can be taken: %s. Close some, or start the server with a greater limit (ulimit -n).",
                error.strerror,
            )

    loop.set_exception_handler(log)
