"""Whatever stands in the place of a name, each command answers in one short line."""

import pytest
from command_help import commands as commands_of

import attention_sieve.__main__ as program

GIVEN = ("a b " * 5_000, "n" * 300)
USUAL = {
    "checkpoint": "bundled",
    "texts": "t.txt",
    "data": "t.txt",
    "table": "t.txt",
    "scores": "t.txt",
    "heads": "3-7",
}
OWN_COMMANDS = {"corpus", "store", "sample-tasks", "sample-checkpoint", "sample-decoder"}
"""The first two have commands of their own, the others ask for no names."""
CHARACTERS = {"punctuation"}
"""Options of which any value is one."""


@pytest.fixture(scope="module")
def commands():
    """The options of each command."""
    found = commands_of(program._parser())
    return {name: parser._actions for name, parser in found if name.split()[0] not in OWN_COMMANDS}


def takes_a_name(option):
    is_one = option.nargs != 0 and not option.choices and option.type not in (int, float)
    return is_one and option.dest not in CHARACTERS


def line(options, asked, given):
    """A call with what is required, and something else in one place."""
    for option in options:
        if option is asked or option.required:
            value = (
                given if option is asked else option.choices[0] if option.choices else USUAL.get(option.dest, "o.csv")
            )
            yield from (*option.option_strings[-1:], str(value))


def test_every_option_that_takes_a_name_refuses_a_very_long_one_in_a_short_line(
    commands, tmp_path, monkeypatch, capsys
):
    """One long name in every second option, many words in the others."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("One.\nTwo.\n")
    n_asked = 0
    for name, options in commands.items():
        for asked in filter(takes_a_name, options):
            try:
                code = program.main([name, *line(options, asked, GIVEN[n_asked % 2])])
            except SystemExit as end:
                code = end.code
            said = capsys.readouterr().err.strip().splitlines()
            assert code == 2, (name, asked.dest)
            assert len(said[-1]) < 500, (name, asked.dest)
            n_asked += 1
    assert n_asked > 90
    assert [path.name for path in tmp_path.iterdir()] == ["t.txt"]
