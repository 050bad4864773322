"""Values in JSON as a reader wants them, or a sentence that says where they are not."""

import re
from collections.abc import Sequence
from typing import Any

from core.errors import TextError
from core.json_texts import kind_of

_NOT_A_CHARACTER = re.compile("[\0\ud800-\udfff]")


def value_at(item: Any, key: str, where: str) -> Any:
    """The value of an object under a key.

    Raises: TextError for what is no object, or has no such key.
    """
    if not isinstance(item, dict):
        raise TextError(f'{where} is {kind_of(item)}. Write an object with the key "{key}".')
    if key not in item:
        raise TextError(f'{where} has no "{key}". Add it.')
    return item[key]


def as_list(value: Any, name: str, where: str) -> list[Any]:
    """A list.

    Raises: TextError.
    """
    if not isinstance(value, list):
        raise TextError(f'{where}: "{name}" is {kind_of(value)}. Write a list.')
    return value


def as_place(value: Any, name: str, where: str) -> int:
    """A whole number that is not negative.

    Raises: TextError.
    """
    if not isinstance(value, float) or not value.is_integer() or value < 0:
        found = f"{value:g}" if isinstance(value, float) else kind_of(value)
        raise TextError(f'{where}: "{name}" is {found}. Write a whole number, counted from 0.')
    return int(value)


def as_name(value: Any, name: str, where: str) -> str:
    """What something is called, as it can be shown and written; a number too.

    Raises: TextError for what is no character, such as half of a surrogate pair, which no table can hold.
    """
    named = str(value)
    if broken := _NOT_A_CHARACTER.search(named):
        raise TextError(
            f'{where}: "{name}" holds U+{ord(broken[0]):04X} at character {broken.start() + 1:,}, which is no '
            "character of a text. Take it out."
        )
    return named


def check_as_many(values: Sequence[Any], of: Sequence[Any], names: tuple[str, str], where: str) -> None:
    """See that there are as many of one thing as of another.

    Raises: TextError.
    """
    if len(values) != len(of):
        raise TextError(f"{where} has {len(values):,} {names[0]} and {len(of):,} {names[1]}. Give as many of both.")
