"""Attention Sieve: what each attention head of a transformer looks at, and which roles it has.

`core` analyses, `cache` stores what was computed and serves it to several readers, `dashboard` shows it. The three are
folders of the project, to which this one links, so that nothing but `attention_sieve` has a name of its own for Python.
"""

from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
"""The folder from which Python imports this package; of a clone, the project's."""


def __getattr__(name: str) -> Any:
    """The version, which is looked up when it is asked for: that of a clone, or else of the installed package."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if Path(__file__).with_name("core").resolve() == ROOT.resolve() / "core":  # a link, as only clones have them
        import tomllib

        return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    from importlib.metadata import version

    return version("attention-sieve")
