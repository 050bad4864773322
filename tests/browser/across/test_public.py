"""A server that is open to others, as a visitor finds it."""

from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from steps import arcs, grid_of, settle, type_texts, upload

from attention_sieve.dashboard.public import MAX_UPLOADS

pytestmark = pytest.mark.xdist_group("public")


@pytest.fixture(scope="module")
def server(public_server):
    """Address of the dashboard that is visited."""
    return public_server


def test_a_visitor_types_a_text_and_chooses_an_offered_checkpoint(visit):
    page = visit("/?checkpoint=models/small&text=the+cat+sat")
    expect(page.get_by_role("grid", name="Heads of models/small:")).to_be_visible()
    type_texts(page, "a dog ran")
    expect(arcs(page).get_by_role("option", name="ran, ").first).to_be_visible()


def test_uploads_of_a_visitor_are_few_and_nothing_reaches_another(visit, server, browser):
    first = visit("/?checkpoint=bundled&text=one+rare+zucchini")
    with first.expect_request(lambda request: request.method == "PUT") as sent:
        upload(first, "only-mine.txt", "a quixotic narwhal sang")
    expect(grid_of(first)).to_be_visible()
    expect_a_few_uploads_at_once(first, sent.value)
    uploaded = sent.value.url
    session = urlsplit(uploaded).path.split("/")[-2]
    with closing(browser.new_context()) as elsewhere:
        second, received = elsewhere.new_page(), []
        second.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(frame)))
        second.goto(server)
        settle(second)
        second.goto(f"{server}/roles")
        expect(grid_of(second)).to_be_visible()
        settle(second)
        everything = b"".join(frame if isinstance(frame, bytes) else frame.encode() for frame in received)
        assert len(everything) > 10_000
        for word in ("zucchini", "narwhal", "only-mine", session):
            assert word.encode() not in everything
        assert b"narwhal" not in elsewhere.request.get(uploaded).body()  # also by one who knows the address
        assert elsewhere.request.delete(uploaded).status == 403
    first.reload()
    settle(first)
    expect(first.get_by_role("textbox", name="Your texts")).to_have_value("one rare zucchini")


def expect_a_few_uploads_at_once(page, sent):
    """After one that was sent."""
    address, token = sent.url.rpartition("/")[0], sent.headers["x-xsrftoken"]
    file = {"file": {"name": "more.txt", "mimeType": "text/plain", "buffer": b"x"}}
    answers = [
        page.request.put(f"{address}/more{number}", multipart=file, headers={"X-Xsrftoken": token})
        for number in range(MAX_UPLOADS)
    ]
    assert [answer.status for answer in answers] == [204] * (MAX_UPLOADS - 1) + [413]
    assert answers[-1].text() == f"This page holds {MAX_UPLOADS} uploads already. Remove one of them first.\n"


@pytest.mark.parametrize(
    "path",
    ["_stcore/metrics", "_stcore/script-health-check", "app/static/../server.log", "media/../../etc/passwd",
     "component/../../../../etc/passwd", "static/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "_stcore/upload_file/a/b"],
)  # fmt: skip
def test_no_address_gives_a_file_of_the_machine(server, path):
    with closing(HTTPConnection(urlsplit(server).netloc)) as connection:
        connection.request("GET", f"/{path}")  # as it is written: no client has made it harmless
        answer = connection.getresponse()
        content = answer.read().decode()
    assert answer.status in (200, 400, 403, 404, 405)
    assert "root:" not in content
    assert answer.status != 200 or "<title>" in content  # the page, as for any address that Streamlit does not know
