"""A running dashboard on a store of its own, and a Chromium that reports whatever is wrong."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FINISHED = "[data-testid=stApp][data-test-script-state=notRunning]"


@pytest.fixture(scope="session")
def browser_type_launch_args():
    return {"executable_path": CHROMIUM, "args": ARGUMENTS}


@pytest.fixture(scope="session")
def store_folder(tmp_path_factory):
    """What set-up leaves behind: the samples and the example, scored."""
    folder = tmp_path_factory.mktemp("store")
    environment = {**os.environ, "ATTENTION_SIEVE_CACHE": str(folder)}
    subprocess.run([sys.executable, "-m", "dashboard.prepare"], cwd=ROOT, env=environment, check=True)
    return folder


@pytest.fixture(scope="session")
def server(store_folder, tmp_path_factory):
    """Address of a dashboard that was started as `make app` starts it, on a free port."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (tmp_path_factory.mktemp("log") / "server.log").open("w")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "streamlit",
            "run",
            "dashboard/app.py",
            "--server.port",
            str(port),
            "--server.headless",
            "true",
        ],
        cwd=ROOT,
        env={**os.environ, "ATTENTION_SIEVE_CACHE": str(store_folder), "OMP_WAIT_POLICY": "PASSIVE"},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    address = f"http://localhost:{port}"
    _wait_for(address, process)
    yield address
    process.terminate()
    process.wait(20)
    log.close()


def _wait_for(address, process):
    for _ in range(600):
        if process.poll() is not None:
            pytest.fail(f"the dashboard ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            process_waits(0.1)
    pytest.fail("the dashboard did not answer within a minute")


def process_waits(seconds):
    """Let the server work without a busy loop."""
    with closing(socket.socket()) as idle:
        idle.settimeout(seconds)
        idle.bind(("127.0.0.1", 0))
        idle.listen()
        try:
            idle.accept()
        except TimeoutError:
            return


@pytest.fixture
def visit(server, context):
    """Open a page of the dashboard; at the end, nothing may have gone wrong in it or left the machine."""
    pages, wrong = [], []

    def open_page(path="/", **viewport):
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(f"script error: {error}"))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: None if _is_local(request.url, server) else wrong.append(request.url))
        if viewport:
            page.set_viewport_size(viewport)
        page.goto(server + path)
        page.wait_for_selector(FINISHED, timeout=60_000)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert wrong == []


def _is_local(url, server):
    return url.startswith((server, server.replace("http", "ws"), "data:", "blob:"))
