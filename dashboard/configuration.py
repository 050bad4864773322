"""The settings of Streamlit, in a file beside the script of the server, where every way to start one finds them."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from streamlit import config
from streamlit.config_option import ConfigOption

from attention_sieve.core.errors import AnalysisError

FILE: Final = Path(__file__).parent / ".streamlit" / "config.toml"


def stated_options(path: Path = FILE) -> dict[str, Any]:
    """The options in the file, by names such as `theme.light.primaryColor`.

    Raises: AnalysisError where it is missing or damaged.
    """
    try:
        return dict(_by_name(tomllib.loads(path.read_text("utf-8"))))
    except (OSError, ValueError) as error:
        raise AnalysisError(
            f"The dashboard does not start without its settings, and {path} cannot be read ({error}). Install "
            "attention-sieve again."
        ) from None


def _by_name(options: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, dict):
            yield from _by_name(value, f"{section}{name}.")
        else:
            yield section + name, value


def check_configuration() -> None:
    """Refuse a server for which Streamlit has not read the file: anybody could reach it under any name.

    Raises: AnalysisError.
    """
    lost = [name for name in stated_options() if config.get_where_defined(name) == ConfigOption.DEFAULT_DEFINITION]
    if lost:
        raise AnalysisError(
            f"The dashboard does not start without its settings, and {len(lost)} of them are not set, {lost[0]} first. "
            "Start it with attention-sieve, or with streamlit run."
        )
