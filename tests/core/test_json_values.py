"""JSON that anybody may have written."""

from dataclasses import dataclass

import pytest

from attention_sieve.core.json_values import parse_json, typed_json


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


@dataclass(frozen=True)
class Part:
    name: str
    n_texts: int
    share: float = 0.5
    heads: tuple[tuple[int, int], ...] = ()


def test_a_declared_type_is_read():
    content = b'{"name": "a", "n_texts": 3, "heads": [[0, 1]], "unknown": NaN}'
    assert typed_json(content, Part) == Part("a", 3, heads=((0, 1),))
    assert typed_json('{"name": "a", "n_texts": 3, "share": 1}', Part).share == 1
    assert typed_json("[1, 2]", tuple[int, ...]) == (1, 2)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "Input should be an object"),
        ('{"name": "a"}', "^n_texts: Field required"),
        ('{"name": "a", "n_texts": "3"}', "^n_texts: Input should be a valid integer"),
        ('{"name": "a", "n_texts": true}', "^n_texts: Input should be a valid integer"),
        ('{"name": "a", "n_texts": 3.0}', "^n_texts: Input should be a valid integer"),
        ('{"name": "a", "n_texts": Infinity}', "^n_texts: Input should be a valid integer"),
        ('{"name": "a", "n_texts": 1e999}', "^n_texts: Input should be a valid integer"),
        ('{"name": "a", "n_texts": 3, "heads": [[0, 1], [2]]}', r"^heads\.1\.1: Field required"),
        ('{"name": null, "n_texts": 3}', "^name: Input should be a valid string"),
        ('{"name": "\\ud800", "n_texts": 3}', "^Invalid JSON: "),
        ('{"name": "\ud800", "n_texts": 3}', "unable to parse raw data as a unicode string"),
        (b"\xff", "^Invalid JSON: "),
        ('{"name": "a", "n_texts": ' + "9" * 5_000 + "}", "number out of range"),
        ("[" * 100_000, "recursion limit exceeded"),
        ('{"name": "a", "n_texts": 3, "unknown": ' + "[" * 100_000, "recursion limit exceeded"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_a_value_error_with_its_place(content, reason):
    with pytest.raises(ValueError, match=reason):
        typed_json(content, Part)
