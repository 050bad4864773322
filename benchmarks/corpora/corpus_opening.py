"""Opens a results folder in a process that imports only what it needs; prints seconds and bytes as JSON.

`python -m benchmarks.corpora.corpus_opening grid FOLDER` reads the statistics and draws the grid and the Venn diagram.
`... page FOLDER` runs the page Roles as a reader's first visit does, with Streamlit and the sidebar.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

STARTED: Final = time.perf_counter(), time.process_time()
HEAVY: Final = ("torch", "transformers", "spacy")


def main() -> None:
    what, folder = sys.argv[1:]
    {"grid": open_grid, "page": open_page}[what](Path(folder))


def open_grid(folder: Path) -> None:
    from attention_sieve.core.corpus.results import open_results
    from attention_sieve.core.roles.hypotheses import Criterion
    from attention_sieve.core.roles.roles import COARSE_ROLES, combinations
    from attention_sieve.dashboard.figures.roles.combinations import Overlaps
    from attention_sieve.dashboard.figures.roles.grid import RoleGrid, grid_svg
    from attention_sieve.dashboard.figures.roles.venn_svg import venn_svg

    imported = time.perf_counter(), time.process_time()
    part = open_results(folder).part()
    tests = part.tests(Criterion())
    uniform, greatest = part.references()
    grid = RoleGrid(
        label="", scores=tests.mean, holds=tests.holds, tau=3.0, shown=COARSE_ROLES, uniform=uniform, greatest=greatest
    )
    grid_svg(grid, title="", caption=())
    counts = {names: len(heads) for names, heads in combinations(tests.holds, tests.roles, COARSE_ROLES).items()}
    venn_svg(Overlaps(roles=COARSE_ROLES, combinations=counts), title="", caption=())
    tell(imported, {"texts": part.n_texts, "cells": int(tests.mean.size)})


def open_page(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as store:
        os.environ["ATTENTION_SIEVE_CACHE"] = store
        os.environ["ATTENTION_SIEVE_RESULTS"] = str(folder)
        from streamlit.testing.v1 import AppTest
        from streamlit.util import calc_hash

        from attention_sieve.dashboard import controls
        from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER

        imported = time.perf_counter(), time.process_time()
        at = AppTest.from_file(str(Path(controls.__file__).with_name("app.py")), default_timeout=120)
        at._page_hash = calc_hash("roles")
        for name, value in {"corpus": A_RESULTS_FOLDER, "results": folder.name}.items():
            at.query_params[name] = value
        at.run()
        if at.exception or at.error:
            sys.exit(f"The page failed: {[each.value for each in (*at.exception, *at.error)]}")
        tell(imported, {"said": max((each.value for each in at.markdown), key=lambda said: "texts" in said)})


def tell(imported: tuple[float, float], more: dict[str, object]) -> None:
    """Print wall-clock and processor seconds, to import and to open, and the peak memory so far."""
    opened = time.perf_counter(), time.process_time()
    told = {
        "to import": [after - before for before, after in zip(STARTED, imported, strict=True)],
        "to open": [after - before for before, after in zip(imported, opened, strict=True)],
        "peak": most_memory(),
        "heavy": [name for name in HEAVY if name in sys.modules],
    }
    print(json.dumps(told | more))


def most_memory() -> int:
    """Bytes of this process at most; not from `benchmarks.shared.memory`, which imports torch.

    Nor from `resource`, where it is at least that of the process that started this one.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    main()
