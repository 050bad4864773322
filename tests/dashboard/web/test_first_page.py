"""Streamlit's page, with what is added to its head."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from attention_sieve.dashboard.web import first_page as module
from attention_sieve.dashboard.web.first_page import FIRST_WIDGETS, MADE_FOR, ROOM, first_page, scripts_of

WEB = Path(module.__file__).parent


def test_everything_was_made_for_the_streamlit_that_is_installed():
    """With another version, go through the table of dashboard/web/README.md, measure again, and change MADE_FOR."""
    assert version("streamlit").startswith(f"{MADE_FOR}.")


@pytest.mark.parametrize("widget", FIRST_WIDGETS)
def test_streamlit_has_a_script_of_this_name_for_each_first_widget(widget):
    assert any(name.startswith(f"{widget}.") for name in scripts_of((widget,)))


def test_the_head_keeps_room_and_names_each_script_once():
    page = first_page()
    head = page[: page.index("</head>")]
    for name in ROOM:
        assert (WEB / name).read_text("utf-8") in head
    links = re.findall(r'href="\./static/js/([^"]+)"', head)
    assert len(links) == len(set(links))
    scripts = {*links, re.search(r'src="\./static/js/([^"]+)"', head)[1]}
    assert scripts >= set(scripts_of(FIRST_WIDGETS))


def test_a_page_without_its_head_is_sent_as_streamlit_has_it(tmp_path, caplog):
    (tmp_path / "index.html").write_text("<html><body>Streamlit</body></html>")
    assert first_page(tmp_path) == "<html><body>Streamlit</body></html>"
    assert f"{tmp_path / 'index.html'} has not the one head that it had in Streamlit {MADE_FOR}" in caplog.text


def test_a_widget_without_a_script_of_its_name_is_fetched_when_it_is_needed(tmp_path):
    (tmp_path / "static" / "js").mkdir(parents=True)
    (tmp_path / "index.html").write_text("<html><head></head></html>")
    page = first_page(tmp_path)
    assert "modulepreload" not in page
    assert (WEB / ROOM[0]).read_text("utf-8") in page


def test_rules_of_style_read_what_the_page_holds_from_its_classes():
    """With :has() on the whole page, each element that comes or goes has Chromium look at all others again."""
    styles = "\n".join((WEB / name).read_text("utf-8") for name in (*ROOM, "page.css", "present.css", "skeleton.html"))
    assert not re.findall(r"(?:body|html|:root|\.stApp|\.stMain)\b[^\s,>{]*:has\(.*", styles)
    classes = set(re.findall(r'"(has-[a-z-]+)":', (WEB / "shown.js").read_text("utf-8")))
    assert classes == set(re.findall(r"\.(has-[a-z-]+)", styles))
