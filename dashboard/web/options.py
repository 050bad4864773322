"""Reads Streamlit's options without its lock.

Each message to a browser reads one, and the threads of a class that answers at once would wait for each other so often
that this takes half of the processor's time. The options of Streamlit 1.67 are a dictionary that another one replaces
whole, so that a reader needs no lock. Where another version keeps them otherwise, its own way stays.
"""

from functools import wraps
from typing import Any, Final

from streamlit import config

_own: Final = config.get_option


@wraps(_own)
def _get_option(key: str) -> Any:
    option = (getattr(config, "_config_options", None) or {}).get(key)
    return _own(key) if option is None else option.value


def read_options_without_lock() -> None:
    """From now on, in this server."""
    config.get_option = _get_option
