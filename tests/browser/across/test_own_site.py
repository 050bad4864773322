"""The page is closed to other sites: no frame, and no other name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect
from steps import wait_for

WATCHED = Path(__file__).parents[1] / "watched"


def test_no_other_site_shows_the_page_in_a_frame(server, kept_context):
    said = []
    page = kept_context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.set_content(f"<iframe src='{server}/'></iframe>")
    wait_for(page, lambda: said, bool)
    assert "frame-ancestors 'none'" in said[0]
    assert "Attention Sieve" not in page.frames[-1].content()
    page.close()


def test_a_name_that_leads_here_opens_nothing(server, playwright, browser_type_launch_args):
    """DNS rebinding: to the browser, page and server are of one site."""
    port = server.rpartition(":")[2]
    led = [*browser_type_launch_args["args"], "--host-resolver-rules=MAP evil.example 127.0.0.1"]
    browser = playwright.chromium.launch(**{**browser_type_launch_args, "args": led})
    page = browser.new_page()
    assert page.goto(f"http://evil.example:{port}/").status == 403
    expect(page.get_by_text("To open it under another name, start it with")).to_be_visible()
    opened = page.evaluate(
        """port => new Promise(done => {
            const socket = new WebSocket(`ws://evil.example:${port}/_stcore/stream`);
            socket.onopen = () => done("open");
            socket.onerror = () => done("refused");
        })""",
        port,
    )
    assert opened == "refused"
    browser.close()


@pytest.mark.parametrize(
    "reach", ["socket.create_connection(('192.0.2.1', 9), 0.01)", "socket.getaddrinfo('a.test', 9)"]
)
def test_what_reaches_for_another_machine_is_noticed(reach, tmp_path):
    """So that the empty log of every server in these tests says something."""
    log = tmp_path / "log"
    environment = {"PYTHONPATH": str(WATCHED), "OUTSIDE_LOG": str(log)}
    subprocess.run([sys.executable, "-c", f"import socket; {reach}"], env=environment, capture_output=True)
    assert re.search("192.0.2.1|a.test", log.read_text())
