"""Reading JSON from untrusted files: as it stands, as a value of a declared type, and value by value.

The functions that take a value say in their errors where it is missing or of the wrong type.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from attention_sieve.core.errors import TextError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Value = TypeVar("Value")
_NOT_A_CHARACTER = re.compile("[\0\ud800-\udfff]")


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON text.

    Raises: ValueError for content that is not JSON or not UTF-8, has a number of more than 4,300 digits, or is nested
        too deeply for Python's parser.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


@overload
def typed_json(content: str | bytes, kind: type[Value]) -> Value: ...
@overload
def typed_json(content: str | bytes, kind: Any) -> Any: ...
def typed_json(content: str | bytes, kind: Any) -> Any:
    """The value of a JSON text as a value of a declared type: a dataclass, a tuple, a number, and so on.

    Numbers, strings and booleans are not converted into each other. A field of a dataclass may be missing if it has a
    default; what is not one of its fields is ignored.

    Raises: ValueError as `parse_json`, for a string with a lone surrogate, and with the place of the first value of
        another type.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from None


def json_lines(path: Path) -> Iterator[Any]:
    """The values of the lines of a file, see `parse_json`; none if the file cannot be read.

    Lines that are not JSON are left out, and so is a last one without a line feed: a program that is ended may leave
    half a line.
    """
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return
    for line in lines:
        with suppress(ValueError):
            yield parse_json(line)


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # importing it takes as long as reading a hundred files

    return TypeAdapter(kind)


def value_at(item: Any, key: str, where: str) -> Any:
    """The value of an object under a key.

    Raises: TextError if the item is not an object, or lacks the key.
    """
    if not isinstance(item, dict):
        raise TextError(f'{where} is {kind_of(item)}. Write an object with the key "{key}".')
    if key not in item:
        raise TextError(f'{where} has no "{key}". Add it.')
    return item[key]


def as_list(value: Any, name: str, where: str, things: str = "") -> list[Any]:
    """Check that a value is a list; `things` says of what, for the message.

    Raises: TextError.
    """
    if not isinstance(value, list):
        raise TextError(f'{where}: "{name}" is {kind_of(value)}. Write a list{things and f" of {things}"}.')
    return value


def as_index(value: Any, name: str, where: str) -> int:
    """Check that a value is a non-negative whole number.

    Raises: TextError.
    """
    if not isinstance(value, float) or not value.is_integer() or value < 0:
        description = f"{value:g}" if isinstance(value, float) else kind_of(value)
        raise TextError(f'{where}: "{name}" is {description}. Write a whole number, counted from 0.')
    return int(value)


def as_name(value: Any, name: str, where: str) -> str:
    """A name as a string; numbers are allowed.

    Raises: TextError for code points that are not characters, such as lone surrogates, which cannot be written to
        tables.
    """
    text = str(value)
    if broken := _NOT_A_CHARACTER.search(text):
        raise TextError(
            f'{where}: "{name}" holds U+{ord(broken[0]):04X} at character {broken.start() + 1:,}, which is not a '
            "character of a text. Remove it."
        )
    return text


def check_as_many(values: Sequence[Any], others: Sequence[Any], names: tuple[str, str], where: str) -> None:
    """Check that two lists have the same length.

    Raises: TextError.
    """
    if len(values) != len(others):
        raise TextError(
            f"{where} has {len(values):,} {names[0]} and {len(others):,} {names[1]}. Give the same number of both."
        )


def whole_numbers(values: Any, key: str, what: str, howto: str) -> tuple[int, ...]:
    """A list of whole numbers.

    Raises: TextError; `what` and the position of one that is none begin the message, `howto` ends it.
    """
    where = what.split(":")[0]
    for position, value in enumerate(as_list(values, key, where, "whole numbers"), start=1):
        if not isinstance(value, float) or not value.is_integer():
            description = f"{value:g}" if isinstance(value, float) else kind_of(value)
            raise TextError(f"{what} {position:,} is {description}. {howto}")
    return tuple(map(int, values))


def span_of(value: Any, key: str, n_units: int, where: str, unit: str = "token") -> tuple[int, int]:
    """First and one-past-last token of a part of a text, or another unit.

    Raises: TextError that begins with `where`.
    """
    howto = f"Write two numbers: the position of its first {unit}, counted from 0, and the position after its last."
    span = whole_numbers(value, key, f'{where}: "{key}": number', howto)
    if len(span) != 2 or not 0 <= span[0] < span[1] <= n_units:
        raise TextError(f'{where}: "{key}" is {list(span)}, in a text of {n_units:,} {unit}s. {howto}')
    return span[0], span[1]


def kind_of(value: Any) -> str:
    """JSON type of a value, in words for messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", float: "a number"}
    return names.get(type(value), "null")
