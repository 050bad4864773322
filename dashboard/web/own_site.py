"""Closes the page to other sites: their requests are refused, and they cannot show the page in a frame.

Every site that the owner of this machine visits could reach the page in three ways: a name that resolves to this
machine (DNS rebinding), a request from a script of that site, and a frame around the page.
"""

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        # Vega compiles its expressions to functions, and Streamlit loads scripts of components from blobs.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""Content security policy: the page loads nothing from elsewhere, and no other site may frame it."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
CLOSED: Final = ("/_stcore/metrics", "/_stcore/script-health-check")
"""Endpoints of Streamlit that reveal facts about the server, or run the page, for anyone."""
POLICY_VIOLATION: Final = 1008
"""Close code of a WebSocket (RFC 6455, section 7.4.1); before it is open, the response is 403."""


class OwnSiteOnly:
    """Middleware that answers 403 if Host or Origin are not those of the page, and sets the matching headers.

    It comes before Streamlit's own check of origins, which requests this machine's address from another server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif reason := _refused(Headers(scope=scope)):
            await _refuse(reason, scope, receive, send)
        elif scope["path"].rstrip("/").endswith(CLOSED):
            await PlainTextResponse("There is nothing here.\n", 404, HEADERS)(scope, receive, send)
        else:
            await self._app(scope, receive, _with_headers(send))


def _refused(headers: Headers) -> str:
    """Why a request is refused; empty if it is accepted."""
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or not is_host_allowed(hosts[0]):
        names = ", ".join(config.get_option("server.allowedHosts"))
        return (
            f"This server answers to the names {names} only. To open it under another name, start it with: "
            "--server.allowedHosts NAME"
        )
    if any(origin.partition("://")[2] != hosts[0] for origin in origins):
        return "This server answers to its own pages only."
    return ""


async def _refuse(reason: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason[:100]})
    else:
        await PlainTextResponse(reason + "\n", 403, HEADERS)(scope, receive, send)


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return send_with_headers
