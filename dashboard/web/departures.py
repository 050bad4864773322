"""A browser that leaves while the server sends it something is no error."""

from contextlib import suppress

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnected


class Departures:
    """Middleware that ends the connection of a browser that has left, and passes on everything else.

    Streamlit's loop takes Starlette's error for a text frame of the browser's, closes the connection a second time, and
    that error ends in the log with its traceback.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        with suppress(WebSocketDisconnected):
            await self._app(scope, receive, send)
