"""The dashboard of an installed wheel, started in a folder without the project, and with a model hub to ask."""

import re
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from local_hub import local_hub
from packaged import build, copied, installed
from playwright.sync_api import expect

from benchmarks.shared.server import free_port, started


@pytest.fixture(scope="module")
def hub(small_checkpoint):
    with local_hub("organisation/small", small_checkpoint) as hub:
        yield hub


@pytest.fixture(scope="module")
def address(hub, tmp_path_factory):
    """Of the dashboard, which must write nothing where it is started."""
    base, port = tmp_path_factory.mktemp("installed"), free_port()
    source, place = (base / name for name in ("source", "elsewhere"))
    source.mkdir()
    place.mkdir()
    packages, script = installed(build("wheel", copied(source), base), base)
    known = {"HF_ENDPOINT": hub.address, "HF_HOME": str(base / "hub"), "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    environment = {"PYTHONPATH": str(packages), "STREAMLIT_SERVER_HEADLESS": "true", **known}
    with started([str(script), "--port", str(port)], port, base, place, **environment) as dashboard:
        yield dashboard.address
        assert dashboard.tracebacks() == 0
    assert list(place.iterdir()) == []


@pytest.fixture(scope="module")
def dark(browser):
    with browser.new_context(color_scheme="dark") as context:
        yield context


def test_it_draws_a_first_grid_in_its_colours_and_answers_under_its_own_names_only(address, dark):
    with pytest.raises(HTTPError, match="403"):
        urlopen(Request(address, headers={"Host": "elsewhere.example"}))
    page, wrong = dark.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{address}/?text=The+old+dog+chased+a+cat.")
    expect(page.get_by_role("gridcell", name="Layer 5, head 11: ")).to_be_visible()
    background = "app => getComputedStyle(app).backgroundColor"
    assert page.get_by_test_id("stApp").evaluate(background) == "rgb(16, 20, 24)"
    assert wrong == []


def test_a_link_fetches_nothing_before_the_reader_says_so(address, dark, hub):
    page = dark.new_page()
    page.goto(f"{address}/?checkpoint={hub.name}&text=the+cat+sat")
    expect(page.get_by_text(re.compile("has to be fetched from the Hugging Face Hub .1 MB."))).to_be_visible()
    assert hub.fetched == []
    page.get_by_role("button", name="Fetch it").click()
    expect(page.get_by_role("grid", name=f"Heads of {hub.name}:")).to_be_visible()
    assert "model.safetensors" in hub.fetched
