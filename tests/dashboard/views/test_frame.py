"""The frame of every page: its long prose, its tabs, and the link to Inspect."""

from importlib import import_module
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from attention_sieve.dashboard.languages import Prose
from attention_sieve.dashboard.views.frame import read_notes

VIEWS = Path(__file__).parents[3] / "dashboard" / "views"
ROOMS = sorted(path.parent.relative_to(VIEWS) for path in VIEWS.rglob("method.md"))


def numbers_of(room):
    wording = import_module(".".join(("attention_sieve.dashboard.views", *room.parts, "wording")))
    return getattr(wording, "NUMBERS", {})


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_every_placeholder_of_the_prose_is_filled_and_every_number_is_used(room):
    files = [path for name in ("method.md", "paper.md") if (path := VIEWS / room / name).exists()]
    placeholders = {name for path in files for name in Prose(path.read_text("utf-8")).get_identifiers()}
    assert placeholders == set(numbers_of(room))
    notes = read_notes(VIEWS / room, numbers_of(room))
    assert "@" not in notes.method + notes.paper


def test_prose_with_a_placeholder_that_nothing_fills_is_refused(tmp_path):
    (tmp_path / "method.md").write_text("Over @{n} texts, $x$.")
    with pytest.raises(KeyError, match="n"):
        read_notes(tmp_path)
    assert read_notes(tmp_path, {"n": "3"}).method == "Over 3 texts, $x$."


def test_prose_with_a_stray_sign_is_refused(tmp_path):
    (tmp_path / "method.md").write_text("Write to a@ b.")
    with pytest.raises(ValueError, match="placeholder"):
        read_notes(tmp_path)


def refused():
    import streamlit as st

    from attention_sieve.cache.serving.requests import Status
    from attention_sieve.dashboard.views.text.on_screen import waiting

    try:
        with waiting() as report:
            report(Status(done=0, total=1, seconds_left=14.0, n_waiting_before=0))
            st.session_state["asked"] = True
            raise ValueError("The text is too long.")
    except ValueError as error:
        st.error(str(error))


def test_what_is_said_of_a_wait_does_not_stay_beside_a_refusal():
    at = AppTest.from_function(refused).run()
    assert at.session_state["asked"]
    assert [each.value for each in at.error] == ["The text is too long."]
    assert [each.value for each in at.markdown] == []
