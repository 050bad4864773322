"""Waiting times in Chromium: first grid, tau to redrawn grid, click to arcs, typed sentence to redrawn grid.

Measured inside the page, from the event that the browser gives the page to the frame that shows the answer. The goals
are for a machine with nothing else to do; a busy one is best judged by the column "best".
"""

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STARTS = 3
REPEATS, SENTENCES = 20, 10
LONG = 60_000
SETTLES = 500
"""Milliseconds in which a second run of the script would have begun."""
FINISHED = "[data-testid=stApp][data-test-script-state=notRunning]"
GRID = ".grid [role=gridcell]"
SUBJECTS = ("pilot", "nurse", "farmer", "singer", "judge", "clerk", "tailor", "guard", "poet", "miner")

# once(event, what) begins a measurement: `measured` resolves with the milliseconds from the next such event to the
# first frame after `what` reads differently. `runs` counts script runs.
WATCH = """
() => {
  const views = {
    grid: [".grid", (root) => root.querySelector(".legend").textContent
      + [...root.querySelectorAll("[role=gridcell]")].map((cell) => cell.ariaLabel)],
    arcs: [".view .drawing", (root) => root.querySelector(".view").ariaLabel],
  };
  const rootOf = (part) => [...document.querySelectorAll("*")]
    .map((each) => each.shadowRoot).find((root) => root?.querySelector(part));
  const reader = ([part, read]) => {
    let root = rootOf(part);
    return () => {
      if (!root?.host.isConnected) root = rootOf(part);
      return root ? read(root) : "";
    };
  };
  window.once = (event, what) => {
    const read = reader(views[what]);
    const before = read();
    window.runs = 0;
    window.measured = new Promise((resolve) => {
      const begin = () => {
        const begun = performance.now();
        const look = () => {
          const now = read();
          const isNew = now && now !== before;
          requestAnimationFrame(isNew ? () => resolve(performance.now() - begun) : look);
        };
        requestAnimationFrame(look);
      };
      window.addEventListener(event, begin, { capture: true, once: true });
    });
  };
  const app = document.querySelector("[data-testid=stApp]");
  const count = () => (window.runs += app.dataset.testScriptState === "running");
  new MutationObserver(count).observe(app, { attributeFilter: ["data-test-script-state"] });
}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        environment = {
            **os.environ,
            "ATTENTION_SIEVE_CACHE": folder,
            "OMP_WAIT_POLICY": "PASSIVE",
            "HF_HUB_OFFLINE": "1",
        }
        subprocess.run([sys.executable, "-m", "dashboard.prepare"], cwd=ROOT, env=environment, check=True)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        print(f"{'what':<44}{'goal':>7}{'median':>9}{'best':>8}{'worst':>8}{'runs':>7}   (seconds; script runs each)")
        starts = []
        for _ in range(STARTS):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            begun = time.perf_counter()
            with server(environment) as address:
                page.goto(address)
                page.locator(GRID).first.wait_for(timeout=LONG)
                starts.append(1000 * (time.perf_counter() - begun))
                page.close()
        report("start of the server to the first grid", 4.0, starts)
        with server(environment) as address:
            for measure in (tau, click, sentence):
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                measure(page, address)
                page.close()
        browser.close()


def tau(page: Page, address: str) -> None:
    open_page(page, f"{address}/roles")
    slider = page.get_by_role("slider", name="tau")
    keys = ["ArrowRight" if number % 2 else "ArrowLeft" for number in range(REPEATS)]
    waits, runs = repeated(page, "keydown", "grid", [lambda key=key: slider.press(key) for key in keys])
    report("tau to redrawn grid (Roles, 128 texts)", 0.3, waits, runs)


def click(page: Page, address: str) -> None:
    open_page(page, address)
    cells = [page.locator(GRID).nth(7 * number % 72) for number in range(1, REPEATS + 1)]
    waits, runs = repeated(page, "pointerdown", "arcs", [cell.click for cell in cells])
    report("click on a head to its arcs", 0.3, waits, runs)


def sentence(page: Page, address: str) -> None:
    open_page(page, address)
    box = page.get_by_role("textbox", name="Your texts")

    def type_one(number: int) -> None:
        box.fill(f"The tired {SUBJECTS[number]} slowly closed the heavy door and left at {time.time_ns()}.")
        box.press("Control+Enter")

    each = [lambda number=number: type_one(number) for number in range(SENTENCES)]
    repeated(page, "keydown", "grid", each[:1])  # waits for the checkpoint to be loaded
    waits, runs = repeated(page, "keydown", "grid", each)
    report("typed sentence to redrawn grid (warm model)", 0.8, waits, runs)


def repeated(page: Page, event: str, what: str, acts: Sequence[Callable[[], Any]]) -> tuple[list[float], list[int]]:
    """Milliseconds of each act, and the script runs it took."""
    waits, runs = [], []
    for act in acts:
        page.evaluate("([event, what]) => window.once(event, what)", [event, what])
        act()
        waits.append(page.evaluate("window.measured"))
        page.wait_for_timeout(SETTLES)
        page.wait_for_selector(FINISHED, timeout=LONG)
        runs.append(page.evaluate("window.runs"))
    return waits, runs


def report(what: str, goal: float, waits: list[float], runs: list[int] | None = None) -> None:
    seconds = [wait / 1000 for wait in waits]
    ran = "" if not runs else f"{statistics.mean(runs):.1f}"
    print(
        f"{what:<44}{goal:>7.1f}{statistics.median(seconds):>9.2f}{min(seconds):>8.2f}{max(seconds):>8.2f}{ran:>7}",
        flush=True,
    )


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    page.locator(GRID).first.wait_for(timeout=LONG)
    page.wait_for_selector(FINISHED, timeout=LONG)
    page.evaluate(WATCH)


@contextmanager
def server(environment: dict[str, str]) -> Iterator[str]:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/app.py"]
    options = ["--server.port", str(port), "--server.headless", "true"]
    process = subprocess.Popen(
        [*command, *options], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield from _answering(port)
    finally:
        process.terminate()
        process.wait(20)


def _answering(port: int) -> Iterator[str]:
    for _ in range(6000):
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                yield f"http://localhost:{port}"
                return
        time.sleep(0.01)
    sys.exit("the dashboard did not answer within a minute")


if __name__ == "__main__":
    main()
