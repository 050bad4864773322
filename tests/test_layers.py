import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for room in ("core", "cache", "dashboard") for path in (ROOT / room).rglob("*.py"))
TORCH_ROOMS = tuple(
    f"core/{name}.py"
    for name in (
        "attention",
        "attention_gradients",
        "coreference_observer",
        "divergence",
        "finetuning",
        "head_distances",
        "loading",
        "map_collector",
        "masks",
        "observers",
        "observing",
        "outputs",
        "parsing_observer",
        "probe_training",
        "scores",
        "self_check",
        "softmax_tap",
        "soundness",
        "surface_observer",
        "training_loop",
        "word_attention",
    )
)
"""The files that may import torch and transformers when they are imported themselves."""
TORCH_INSIDE_FUNCTIONS = (*TORCH_ROOMS, "core/checkpoints.py", "cache/memory.py")
HEAVY = {"torch", "transformers", "spacy"}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def packages(tree):
    """Top-level packages that a piece of code imports, inside functions too; not for the type checker alone."""
    found = set()
    for node in ast.walk(without_type_checking(tree)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            found.add(node.module.split(".")[0])
    return found


def without_type_checking(tree):
    class Stripped(ast.NodeTransformer):
        def visit_If(self, node):
            return node.orelse or ast.Pass() if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)

    return Stripped().visit(tree)


def when_imported(tree):
    """The same code without what runs only when a function is called."""

    class Stripped(ast.NodeTransformer):
        def visit_FunctionDef(self, node):
            return ast.Pass()

    return Stripped().visit(tree)


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def may_not_import(path):
    name = name_of(path)
    if name.startswith("core/"):
        return {"cache", "dashboard", "streamlit"}
    if name.startswith("cache/"):
        return {"dashboard", "streamlit"}
    return {"streamlit"} if name.startswith("dashboard/figures/") else set()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_room_imports_only_rooms_below_it(path):
    assert not packages(parsed(path)) & may_not_import(path)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_torch_is_imported_only_in_its_rooms(path):
    name = name_of(path)
    if name not in TORCH_INSIDE_FUNCTIONS:
        assert not packages(parsed(path)) & {"torch", "transformers"}
    if name not in TORCH_ROOMS:
        assert not packages(when_imported(parsed(path))) & HEAVY


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import cache.store", {"cache"}),
        ("from dashboard.state import x", {"dashboard"}),
        ("def f():\n    import streamlit as st", {"streamlit"}),
        ("if TYPE_CHECKING:\n    import torch", set()),
        ("if TYPE_CHECKING:\n    import torch\nelse:\n    import numpy", {"numpy"}),
        ("class A:\n    def f(self):\n        from cache import keys", {"cache"}),
    ],
)
def test_the_reader_of_imports_sees_them_wherever_they_stand(code, expected):
    assert packages(ast.parse(code)) == expected


def test_the_reader_of_imports_tells_what_runs_at_once():
    code = "import numpy\nclass A:\n    import scipy\n    def f(self):\n        import torch\n"
    code += "try:\n    import spacy\nfinally:\n    pass"
    assert packages(when_imported(ast.parse(code))) == {"numpy", "scipy", "spacy"}


LIGHT = (
    "analysis", "checkpoints", "errors", "frames", "hypotheses", "measures", "parses", "passes", "roles", "sieves",
    "tables", "texts", "tokens", "__main__",
)  # fmt: skip


def light_modules():
    """All of core but its torch rooms, and all of cache, so that a new file is held to the same."""
    core = [path for path in FILES if name_of(path).startswith(("core/", "cache/")) and path.name != "__init__.py"]
    return [name_of(path)[:-3].replace("/", ".") for path in core if name_of(path) not in TORCH_ROOMS]


def test_every_light_module_is_there():
    assert {f"core.{name}" for name in LIGHT} | {"cache.inference", "cache.keys", "cache.store"} <= set(light_modules())


def test_importing_what_the_page_needs_loads_no_model_library():
    imports = "".join(f"import {module}\n" for module in light_modules())
    report = f"import sys\n{imports}print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", report], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
