"""What a public server says of a link to a head: tags in the page, and a card for whoever asks, within bounds."""

import io
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.testclient import TestClient

from attention_sieve.cache.answers import Engine, FindingRequest
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.dashboard import controls, public
from attention_sieve.dashboard.card import unfurl
from attention_sieve.dashboard.card.of_samples import SAMPLE
from attention_sieve.dashboard.samples import VARIED, mention_sample, read_sample

PAGE = "<html><head><title>Streamlit</title></head><body></body></html>"
HOSTILE = '"><script>alert(1)</script>\u2028'


class Tags(HTMLParser):
    """What is said in the head of a page."""

    def __init__(self, page):
        super().__init__()
        self.properties, self.tags = {}, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "meta":
            self.properties[dict(attrs)["property"]] = dict(attrs)["content"]


def page_of(**query):
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"heads.example.org")]}
    scope |= {"scheme": "https", "server": ("heads.example.org", 443), "query_string": urlencode(query).encode()}
    request = Request(scope)
    return unfurl.with_tags(PAGE, request)


@pytest.mark.parametrize("text", ["The old dog slept.", HOSTILE, "שלום עולם", "One. ||| Two."])
def test_a_link_to_a_head_in_a_text_says_what_it_shows_and_nothing_is_markup(text):
    said = Tags(page_of(text=text, head="1-7,2-4"))
    assert said.tags.count("script") == 0
    assert said.properties["og:title"].endswith("L2 H4 of all-MiniLM-L6-v2")
    assert text.split(" ||| ")[0].strip() in said.properties["og:description"]
    image = said.properties["og:image"]
    assert image.startswith("https://heads.example.org/card.png?head=1-7%2C2-4&text=")
    asked = Request({"type": "http", "query_string": image.split("?")[1].encode(), "headers": []}).query_params
    assert unfurl.linked(asked) == unfurl.Linked(unfurl.read_typed(text)[0], (2, 4))


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"text": "A dog."},
        {"head": "1-7"},
        {"text": "A dog.", "head": "none"},
        {"text": "A dog.", "head": "1-7777"},
        {"text": "A dog.\nA cat.", "head": "1-7"},
        {"text": "", "head": "1-7"},
        {"text": "a" * 301, "head": "1-7"},
        {"text": '{"ids": [1, 5]}', "head": "1-7"},
        {"text": "A dog.", "head": "1-7", "off": "2-3"},
        {"text": "A dog.", "head": "1-7", "checkpoint": "gpt2"},
        {"text": "A dog.", "head": "1-7", "checkpoint": "/etc"},
    ],
    ids=str,
)
def test_any_other_link_gets_the_page_as_it_is_and_no_image(query):
    assert page_of(**query) == PAGE
    answer = client().get("/card.png", params=query)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")


def test_only_the_bundled_checkpoint_where_it_is_offered(monkeypatch):
    link = {"text": "A dog.", "head": "1-7", "checkpoint": "bundled"}
    assert page_of(**link) != PAGE
    monkeypatch.setenv(public.CHECKPOINTS, "gpt2")
    assert page_of(**link) == PAGE
    monkeypatch.setenv(public.CHECKPOINTS, "gpt2:bundled")
    assert page_of(**link) != PAGE
    assert page_of(text="A dog.", head="1-7") == PAGE, "the page opens with another checkpoint"


def client():
    return TestClient(Starlette(routes=[Route("/card.png", unfurl.card_image)]))


@pytest.fixture
def scored(store, bundled):
    """What set-up leaves behind for the names of heads."""
    inference, engine, texts = controls.inference(), Engine(find_checkpoint(BUNDLED)), read_sample(SAMPLE)
    asked = [(ROLE_ANALYSIS, texts), (COREFERENCE_ANALYSIS, mention_sample())]
    asked += [(kind, each) for kind in (SURFACE_ANALYSIS, RELATION_ANALYSIS) for each in (texts, read_sample(VARIED))]
    for analysis, inputs in asked:
        inference.find(FindingRequest(engine, analysis, inputs, analysis.settings, engine.settings(None)))
    return inference


def test_the_image_is_drawn_after_one_pass_kept_and_few_in_a_minute(scored, monkeypatch):
    unfurl._made.clear()
    unfurl._names.clear()
    asked = {"text": "The old dog slept.", "head": "0-2"}
    before = scored.n_passed
    answer = client().get("/card.png", params=asked)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    with Image.open(io.BytesIO(answer.content)) as image:
        assert image.size == (1200, 630)
    assert scored.n_passed - before == 1
    assert Tags(page_of(**asked)).properties["og:title"] == "Looks at the previous token: L0 H2 of all-MiniLM-L6-v2"
    unfurl._made.extend([unfurl._made[-1]] * unfurl.MOST_IN_A_MINUTE)
    assert client().get("/card.png", params=asked).content == answer.content, "what is kept is sent at any time"
    refused = client().get("/card.png", params=asked | {"head": "0-3"})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
    unfurl._made.clear()
    with unfurl._lock:
        assert client().get("/card.png", params=asked | {"head": "0-3"}).status_code == 503
    assert client().get("/card.png", params=asked | {"head": "0-99"}).status_code == 404
