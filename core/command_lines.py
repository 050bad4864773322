"""Settings as the options of a command: what they are called, and a command line that gives them."""

import shlex
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints


def parts_of(settings: Any) -> dict[str, Any]:
    """Settings within some settings, by the name of their field."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return {name: value for name, value in values.items() if is_dataclass(value)}


def options_of(settings: Any) -> dict[str, tuple[Any, str]]:
    """Kind and sentence of each field that is an option, by its name; without the settings within."""
    hints = get_type_hints(type(settings), include_extras=True)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Annotated}


def given_options(settings: Any, usual: Any) -> list[str]:
    """The options that `attention_sieve.core.options.add_settings_options` adds, as a command line gives them where a
    value is not the usual one."""
    given: list[str] = []
    for name in options_of(usual):
        value, default = getattr(settings, name), getattr(usual, name)
        flag = f"--{'no-' if default is True else ''}{name.replace('_', '-')}"
        if value == default or value is None:
            continue
        if isinstance(default, bool):
            given.append(flag)
        elif isinstance(value, tuple) and all(isinstance(item, str) for item in value):
            given.append(f"{flag}={''.join(value)}")
        elif isinstance(value, tuple):
            given += [flag, *map(str, value)]
        else:
            given.append(f"{flag}={value}")
    for name, part in parts_of(usual).items():
        given += given_options(getattr(settings, name), part)
    return given


def command_line(arguments: Sequence[str]) -> str:
    """A call of the program, quoted for a shell."""
    return shlex.join(["attention-sieve", *arguments])
