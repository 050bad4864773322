"""Attention Sieve: what each attention head of a transformer looks at, and which roles it has.

`core` analyses, `cache` stores what was computed and serves it to several readers, `dashboard` shows it. The three are
folders of the project, to which this one links, so that nothing but `attention_sieve` has a name of its own for Python.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
"""The folder from which Python imports this package; of a clone, the project's."""

_CALLS: Final = ("Attention", "Finding", "attention", "card", "claim", "compare", "load", "save_page", "show")
"""Beside those of analyses."""
_MODULES: Final = ("cache", "calls", "commands", "core", "dashboard")
"""Names that Python asks for before it imports them."""


def __getattr__(name: str) -> Any:
    """The version and the calls, which are looked up, and import torch, when they are asked for."""
    if name == "__version__":
        return _version()
    if name == "__all__":
        return ["ROOT", "__version__", *_CALLS, *_analyses()]
    if name.startswith("_") or name in _MODULES or name not in (*_CALLS, *_analyses()):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    calls = import_module("attention_sieve.calls")
    call = getattr(calls, name) if name in _CALLS else calls.call_of(calls.CALLS[name])
    globals()[name] = call  # the same function each time
    return call


def __dir__() -> list[str]:
    return sorted({*globals(), "__version__", *_CALLS, *_analyses()})


def _analyses() -> list[str]:
    """Names of the calls of analyses. By name: the rooms, which import this package, know no calls."""
    return [*(analysis.name for analysis in import_module("attention_sieve.core.analysis").ANALYSES), "scores"]


def _version() -> str:
    """That of a clone, or else of the installed package."""
    if Path(__file__).with_name("core").resolve() == ROOT.resolve() / "core":  # a link, as only clones have them
        import tomllib

        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        return str(project["version"])
    from importlib.metadata import version

    return version("attention-sieve")
