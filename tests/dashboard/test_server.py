"""The page that the server sends before anything is drawn."""

import asyncio
from pathlib import Path

import numpy as np
from PIL import Image, ImageColor
from starlette.requests import Request

from attention_sieve.dashboard import server
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.pages import SECOND_RIDDLE

ADDRESSES = [
    *("inspect", "surface", "grammar", "similarity", "roles", "claims", "importance", "knowledge"),
    *("compare", "fine-tune", "lessons", "laboratory"),
]


def test_the_app_and_the_server_have_the_same_pages_and_begin_with_what_is_needed_first(app):
    drawn = app().session_state["pages"]
    assert [page.url_path for page in drawn.values()] == ["", *ADDRESSES[1:]]
    sent = {route.path for route in server.routes if route.endpoint is server._send}
    later = SECOND_RIDDLE  # offered once its decoder is there, while the server keeps the addresses it began with
    assert sent == {f"/{page.url_path}" for page in drawn.values()} | {f"/{later.address}"}
    titles = {page.title for page in drawn.values()}
    assert titles | set(ADDRESSES) | {later.title, later.address} == set(server.names)


def test_the_name_of_the_first_page_leads_to_its_address_and_keeps_what_the_link_asks_for():
    assert [route.path for route in server.routes if route.endpoint is server._send_on] == ["/inspect"]
    request = Request({"type": "http", "method": "GET", "path": "/inspect", "query_string": b"text=a+b", "headers": []})
    answer = asyncio.run(server._send_on(request))
    assert (answer.status_code, answer.headers["location"]) == (307, "./?text=a+b")


def test_the_icon_is_a_cell_of_the_grid_that_holds_all_coarse_roles():
    with Image.open(Path(server.__file__).with_name("icon.png")) as icon:
        pixels = np.array(icon.convert("RGB"))
    assert pixels.shape == (32, 32, 3)
    corners = [(rows, columns) for rows in (slice(0, 16), slice(16, 32)) for columns in (slice(0, 16), slice(16, 32))]
    for corner, role in zip(corners, ("local", "syntactic", "delimiter", "block"), strict=True):
        assert (pixels[corner] == ImageColor.getrgb(LOOKS[role].color)).all()
