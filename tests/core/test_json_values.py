"""JSON that anybody may have written."""

import pytest

from core.json_values import parse_json


@pytest.mark.parametrize("content", ['{"a": [1, null]}', b'{"a": [1, null]}'])
def test_sound_json_is_read(content):
    assert parse_json(content) == {"a": [1, None]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        (b"\xff", "decode"),
        ("9" * 5_000, "digits"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_all_else_is_a_value_error(content, reason):
    with pytest.raises(ValueError, match=reason):
        parse_json(content)
