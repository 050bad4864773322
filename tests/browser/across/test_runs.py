"""Runs of one page, which share what the page remembers."""

from pathlib import Path

import pytest
from steps import wait_for

SCRIPT = """
import sys
import time
from pathlib import Path

import streamlit as st

sys.path.insert(0, {root!r})
from attention_sieve.dashboard.progress import let_leave

MEANWHILE = st.query_params["while"]
LOG = Path(__file__).with_name(MEANWHILE + ".log")
LONGEST = {{"drawing nothing": 2, "waiting": 120}}  # seconds that the second run goes on


def note(line):
    with LOG.open("a") as log:
        log.write(line + "\\n")


def n_begun():
    return LOG.read_text().count("begin")


def last_until_another_begins():
    n, end = n_begun(), time.monotonic() + LONGEST[MEANWHILE]
    while time.monotonic() < end and n_begun() == n:
        time.sleep(0.01)


note("begin")
st.button("Again")
if n_begun() == 2 and MEANWHILE == "waiting":
    let_leave(last_until_another_begins)
elif n_begun() == 2:
    last_until_another_begins()
note("end")
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """A page that notes when its runs begin and end."""
    script = tmp_path_factory.mktemp("runs") / "runs.py"
    script.write_text(SCRIPT.format(root=str(Path(__file__).parents[3])))
    return script


@pytest.fixture(scope="module")
def server(served, script):
    with served(script.parent, script) as running:
        yield running.address


def noted_by_three_runs(visit, script, meanwhile):
    """Lines, where the third run is asked for while the second goes on."""
    page, log = visit(f"/?while={meanwhile}"), script.with_name(f"{meanwhile}.log")
    for n_begun in (2, 3):
        page.get_by_role("button", name="Again").click()
        wait_for(page, log.read_text, lambda noted, wanted=n_begun: noted.count("begin") == wanted)
    return wait_for(page, log.read_text, lambda noted: noted.endswith("end\n")).split()


def test_a_run_that_is_asked_for_waits_for_the_one_before_to_draw_something_or_to_end(visit, script):
    assert noted_by_three_runs(visit, script, "drawing nothing") == ["begin", "end"] * 3


def test_a_run_that_waits_for_long_work_ends_as_soon_as_the_next_is_asked_for(visit, script):
    assert noted_by_three_runs(visit, script, "waiting") == ["begin", "end", "begin", "begin", "end"]
