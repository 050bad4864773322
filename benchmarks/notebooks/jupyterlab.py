"""Heads in a cell of JupyterLab: whether a click comes back, what is asked of a network, and the end of the kernel.

    python -m benchmarks.notebooks.jupyterlab [picture.png]

Needs the packages jupyterlab, ipykernel and anywidget; without them nothing is measured.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import expect, sync_playwright

from benchmarks.shared.markdown import header, row
from benchmarks.shared.programs import chromium
from benchmarks.shared.server import ANSWERS_WITHIN, ROOT, free_port

NEEDED: Final = ("jupyterlab", "ipykernel", "anywidget")
CELLS: Final = (
    'import attention_sieve as sieve\nshown = sieve.show("bundled", "The old dog chased a cat.")\nshown',
    'print("chosen", shown.heads)',
)


def main() -> None:
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        print(f"Nothing was measured: {', '.join(missing)} not installed.", file=sys.stderr)
        return
    with TemporaryDirectory() as folder, _server(Path(folder)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page: Any = browser.new_page(viewport={"width": 1440, "height": 900})
        expect.set_options(timeout=1000 * ANSWERS_WITHIN)
        elsewhere: list[str] = []
        wrong: list[str] = []
        page.on(
            "request", lambda asked: asked.url.startswith((address, "data:", "blob:")) or elsewhere.append(asked.url)
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.goto(f"{address}/lab/tree/heads.ipynb")
        header("what", "found")
        _measure(page)
        row("requests to other places", len(elsewhere))
        row("errors while the kernel runs", len(wrong))
        for session in page.request.get(f"{address}/api/sessions").json():
            page.request.delete(f"{address}/api/sessions/{session['id']}")
        expect(page.get_by_text("No Kernel").first).to_be_visible()
        _choose(page, 1, 2)
        row("without a kernel", page.locator(".heads .chip").inner_text())
        if sys.argv[1:]:
            page.screenshot(path=sys.argv[1])
        browser.close()


def _measure(page: Any) -> None:
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()  # what runs earlier may get no answer
    page.locator(".jp-Cell").first.click()
    page.keyboard.press("Shift+Enter")
    began = time.monotonic()
    expect(page.get_by_role("gridcell", name="Layer 3, head 7:")).to_be_visible()
    row("seconds from running the cell to the grid, with the imports", f"{time.monotonic() - began:.1f}")
    _choose(page, 3, 7)
    page.locator(".tokens.from .token").nth(3).click()
    row("a word", page.locator(".summary").inner_text())
    page.locator(".jp-Cell").nth(1).click()
    page.keyboard.press("Shift+Enter")
    said = page.locator(".jp-OutputArea-output", has_text="chosen")
    expect(said).to_be_visible()
    row("the heads in a later cell", said.inner_text().strip())


def _choose(page: Any, layer: int, head: int) -> None:
    page.get_by_role("gridcell", name=f"Layer {layer}, head {head}:").click()
    expect(page.locator(".heads .chip")).to_have_text([f"L{layer} H{head}"])


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """JupyterLab with a notebook of CELLS, and settings of its own."""
    code = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    cells = [{**code, "id": str(number), "source": source} for number, source in enumerate(CELLS)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    (folder / "heads.ipynb").write_text(json.dumps(notebook), "utf-8")
    port = free_port()
    options = [f"--port={port}", "--no-browser", "--allow-root", "--IdentityProvider.token="]
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options, "--ServerApp.disable_check_xsrf=True"],
        cwd=folder,
        env={**os.environ, **own, "PYTHONPATH": str(ROOT), "JUPYTERLAB_WORKSPACES_DIR": str(folder)},
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://localhost:{port}/api")
        yield f"http://localhost:{port}"
    finally:
        server.terminate()
        server.wait(ANSWERS_WITHIN)


def _wait_for(address: str) -> None:
    until = time.monotonic() + ANSWERS_WITHIN
    while time.monotonic() < until:
        try:
            urlopen(address, timeout=1).close()
            return
        except URLError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not answer within {ANSWERS_WITHIN} seconds.")


if __name__ == "__main__":
    main()
