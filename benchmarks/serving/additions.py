"""What each addition to Streamlit's server is worth: the first visit without it, against the server with all of them.

In turns, so that a busy machine slows both alike. Below 1.00, the first grid comes sooner without the addition.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from playwright.sync_api import sync_playwright

from benchmarks.serving.browser_speed import ARGUMENTS, CHROMIUM, GRID, visit
from benchmarks.shared.server import DASHBOARD, ROOT, prepare, serve

ROUNDS: Final = 9
WITHOUT: Final = {
    "names of the scripts of the first widgets": "first_page.FIRST_WIDGETS = ()",
    "scripts without a thread for each step": "scripts.FOLDER = Path('/nowhere')",
    "interval between threads": "sys.setswitchinterval = lambda seconds: None",
    "no search for garbage in what is imported": "gc.freeze = lambda: None",
    "warming up with the first visit": "threading.Thread = NotWarmedUp",
}
"""What is taken away before the server is imported, by the name of the addition in dashboard/web/README.md."""
SERVER: Final = """
import gc, sys, threading
from pathlib import Path
sys.path.insert(0, {root!r})
from attention_sieve.dashboard.web import first_page, scripts

class NotWarmedUp(threading.Thread):
    def run(self):
        if self.name != "warm up":
            super().run()

{without}
from attention_sieve.dashboard.server import app
"""


def main() -> None:
    """Print a line for each addition."""
    names = sys.argv[1:] or list(WITHOUT)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = Path(folder)
        prepare(store)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        print(f"{'first grid without':<44}{'times with':>11}{'median':>9}{'with':>7}   ({ROUNDS} starts of each)")
        for name in names:
            script = store / "without.py"
            script.write_text(SERVER.format(root=str(ROOT), without=WITHOUT[name]), encoding="utf-8")
            waits: tuple[list[float], list[float]] = ([], [])
            for _ in range(ROUNDS):
                for seconds, started in zip(waits, (DASHBOARD, script)):
                    with serve(store, started) as server:
                        seconds.append(visit(browser, server.address, GRID, time.time())[0] / 1000)
            with_it, without = map(median, waits)
            ratio = median(b / a for a, b in zip(*waits))
            print(f"{name:<44}{ratio:>11.2f}{without:>9.2f}{with_it:>7.2f}", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
