"""A saved page of 144 heads over 128 texts, with the attention in one of 128 tokens: its size, and when it is drawn.

Chromium opens it from the disk without a network, alternately with an empty file, which shows how fast the machine is
at that moment. The arcs are there once the attention of all heads has been read.
"""

import tempfile
import time
from pathlib import Path
from typing import Final

from playwright.sync_api import BrowserContext, sync_playwright

import attention_sieve as sieve
from benchmarks.serving.browser_speed import (
    ARGUMENTS,
    CHROMIUM,
    FROM_THE_START,
    GRID,
    SUBJECTS,
    VISITS,
    WINDOW,
    random_checkpoint,
    report,
)
from benchmarks.shared.sentences import sentences

DRAWN: Final = "new Promise((done) => { (look = () => drawn ? done(drawn) : requestAnimationFrame(look))(); })"
"""Playwright's own way to wait makes code of a string, which the page's content policy forbids."""
N_TEXTS, N_TOKENS = 128, 128
MEGABYTES, SECONDS, TIMES = 5, 1.0, 10
"""Goals: the size of the page, and the time to its first grid, also as many times that of an empty file."""
ARCS: Final = ".tokens.from .token"
EMPTY: Final = ("<!doctype html><title>Empty</title><h1>Empty</h1>", "h1")
"""A file, and what of it is waited for."""


def main() -> None:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        drawn = " ".join(SUBJECTS[at % len(SUBJECTS)] for at in range(N_TOKENS - 2))
        checkpoint = random_checkpoint(folder / "144 heads", 12, 12)
        saved = sieve.save_page(folder / "heads.html", checkpoint, sentences(N_TEXTS), drawn=drawn, tau=1.2)
        empty = folder / "empty.html"
        empty.write_text(EMPTY[0], encoding="utf-8")
        print(f"megabytes: {saved.stat().st_size / 1e6:.2f} (goal: {MEGABYTES})")
        print(f"{'what':<44}{'goal':>7}{'median':>9}{'best':>8}{'worst':>8}   (seconds)")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = browser.new_context(viewport=WINDOW, offline=True)
        pages = ((empty, EMPTY[1]), (saved, GRID), (saved, ARCS))
        waits = list(zip(*([_opened(context, path, part) for path, part in pages] for _ in range(VISITS))))
        names = ("an empty file opened", "to the first grid of a saved page", "to its arcs")
        base, grid, _ = (
            report(name, goal, list(each)) for name, goal, each in zip(names, (None, SECONDS, None), waits)
        )
        print(f"{'  first grid: as many times the empty file':<44}{TIMES:>7.1f}{grid / base:>9.2f}")
        browser.close()


def _opened(context: BrowserContext, path: Path, part: str) -> float:
    """Milliseconds until a part of a page from the disk is drawn."""
    page = context.new_page()
    page.add_init_script(FROM_THE_START.replace("PART", part))
    begun = time.time()
    page.goto(path.as_uri(), wait_until="commit")
    wait: float = page.evaluate(DRAWN) - 1000 * begun
    page.close()
    return wait


if __name__ == "__main__":
    main()
