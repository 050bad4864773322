"""Reading JSON from untrusted files: as it stands, or as a value of a declared type."""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Value = TypeVar("Value")


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON text.

    Args:
        content: the text, or its bytes in UTF-8.

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

    Args:
        content: the text, or its bytes in UTF-8.
        kind: the type.

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
