"""What happens when a browser leaves."""

import asyncio

import pytest
from starlette.websockets import WebSocket

from attention_sieve.dashboard.web.departures import Departures


async def send_twice_after_the_end(scope, receive, send):
    """As Streamlit does: it reads from a connection that a failed message has ended, and closes it then."""
    socket = WebSocket(scope, receive, send)
    await socket.accept()
    await socket.close()
    try:
        await socket.receive_bytes()
    except RuntimeError:
        await socket.close()


async def fail(scope, receive, send):
    raise RuntimeError("another error")


def call(app, kind):
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message["type"])

    asyncio.run(Departures(app)({"type": kind, "headers": []}, receive, send))
    return sent


def test_a_browser_that_has_left_is_no_error():
    assert call(send_twice_after_the_end, "websocket") == ["websocket.accept", "websocket.close"]


@pytest.mark.parametrize("kind", ["websocket", "http"])
def test_other_errors_are_passed_on(kind):
    with pytest.raises(RuntimeError, match="another error"):
        call(fail, kind)
