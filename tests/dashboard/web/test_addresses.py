"""Addresses that no page has. tests/browser/across/test_links.py opens some in a browser."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from attention_sieve.dashboard import server
from attention_sieve.dashboard.pages import PAGES
from attention_sieve.dashboard.web.addresses import KnownAddresses

BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9"}


async def _app(request):
    return PlainTextResponse(f"the app at {request.url.path}")


@pytest.fixture
def answer():
    """answer(path, **headers): what a browser is answered, which does not follow where it is sent."""
    routes = [Route("/{path:path}", _app, methods=["GET", "POST"])]
    client = TestClient(
        Starlette(routes=routes, middleware=[Middleware(KnownAddresses, pages=server.names)]), follow_redirects=False
    )
    return lambda path, headers=BROWSER, method="GET": client.request(method, path, headers=headers)


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("Fine_Tune?text=a+b&tau=2", "fine-tune?text=a+b&tau=2"),
        ("fine%20tuning", "fine-tune"),
        ("gramar", "grammar"),
        ("where-heads-look", "surface"),
        ("Inspect", "inspect"),
        ("parsing?parsing+section=Probes&text=parsing+a", "grammar?grammar+section=Probes&text=parsing+a"),
        ("similar?similar%20texts=16&head=2-2", "similarity?similarity%20texts=16&head=2-2"),
        ("nowhere?tau=2", "?no+page=nowhere&tau=2"),
        ("no%20where%26x%3Cb%3E", "?no+page=no+where%26x%3Cb%3E"),
    ],
)
def test_an_address_leads_to_the_page_that_is_meant_or_was_there_or_to_the_first_and_keeps_the_rest_of_the_link(
    answer, link, leads_to
):
    sent = answer(f"/{link}")
    assert (sent.status_code, sent.headers["location"]) == (307, f"./{leads_to}")


@pytest.mark.parametrize("path", ["/_stcore/health", "/static/js/index.js", "/favicon.png", "/media/x.png"])
def test_files_and_what_is_not_asked_for_by_a_browser_as_a_page_are_left_alone(answer, path):
    assert answer(path).text == f"the app at {path}"
    assert answer("/nowhere", headers={"Accept": "*/*"}).text == "the app at /nowhere"
    assert answer("/nowhere", method="POST").text == "the app at /nowhere"


def test_a_page_is_answered_at_its_own_address_and_its_title_is_a_name_too(answer):
    for page in PAGES:
        assert answer(f"/{page.address}?tau=2").text == f"the app at /{page.address}"
        sent = answer(f"/{page.title.replace(' ', '%20')}")
        assert sent.text == f"the app at /{page.title}" or sent.headers["location"] == f"./{page.address}"
