"""Closes the page to other sites: what another site sends is refused, and no other site can show it in a frame.

A page on this machine can be reached by every site that its owner visits. A name that leads here (DNS rebinding), a
request that another site's script sends, and a frame around the page are the three ways in.
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
        # Vega makes functions of its expressions, and Streamlit loads scripts of components from blobs.
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
"""What a browser may load for the page, and who may show the page: nothing and nobody elsewhere."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer."""
CLOSED: Final = ("/_stcore/metrics", "/_stcore/script-health-check")
"""Addresses of Streamlit that tell about the server, or run the page, for whoever asks."""
POLICY_VIOLATION: Final = 1008
"""Code with which a WebSocket is closed (RFC 6455, section 7.4.1); before it is open, the answer is 403."""


class OwnSiteOnly:
    """Middleware that answers 403 where Host or Origin are not the page's own, and sets headers that say the same.

    It stands before Streamlit's own check of origins, which asks another server for this machine's address.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Stand before this app."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif reason := _refused(Headers(scope=scope)):
            await _refuse(reason, scope, receive, send)
        elif scope["path"].rstrip("/").endswith(CLOSED):
            await PlainTextResponse("There is nothing here.\n", 404, HEADERS)(scope, receive, send)
        else:
            await self._app(scope, receive, _with_headers(send))


def _refused(headers: Headers) -> str:
    """Why a request is refused; empty where it is not."""
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
