"""Waiting times in Chromium: first paint and grid, tau to redrawn grid, click to arcs, typed sentence to redrawn grid.

The last three are measured again for a decoder of 270 heads, and printed as so many times those of the bundled
checkpoint.

The first grid is measured alternately with an empty Streamlit page, which shows how fast the machine is at that moment:
the ratio of the two is what counts. The waits after it are measured inside the page, from the event that the browser
gives the page to the frame that shows the answer. Their goals are for a machine with nothing else to do; a busy one is
best judged by the column "best". At the end stands how long the page stands still while somebody looks at a text of
thousands of tokens, and as many times as long as at one that is shown whole. Before it stands how long the patterns of
144 heads take to be drawn again.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import transformers
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from attention_sieve.core.checkpoints.find import bundled_folder
from attention_sieve.dashboard.views.text.stories import VISITED
from benchmarks.shared.server import DASHBOARD, prepare, serve

CHROMIUM = shutil.which("chromium")
"""With windows, as people have it; Playwright starts its own where there is none."""
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STARTS, VISITS = 5, 7
REPEATS, SENTENCES = 20, 10
LONG = 60_000
PATTERN_TOKENS = 60
SETTLES = 500
"""Milliseconds in which a second run of the script would have begun."""
FINISHED = "[data-testid=stApp][data-test-script-state=notRunning]:not(:has(.st-key-first-screen))"
GRID = ".grid [role=gridcell]"
EMPTY = ("import streamlit as st\n\nst.title('Empty')\n", "h1")
"""A page of one line, and what of it is waited for."""
WINDOW = {"width": 1440, "height": 900}
SCORES = "scale=times+uniform+attention&tau=1.2"
"""Settings by which random heads hold roles, too: a grid without labels is not drawn anew."""
N_WORDS = (250, 4000)
"""Of a text that is shown whole, and of one of which a window of about as many tokens is shown."""
SUBJECTS = ("pilot", "nurse", "farmer", "singer", "judge", "clerk", "tailor", "guard", "poet", "miner")

# once(event, what) begins a measurement: `measured` resolves with the milliseconds from the next such event to the
# first frame after `what` reads differently. `runs` counts script runs.
WATCH = """
() => {
  const views = {
    grid: [".grid", (root) => root.querySelector(".legend").textContent
      + [...root.querySelectorAll("[role=gridcell]")].map((cell) => cell.ariaLabel)],
    arcs: [".view .drawing", (root) => root.querySelector(".view").ariaLabel],
    preview: [".view .drawing", (root) => root.querySelector(".heads").textContent],
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
    window.measured = new Promise((resolve, reject) => {
      const begin = () => {
        const begun = performance.now();
        setTimeout(() => reject(new Error(`Nothing new in ${what}.`)), LONG);
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

# `redrawn` takes the milliseconds of each drawing of all patterns: what comes before and after is the page's layout.
REDRAWN = """
() => {
  const { createImageData, putImageData } = CanvasRenderingContext2D.prototype;
  let begun = 0;
  window.redrawn = [];
  CanvasRenderingContext2D.prototype.createImageData = function (...size) {
    begun = performance.now();
    return createImageData.apply(this, size);
  };
  CanvasRenderingContext2D.prototype.putImageData = function (...image) {
    putImageData.apply(this, image);
    if (this.canvas.matches(".drawn")) window.redrawn.push(performance.now() - begun);
  };
}
"""

LONGEST_TASK = """
() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({ type: "longtask" });
}
"""
"""Longest time that the page was blocked, in milliseconds; tasks of under 50 ms are not reported."""

# `drawn` becomes the time, in milliseconds since 1970, of the first frame with the part waited for. `shifted` is
# what moves by itself, in shares of the window: the sum of all layout shifts, so never below what is called cumulative
# layout shift (CLS), which takes the worst five seconds.
FROM_THE_START = """
  window.drawn = 0;
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries()) if (!shift.hadRecentInput) window.shifted += shift.value;
  }).observe({ type: "layout-shift", buffered: true });
  const isIn = (root) => root.querySelector("PART")
    || [...root.querySelectorAll("*")].some((each) => each.shadowRoot?.querySelector("PART"));
  const look = () => requestAnimationFrame(isIn(document)
    ? () => (window.drawn = performance.timeOrigin + performance.now()) : look);
  look();
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store, beside = Path(folder, "store"), Path(folder, "empty")
        store.mkdir()
        beside.mkdir()
        prepare(store)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        print(f"{'what':<44}{'goal':>7}{'median':>9}{'best':>8}{'worst':>8}{'runs':>7}   (seconds; script runs each)")
        empty = beside / "empty.py"
        empty.write_text(EMPTY[0], encoding="utf-8")
        first_grid(browser, store, empty)
        with serve(store) as server:
            few = measured(browser, server.address, (tau, click, preview, sentence))
            many = many_heads(Path(folder) / "270 heads")
            of_many = measured(browser, server.address, (tau, click, sentence), f"checkpoint={many}&{SCORES}")
            for what, wait in of_many.items():
                print(f"{f'  {what}: as many times with 270 heads':<44}{1.5:>7.1f}{wait / few[what]:>9.2f}", flush=True)
            patterns(browser, server.address, random_checkpoint(Path(folder) / "many", 12, 12))
            long_text(browser, server.address, long_checkpoint(Path(folder) / "long"))
        browser.close()


def measured(
    browser: Browser, address: str, measures: Sequence[Callable[[Page, str, str], float]], query: str = ""
) -> dict[str, float]:
    """Median seconds of each of some waits, by its name, on pages whose address has a query."""
    medians = {}
    for measure in measures:
        page = browser.new_page(viewport=WINDOW)
        medians[measure.__name__] = measure(page, address, query)
        page.close()
    return medians


def first_grid(browser: Browser, store: Path, empty: Path) -> None:
    """From the start of a server, and for a new visitor of one that has drawn it before: the grid of the riddle."""
    starts: list[list[float]] = [[], []]
    pages = ((empty.parent, empty, EMPTY[1]), (store, DASHBOARD, GRID))
    for _ in range(STARTS):
        for waits, (folder, script, part) in zip(starts, pages):
            begun = time.time()
            with serve(folder, script) as server:
                waits.append(visit(browser, server.address, part, begun)[0])
    report_ratio("start of the server", 1.5, *starts)
    visits: list[list[float]] = [[], []]
    shifts, painted = [], []
    with serve(empty.parent, empty) as empty_server, serve(store) as server:
        for number in range(VISITS + 1):
            wait, _, _ = visit(browser, empty_server.address, EMPTY[1], time.time())
            wait_grid, shift, paint = visit(browser, server.address, GRID, time.time(), settles=3 * SETTLES)
            if number:  # the first visit makes the server warm
                visits[0].append(wait)
                visits[1].append(wait_grid)
                shifts.append(shift)
                painted.append(paint)
    report("first paint of a visit", 0.3, painted)
    report_ratio("new visitor of a warm server", 1.7, *visits)
    print(
        f"{'layout shift of a visit (share of the window)':<44}{0.1:>7.1f}{statistics.median(shifts):>9.2f}"
        f"{min(shifts):>8.2f}{max(shifts):>8.2f}",
        flush=True,
    )


def visit(browser: Browser, address: str, part: str, begun: float, settles: int = 0) -> tuple[float, float, float]:
    """Milliseconds until a new visitor sees a part of the page, the layout shift until the page has settled, and the
    milliseconds from the answer of the server to the first paint."""
    page = browser.new_page(viewport=WINDOW)
    page.add_init_script(FROM_THE_START.replace("PART", part))
    page.goto(address)
    page.wait_for_function("window.drawn", timeout=LONG)
    page.wait_for_selector(FINISHED, timeout=LONG)
    page.wait_for_timeout(settles)
    wait, shift = page.evaluate("window.drawn") - 1000 * begun, page.evaluate("window.shifted")
    painted = page.evaluate("performance.getEntriesByName('first-paint')[0].startTime")
    page.close()
    return wait, shift, painted


def report_ratio(what: str, goal: float, empty: list[float], grid: list[float]) -> None:
    """The waits for an empty page and for the grid, and how many times the first the second is."""
    ratio = statistics.median(grid) / statistics.median(empty)
    report(f"{what} to an empty page", None, empty)
    report(f"{what} to the first grid", goal * statistics.median(empty) / 1000, grid)
    print(f"{'  as many times the empty page':<44}{goal:>7.1f}{ratio:>9.2f}", flush=True)


def tau(page: Page, address: str, query: str) -> float:
    open_page(page, f"{address}/roles?{query}")
    slider = tau_slider(page)
    keys = ["ArrowRight" if number % 2 else "ArrowLeft" for number in range(REPEATS)]
    waits, runs = repeated(page, "keydown", "grid", [lambda key=key: slider.press(key) for key in keys])
    return report("tau to redrawn grid (Roles, 128 texts)", 0.3, waits, runs)


def tau_slider(page: Page) -> Locator:
    """The slider of tau, in the open drawer of test settings."""
    page.get_by_role("button", name="Test settings").click()
    return page.get_by_role("slider", name="tau")


def click(page: Page, address: str, query: str) -> float:
    open_page(page, f"{address}?{query}")
    cells = [page.locator(GRID).nth(7 * number % 72) for number in range(1, REPEATS + 1)]
    waits, runs = repeated(page, "pointerdown", "arcs", [cell.click for cell in cells])
    return report("click on a head to its arcs", 0.3, waits, runs)


def preview(page: Page, address: str, query: str) -> float:
    open_page(page, f"{address}?head=0-0&patterns=true&{query}")
    cells = [page.locator(GRID).nth(7 * number % 72) for number in range(1, REPEATS + 1)]
    # From cell to cell of a view, "pointerover" is dispatched inside that view only.
    waits, runs = repeated(page, "pointermove", "preview", [cell.hover for cell in cells])
    return report("pointer on a head's pattern to its arcs", 0.1, waits, runs)


def sentence(page: Page, address: str, query: str) -> float:
    open_page(page, f"{address}?{query}")

    def type_one(number: int) -> None:
        type_text(page, f"The tired {SUBJECTS[number]} slowly closed the heavy door and left at {time.time_ns()}.")

    each = [lambda number=number: type_one(number) for number in range(SENTENCES)]
    repeated(page, "keydown", "grid", each[:1])  # waits for the checkpoint to be loaded
    waits, runs = repeated(page, "keydown", "grid", each)
    return report("typed sentence to redrawn grid (warm model)", 0.8, waits, runs)


def patterns(browser: Browser, address: str, checkpoint: Path) -> None:
    """The patterns of all heads drawn again at other sizes."""
    page = browser.new_page(viewport=WINDOW)
    text = "+".join(SUBJECTS[place % len(SUBJECTS)] for place in range(PATTERN_TOKENS - 2))
    open_page(page, f"{address}?checkpoint={checkpoint}&head=0-0&patterns=true&text={text}")
    page.evaluate(REDRAWN)
    for number in range(REPEATS):
        drawn = page.evaluate("window.redrawn.length")
        # The grid of a window of 1,400 pixels is as wide as that of a wider one, so it is not drawn again.
        page.set_viewport_size(WINDOW | {"width": WINDOW["width"] - 40 * (2 + number % 5)})
        page.wait_for_function("drawn => window.redrawn.length > drawn", arg=drawn, timeout=LONG)
    report(f"144 patterns of {PATTERN_TOKENS} tokens redrawn", 0.1, page.evaluate("window.redrawn"))
    page.close()


def long_checkpoint(folder: Path) -> Path:
    """Random weights of 2 layers of 4 heads that take texts of thousands of tokens."""
    return random_checkpoint(folder, 2, 4, max_position_embeddings=8192)


def many_heads(folder: Path) -> Path:
    """A decoder of 30 layers of 9 heads, so narrow that its passes take little of the time, with weights so large that
    its heads look at few tokens each."""
    config = transformers.LlamaConfig(
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        hidden_size=72,
        intermediate_size=72,
        vocab_size=30_522,
        max_position_embeddings=512,
        initializer_range=0.5,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(bundled_folder()).save_pretrained(folder)
    return folder


def random_checkpoint(folder: Path, layers: int, heads: int, max_position_embeddings: int = 512) -> Path:
    """Random weights, with the bundled tokenizer."""
    config = transformers.BertConfig(
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_size=16 * heads,
        intermediate_size=64,
        max_position_embeddings=max_position_embeddings,
        initializer_range=0.5,
    )
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundled_folder())
    tokenizer.model_max_length = config.max_position_embeddings
    tokenizer.save_pretrained(folder)
    return folder


def long_text(browser: Browser, address: str, checkpoint: Path) -> None:
    """The longest task of the page while a text is typed, a head is clicked and tau is moved."""
    longest = []
    for n_words in N_WORDS:
        page = browser.new_page(viewport=WINDOW)
        open_page(page, f"{address}?checkpoint={checkpoint}&head=0-0&{SCORES}")
        page.evaluate(LONGEST_TASK)
        text = " ".join(SUBJECTS[place % len(SUBJECTS)] for place in range(n_words))
        repeated(page, "keydown", "grid", [lambda page=page, text=text: type_text(page, text)])
        # The page itself has chosen a head, by what it tells of a text of the reader's own.
        another = page.locator(f"{GRID}[aria-selected=false]").first
        repeated(page, "pointerdown", "arcs", 4 * [another.click])
        slider = tau_slider(page)
        repeated(page, "keydown", "grid", [lambda slider=slider: slider.press("PageUp")])
        longest.append(page.evaluate("window.longest"))
        page.close()
    for n_words, task in zip(N_WORDS, longest):
        report(f"longest task of the page, {n_words:,} words", None, [task])
    print(f"{'  as many times the shorter text':<44}{2:>7.1f}{longest[1] / longest[0]:>9.2f}", flush=True)


def type_text(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Your texts")
    box.fill(text)
    box.press("Control+Enter")


def repeated(page: Page, event: str, what: str, acts: Sequence[Callable[[], Any]]) -> tuple[list[float], list[int]]:
    """Milliseconds of each action, and the number of script runs that it took."""
    waits, runs = [], []
    for act in acts:
        page.evaluate("([event, what]) => window.once(event, what)", [event, what])
        act()
        waits.append(page.evaluate("window.measured"))
        page.wait_for_timeout(SETTLES)
        page.wait_for_selector(FINISHED, timeout=LONG)
        runs.append(page.evaluate("window.runs"))
    return waits, runs


def report(what: str, goal: float | None, waits: list[float], runs: list[int] | None = None) -> float:
    """Print waits in seconds beside their goal; returns their median."""
    seconds = [wait / 1000 for wait in waits]
    limit = "" if goal is None else f"{goal:.1f}"
    ran = "" if not runs else f"{statistics.mean(runs):.1f}"
    print(
        f"{what:<44}{limit:>7}{statistics.median(seconds):>9.2f}{min(seconds):>8.2f}{max(seconds):>8.2f}{ran:>7}",
        flush=True,
    )
    return statistics.median(seconds)


def open_page(page: Page, address: str) -> None:
    """Open the working page: somebody who has been here before meets no riddle."""
    page.context.add_cookies([{"name": VISITED, "value": "1", "url": address}])
    page.goto(address)
    page.locator(GRID).first.wait_for(timeout=LONG)
    page.wait_for_selector(FINISHED, timeout=LONG)
    page.evaluate(WATCH.replace("LONG", str(LONG)))


if __name__ == "__main__":
    main()
