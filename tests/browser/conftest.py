"""A running dashboard on a store of its own, and a Chromium that reports whatever is wrong."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest
from steps import settle

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "core"))  # small_checkpoints, also when only these tests are collected

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
STARTS_WITHIN = 60
POLLS_A_SECOND = 10
COMPLAINTS = ("Traceback (most recent call last)", "Stack (most recent call last)", "Warning:")
"""What begins a complaint in the server's log."""
WIDE = {"width": 1440, "height": 900}
# Opened at a page's own address, Streamlit's front end first looks for its server below that address, is told 404
# twice, and then finds it at the root. Chromium writes both answers to the console.
PROBES = ("/_stcore/health", "/_stcore/host-config")


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
def server(serve, store_folder):
    """Address of a dashboard that was started as `make app` starts it, on a free port, without the model hub."""
    with serve("dashboard/app.py", store_folder) as address:
        yield address


@pytest.fixture(scope="session")
def serve(tmp_path_factory):
    """serve(script, store_folder): a context with the address of a script; its server may not complain."""
    return lambda script, store_folder: _served(script, store_folder, tmp_path_factory.mktemp("log") / "server.log")


@contextmanager
def _served(script, store_folder, kept):
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    options = ["--server.port", str(port), "--server.address", "localhost", "--server.headless", "true"]
    environment = {
        **os.environ,
        "ATTENTION_SIEVE_CACHE": str(store_folder),
        "HF_HUB_OFFLINE": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    with kept.open("w") as log:
        process = subprocess.Popen(
            [*command, *options], cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _wait_for(f"http://localhost:{port}", process)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            process.wait(20)
    said = kept.read_text()
    assert not any(complaint in said for complaint in COMPLAINTS), said


def _wait_for(address, process):
    for _ in range(STARTS_WITHIN * POLLS_A_SECOND):
        if process.poll() is not None:
            pytest.fail(f"the dashboard ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            Event().wait(1 / POLLS_A_SECOND)  # a refused connection comes back at once
    pytest.fail(f"the dashboard did not answer within {STARTS_WITHIN} seconds")


@pytest.fixture
def visit(server, browser):
    """visit(path, colours, **size) opens the dashboard as someone new; at the end nothing may have gone wrong."""
    contexts, wrong = [], []

    def open_page(path="/", colours="light", **size):
        context = browser.new_context(viewport={**WIDE, **size}, color_scheme=colours)
        context.grant_permissions([])
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(f"script error: {error}"))
        page.on("console", lambda message: _is_wrong(message, server) and wrong.append(message.text))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: _is_local(request.url, server) or wrong.append(request.url))
        page.on("websocket", lambda socket: _is_local(socket.url, server) or wrong.append(socket.url))
        page.goto(path if path.startswith("http") else server + path)
        settle(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def _is_wrong(message, server):
    pages = ("roles", "surface", "parsing", "similar", "compare", "fine-tune")
    allowed = [f"{server}/{page}{probe}" for page in pages for probe in PROBES]
    return message.type == "error" and message.location["url"] not in allowed


def _is_local(url, server):
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob") or parts.netloc == urlsplit(server).netloc


@pytest.fixture(scope="session")
def encoder_decoder(tmp_path_factory):
    """Folder of a small random BART: an encoder of 2 layers and 3 heads, a decoder of 3 layers and 4 heads."""
    from small_checkpoints import save

    return save("bart", tmp_path_factory.mktemp("checkpoint") / "small-bart")


@pytest.fixture(scope="session")
def long_checkpoint(tmp_path_factory):
    """Folder of a small random Llama of 4 layers and 8 heads that takes 8,192 tokens."""
    from small_checkpoints import save

    sizes = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "hidden_size": 32}
    return save("llama", tmp_path_factory.mktemp("checkpoint") / "long-llama", max_position_embeddings=8192, **sizes)


@pytest.fixture(scope="session")
def small_checkpoint(tmp_path_factory):
    """Folder of a small random BERT of 2 layers and 3 heads."""
    from small_checkpoints import save

    return save("bert", tmp_path_factory.mktemp("checkpoint") / "small-bert")
