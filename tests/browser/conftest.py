"""A running dashboard on a store of its own, and a Chromium that reports whatever is wrong."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from filelock import FileLock
from laboratory_model import learn_to_copy
from playwright.sync_api import Error
from steps import PATIENCE, settle, slow_down

from attention_sieve.dashboard.views.text.stories import VISITED
from benchmarks.shared.programs import chromium
from benchmarks.shared.server import DASHBOARD, prepare, serve

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",
    # Compile with care only what runs very often: a page is left after a second or two, and compiling it well takes
    # more of the processor's time than it saves (an eighth of all that the browser takes).
    "--js-flags=--no-turbofan --invocation-count-for-maglev=4000",
]
COMPLAINTS = ("Traceback (most recent call last)", "Stack (most recent call last)", "Warning:")
"""What begins a complaint in the server's log."""
WATCHED = Path(__file__).with_name("watched")
"""Holds the module that notes what a Python program connects to."""
PAGES = pytest.StashKey[list]()
"""Those that a test has opened."""
MOST_SAID = 1500
"""Characters of a page that are shown beside a failure."""
SAID_WITHIN = 5000
"""Milliseconds."""
WIDE = {"width": 1440, "height": 900}
STILL = """
addEventListener("DOMContentLoaded", () => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(
        "*, *::before, *::after { animation: none !important; transition-duration: 0s !important; }"
    );
    document.adoptedStyleSheets.push(sheet);
});
"""
"""Lets Streamlit's parts fade at once: drawing each step of that takes a tenth of what a visit takes."""


@pytest.fixture(scope="session")
def browser_type_launch_args():
    return {"executable_path": chromium(), "args": ARGUMENTS}


@pytest.fixture(scope="session")
def made_once(tmp_path_factory, worker_id):
    """made_once(name, make): a folder that is filled by the first of all processes that run tests."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def made(name, make):
        folder = shared / name
        with FileLock(folder.with_suffix(".lock")):
            if not folder.is_dir():
                unfinished = tmp_path_factory.mktemp("unfinished")
                make(unfinished)
                unfinished.rename(folder)
        return folder

    return made


@pytest.fixture(scope="session")
def prepared(made_once):
    """What set-up leaves behind: the samples and the example, scored.

    `make test` has made it beside the tests without a browser.
    """
    made = os.environ.get("ATTENTION_SIEVE_TEST_SAMPLES")
    return Path(made) if made else made_once("prepared", prepare)


@pytest.fixture(scope="session")
def store_folder(prepared, tmp_path_factory):
    """The store of this process's dashboard."""
    return shutil.copytree(prepared, tmp_path_factory.mktemp("store"), dirs_exist_ok=True)


@pytest.fixture(scope="session")
def learnt(made_once):
    """Folder of a model of the laboratory that has learnt to copy."""
    return made_once("laboratory", lambda folder: learn_to_copy(folder / "learnt")) / "learnt"


@pytest.fixture
def learnt_model(learnt, store_folder):
    """The same on the dashboard, while a test runs."""
    folder = store_folder / "checkpoints" / "learnt"
    shutil.copytree(learnt, folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def nothing_made(store_folder, running):
    """Nothing was trained yet on this dashboard, and what the test trains is removed once its process has ended."""
    made, aside = store_folder / "checkpoints", store_folder / "checkpoints of others"
    made.mkdir(exist_ok=True)
    made.rename(aside)
    yield
    programs = [  # not what has ended already, of which nothing but its end is known
        each
        for each in psutil.process_iter(["ppid", "cmdline"])
        if each.info["ppid"] == running.pid and "attention_sieve" in (each.info["cmdline"] or [])
    ]
    psutil.wait_procs(programs, PATIENCE / 1000)
    shutil.rmtree(made, ignore_errors=True)
    aside.rename(made)


@pytest.fixture(scope="session")
def running(served, store_folder):
    """A dashboard on this process's store."""
    with served(store_folder) as running:
        yield running


@pytest.fixture(scope="session")
def server(running):
    """Address of the dashboard that is visited."""
    return running.address


@pytest.fixture(scope="session")
def served():
    """served(folder, script, **environment): a context with a running script.

    Its server, and what that starts, may neither complain nor reach for another machine.
    """
    return _served


@contextmanager
def _served(folder, script=DASHBOARD, **environment):
    outside = folder / "outside.log"
    outside.touch()
    with serve(folder, script, PYTHONPATH=str(WATCHED), OUTSIDE_LOG=str(outside), **environment) as running:
        yield running
    said = running.log.read_text()
    assert not any(complaint in said for complaint in COMPLAINTS), said
    assert outside.read_text() == "", "The server reached for other machines."


@pytest.fixture(scope="session")
def kept_context(browser, running):
    """One context for all tests: what it has fetched and compiled is kept, which takes half of a visit."""
    context = browser.new_context()
    context.grant_permissions([])
    context.set_default_timeout(PATIENCE)
    context.add_init_script(STILL)
    # The process of a site ends with its last page, and what it has compiled with it.
    context.new_page().goto(f"{running.address}/_stcore/health")
    return context


@pytest.fixture
def visit(server, kept_context, request):
    """visit(path, colours, newcomer, **size) opens the dashboard; at the end nothing may have gone wrong.

    The browser has forgotten what an earlier visitor did, but for the cookie that says that somebody was here, without
    which a newcomer meets the riddle.
    """
    pages, wrong = request.node.stash.setdefault(PAGES, []), []

    def open_page(path="/", colours="light", newcomer=False, **size):
        if newcomer:
            kept_context.clear_cookies(name=VISITED)
        else:
            kept_context.add_cookies([{"name": VISITED, "value": "1", "url": server}])
        page = kept_context.new_page()
        pages.append(page)
        page.emulate_media(color_scheme=colours)
        page.set_viewport_size({**WIDE, **size})
        page.add_init_script("localStorage.clear()")  # what an earlier visitor unfolded is folded again
        slow_down(page)
        page.on("pageerror", lambda error: wrong.append(f"script error: {error.stack or error}"))
        page.on("console", lambda message: _is_wrong(message) and wrong.append(_said_by(message)))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: _is_local(request.url, server) or wrong.append(request.url))
        page.on("websocket", lambda socket: _is_local(socket.url, server) or wrong.append(socket.url))
        page.goto(path if path.startswith("http") else server + path)
        settle(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert wrong == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Show beside a failure what its pages said, which Playwright's own message cuts off after the sidebar."""
    report = yield
    if call.when == "call" and report.failed:
        report.sections += [(f"What {page.url} said", _said(page)) for page in item.stash.get(PAGES, [])]
    return report


def _said(page):
    try:
        state = page.get_by_test_id("stApp").get_attribute("data-test-script-state", timeout=SAID_WITHIN)
        return f"{state}: {page.get_by_test_id('stMain').inner_text(timeout=SAID_WITHIN)[:MOST_SAID]}"
    except Error as error:
        return str(error)


def _is_wrong(message):
    vega_warns = message.type == "warning" and message.text.startswith("WARN")
    return vega_warns or message.type == "error"


def _said_by(message):
    return f"{message.text} ({message.location['url']})"


def _is_local(url, server):
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob") or parts.netloc == urlsplit(server).netloc


@pytest.fixture(scope="session")
def encoder_decoder(tmp_path_factory):
    """Folder of a small random BART: an encoder of 2 layers and 3 heads, a decoder of 3 layers and 4 heads."""
    from small_checkpoints import save

    return save("bart", tmp_path_factory.mktemp("checkpoint") / "small-bart")


@pytest.fixture(scope="session")
def decoder(tmp_path_factory):
    """Folder of a small random GPT-2 with its language-model head."""
    from small_checkpoints import config, gpt2_tokenizer
    from transformers import AutoModelForCausalLM

    folder, tokenizer = tmp_path_factory.mktemp("checkpoint") / "small-gpt2", gpt2_tokenizer()
    AutoModelForCausalLM.from_config(config("gpt2", len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


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


@pytest.fixture(scope="session")
def classifier(tmp_path_factory):
    """Folder of a small random BERT that tells praise from blame by chance."""
    import torch
    from small_checkpoints import TOKENIZERS, config
    from transformers import AutoModelForSequenceClassification

    folder, tokenizer = tmp_path_factory.mktemp("checkpoint") / "classifier", TOKENIZERS["bert"]()
    torch.manual_seed(0)
    names = {"id2label": {0: "praise", 1: "blame"}, "label2id": {"praise": 0, "blame": 1}}
    AutoModelForSequenceClassification.from_config(config("bert", len(tokenizer), **names)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
