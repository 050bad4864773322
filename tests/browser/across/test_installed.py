"""The dashboard of an installed wheel, started in a folder without the project."""

from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from packaged import build, copied, installed
from playwright.sync_api import expect

from benchmarks.shared.server import free_port, started


def test_it_draws_a_first_grid_in_its_colours_and_answers_under_its_own_names_only(browser, tmp_path):
    source, place = (tmp_path / name for name in ("source", "elsewhere"))
    source.mkdir()
    place.mkdir()
    packages, script = installed(build("wheel", copied(source), tmp_path), tmp_path)
    port, wrong = free_port(), []
    environment = {"PYTHONPATH": str(packages), "STREAMLIT_SERVER_HEADLESS": "true"}
    with started([str(script), "--port", str(port)], port, tmp_path, place, **environment) as dashboard:
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(dashboard.address, headers={"Host": "elsewhere.example"}))
        with browser.new_context(color_scheme="dark") as context:
            page = context.new_page()
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.goto(f"{dashboard.address}/?text=The+old+dog+chased+a+cat.")
            expect(page.get_by_role("gridcell", name="Layer 5, head 11: ")).to_be_visible()
            assert (
                page.get_by_test_id("stApp").evaluate("app => getComputedStyle(app).backgroundColor")
                == "rgb(16, 20, 24)"
            )
        assert dashboard.tracebacks() == 0
    assert list(place.iterdir()) == wrong == []
