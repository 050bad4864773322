"""The pictures of README.md and dashboard/README.md, taken anew by `make pictures`; not part of the suite."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import expect
from steps import settle

# The picture shows where results are kept: as on anybody's machine, in the home folder.
HOME = Path(tempfile.mkdtemp())
PICTURES = Path(__file__).parents[2] / "dashboard" / "pictures"
SHOTS = (
    ("inspect-light", "/?head=1-8%2C0-2&sieve=syntactic", "light", 1320),
    ("off-light", "/?head=1-8&off=0-2%2C1-4", "light", 1480),
    ("surface-light", "/surface?head=0-2", "light", 1090),
    ("grammar-light", "/grammar", "light", 1530),
    ("similarity-light", "/similarity?head=5-3", "light", 1590),
    ("compare-light", "/compare?with=movie-reviews", "light", 2000),
    ("importance-light", "/importance", "light", 1000),
    ("knowledge-light", "/knowledge?sample+task=tense", "light", 1000),
    ("roles-dark", "/roles?head=1-8", "dark", 950),
)
PROBED = ("tense", "subject_number", "object_number", "coordination_inversion")
"""Sample tasks that the page Knowledge has results of."""


@pytest.fixture(scope="session")
def store_folder():
    os.environ["HOME"] = str(HOME)
    folder = HOME / ".cache" / "attention-sieve"
    environment = {**os.environ, "ATTENTION_SIEVE_CACHE": str(folder)}
    table = Path(tempfile.mkdtemp()) / "trials.csv"
    files = [folder / "tasks" / "movie-snippets" / f"{task}.txt" for task in PROBED]
    rows = [f"bundled,{path},{seed},skip" for path in files for seed in ("", 0)]
    table.write_text("\n".join(["checkpoint,data,random_weights,too_long", *rows]))
    probing = ["trials", f"--table={table}", "--stages=heads"]
    commands = [["attention_sieve", *command] for command in (["sample-checkpoint"], ["sample-tasks"], probing)]
    for module in (["attention_sieve.dashboard.prepare"], *commands):
        subprocess.run([sys.executable, "-m", *module], cwd=PICTURES.parents[1], env=environment, check=True)
    return folder


@pytest.mark.parametrize(("name", "path", "colours", "height"), SHOTS)
def test_take_picture(visit, name, path, colours, height):
    page = visit(path, colours, width=1440, height=height)
    expect(page.locator(":is([role=grid], [data-testid=stVegaLiteChart]):visible").last).to_be_visible()
    settle(page)
    page.mouse.move(1430, 5)
    page.evaluate("document.fonts.ready")
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")
