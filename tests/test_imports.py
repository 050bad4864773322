"""What loading a page costs, and under which names. Which way imports may run stands in pyproject.toml, and
lint-imports checks it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("core", "cache", "dashboard")
SCRIPTS = {"dashboard/app.py", "dashboard/components/venn/make_regions.py"}
"""Draw or write something when they are imported, which takes a browser's session or shapely."""
SLOW = {"torch", "transformers", "spacy", "altair", "statsmodels", "sklearn", "scipy.stats", "vl_convert"}
"""Each takes between 0.3 and 6 seconds to import; they are imported where they are used. Streamlit itself
imports plotly."""
FIRST = (
    "attention_sieve.dashboard.controls",
    "attention_sieve.dashboard.components.first_screen",
    "attention_sieve.dashboard.views.inspect.page",
)
"""What the first grid waits for."""
LESSONS = ("course", "panel", "plans", "tally")
"""What lessons alone need; the riddle takes its words, in the reader's language, from `content`, too."""


def page_modules():
    """All of cache and dashboard, so that a new file is held to the same."""
    files = [path.relative_to(ROOT) for room in ("cache", "dashboard") for path in sorted((ROOT / room).rglob("*.py"))]
    return [
        ".".join(("attention_sieve", *(path.parent if path.name == "__init__.py" else path.with_suffix("")).parts))
        for path in files
        if path.as_posix() not in SCRIPTS
    ]


FIRST_VIEWS = """
import numpy as np

from attention_sieve.dashboard.components.arcs import attention_arcs
from attention_sieve.dashboard.components.arcs.look import ArcSettings
from attention_sieve.dashboard.components.grid import role_grid
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps
from attention_sieve.dashboard.figures.text.arcs import Side

scores = np.array([[[2.0, 4.0]]])
grid = RoleGrid(roles=["local"], scores=scores, holds=scores > 3, tau=3.0, label="Roles")
role_grid(grid, Selection("grid", [(0, 0)]))
side = Side(tokens=["a", "b"], special=np.zeros(2, bool), segments=np.zeros(2, int), words=np.arange(2))
even = np.full((1, 2, 2), 0.5)
maps = AttentionMaps(queries=side, keys=side, heads=[(0, 0)], attention=even, label="Attention")
attention_arcs(maps, Selection("arcs", ArcSettings()))
"""
DRAW = f"""
from streamlit.testing.v1 import AppTest

app = AppTest.from_string({FIRST_VIEWS!r}).run()
assert not app.exception and len(app.get("bidi_component")) == 2, app.exception
"""


SIMILAR = "attention_sieve.dashboard.views.similarity.page"
STAGES = {
    "server": ("attention_sieve.dashboard.server",),
    "first grid": FIRST,
    "first drawing": DRAW,
    "pages": [module for module in page_modules() if module.endswith(".page") and module != SIMILAR],
    "all": page_modules(),
}
"""What one process imports or runs after the other, the least first."""


@pytest.fixture(scope="module")
def loaded():
    """loaded[stage] -> the modules that a process has loaded after it and those before."""
    code = [
        stage if isinstance(stage, str) else "\n".join(f"import {module}" for module in stage)
        for stage in STAGES.values()
    ]
    script = "import sys\n" + "".join(f"{each}\nprint(*sys.modules)\n" for each in code)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return {stage: set(names.split()) for stage, names in zip(STAGES, done.stdout.splitlines(), strict=True)}


def test_the_server_listens_before_it_loads_numpy(loaded):
    assert loaded["server"] & {*SLOW, "numpy", "attention_sieve.cache.store.store"} == set()


def test_what_the_first_grid_waits_for_loads_no_tables_no_sentences_of_heads_and_no_lessons(loaded):
    lessons = (f"attention_sieve.dashboard.views.lessons.{name}" for name in LESSONS)
    sentences = {"attention_sieve.core.descriptions", "attention_sieve.dashboard.views.inspect.notes"}
    assert loaded["first grid"] & {*SLOW, "pandas", "scipy", "pyarrow", *sentences, *lessons} == set()


def test_drawing_the_first_grid_and_its_arcs_loads_no_pandas(loaded):
    assert loaded["first drawing"] & {"pandas", "pyarrow"} == set()


def test_opening_a_page_loads_scipy_for_similar_heads_alone(loaded):
    assert "scipy" not in loaded["pages"]
    assert {SIMILAR, "scipy"} <= loaded["all"]


def test_loading_the_pages_imports_no_slow_library(loaded):
    assert loaded["all"] & SLOW == set()


def test_every_module_has_one_name_which_begins_with_attention_sieve():
    """As it is imported; `import core` would run a module a second time, with classes and memories of its own."""
    others = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in imported(node)
        if name.partition(".")[0] in ROOMS
    ]
    assert others == []


def imported(node):
    """Names of the modules that a statement imports from."""
    if isinstance(node, ast.ImportFrom):
        return [node.module]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
