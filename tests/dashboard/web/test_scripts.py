"""Streamlit's scripts are sent as Streamlit sends them, with less work."""

import asyncio

import pytest
from starlette.responses import PlainTextResponse
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

from attention_sieve.dashboard.web.scripts import FOLDER, Scripts

STREAMLIT = create_streamlit_static_handler(str(FOLDER.parents[1]), None)
SCRIPT = f"/static/js/{min(path.name for path in FOLDER.glob('index.*.js'))}"


def sent(app, path, method="GET", **headers):
    """The status, headers and body of an answer."""
    messages = []

    async def receive():
        await asyncio.Event().wait()  # nothing more comes from the browser

    async def keep(message):
        messages.append(message)

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": named, "query_string": b""}
    asyncio.run(app(scope, receive, keep))
    told = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return messages[0]["status"], told, b"".join(message.get("body", b"") for message in messages[1:])


def test_a_script_comes_with_the_bytes_the_type_and_the_time_to_keep_it_that_streamlit_gives():
    mine, streamlits = sent(Scripts(None), SCRIPT), sent(STREAMLIT, SCRIPT)
    assert mine[0] == streamlits[0] == 200
    assert mine[2] == streamlits[2] != b""
    for header in ("content-type", "content-length", "cache-control"):
        assert mine[1][header] == streamlits[1][header]


def test_a_browser_that_has_the_script_is_not_sent_it_again():
    status, told, _ = sent(Scripts(None), SCRIPT)
    status, again, body = sent(Scripts(None), SCRIPT, if_none_match=told["etag"])
    assert (status, body, again["cache-control"]) == (304, b"", told["cache-control"])


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/static/js/no.js"), ("GET", "/static/js/../../index.html"), ("HEAD", SCRIPT), ("GET", "/")],
)
def test_everything_else_is_handed_on(method, path):
    assert sent(Scripts(PlainTextResponse("from Streamlit")), path, method)[2] == b"from Streamlit"
