"""The page is closed to other sites. tests/browser/across/test_own_site.py shows it in a browser."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect
from streamlit import config

from attention_sieve.dashboard.web.own_site import HEADERS, OwnSiteOnly

OWN = ("localhost", "127.0.0.1", "[::1]", "localhost:8501", "LOCALHOST:8501", "localhost.")
OTHERS = ("localhost.evil.example", "evil.example:8501", "localhost@evil.example", "", "localhost:x", "10.0.0.1")
FOREIGN = ("http://evil.example:8501", "http://localhost:8502", "null", "", "http://[", "localhost")


async def _page(request):
    return PlainTextResponse("the page")


async def _socket(socket):
    await socket.accept()
    await socket.send_text("open")
    await socket.close()


@pytest.fixture
def visitor(monkeypatch):
    monkeypatch.setattr(config, "get_option", lambda name: ["localhost", "127.0.0.1", "::1"])
    routes = [Route("/", _page, methods=["GET", "POST"]), WebSocketRoute("/socket", _socket)]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(OwnSiteOnly)]))


@pytest.mark.parametrize("host", OWN)
def test_the_pages_own_names_are_answered_and_browsers_told_to_keep_others_out(visitor, host):
    for headers in (
        {"Host": host},
        {"Host": host, "Origin": f"http://{host}"},
        {"Host": host, "Origin": f"https://{host}"},
    ):
        answer = visitor.get("/", headers=headers)
        assert (answer.status_code, answer.text) == (200, "the page")
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        with visitor.websocket_connect("/socket", headers=headers) as socket:
            assert socket.receive_text() == "open"


def refused(visitor, headers):
    """The answers to a GET, a POST and a WebSocket."""
    with (
        pytest.raises((WebSocketDisconnect, WebSocketDenialResponse)),
        visitor.websocket_connect("/socket", headers=headers),
    ):
        pass
    return [visitor.get("/", headers=headers), visitor.post("/", headers=headers, content="x")]


@pytest.mark.parametrize("host", OTHERS)
def test_another_name_is_refused(visitor, host):
    for answer in refused(visitor, {"Host": host}):
        assert answer.status_code == 403
        assert answer.text.startswith(
            "This server answers to the names localhost, 127.0.0.1, ::1 only. To open it under"
        )


@pytest.mark.parametrize("origin", FOREIGN)
def test_what_another_site_sends_is_refused(visitor, origin):
    for answer in refused(visitor, {"Host": "localhost:8501", "Origin": origin}):
        assert (answer.status_code, answer.text) == (403, "This server answers to its own pages only.\n")
        assert answer.headers["Content-Security-Policy"].endswith("frame-ancestors 'none'")


def test_what_tells_about_the_server_is_closed(visitor):
    for path in ("/_stcore/metrics", "/_stcore/metrics/", "/base/_stcore/metrics", "/_stcore/script-health-check"):
        assert visitor.get(path, headers={"Host": "localhost"}).status_code == 404
        assert visitor.get(path, headers={"Host": "localhost"}).text == "There is nothing here.\n"


def test_the_local_page_answers_to_this_machine_only():
    assert config.get_option("server.allowedHosts") == ["localhost", "127.0.0.1", "::1"]
    assert config.get_option("server.address") == "localhost"
