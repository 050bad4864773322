"""The help of every command: each option says what it is and its default, and each line is plain English."""

import argparse
import re

import pytest
from command_help import commands

from attention_sieve.__main__ import _parser

FRAGMENT = re.compile(r"(of|as|by|for|in|to|with|from|on|at|also|else|joins)\b|\W")
"""How a sentence cannot begin whose subject is missing: with a preposition, or with a sign such as the dot of .csv."""


COMMANDS = dict(commands(_parser()))
WITHOUT_OPTIONS = ("sample-tasks", "sample-decoder", "store stats", "store verify")


def summaries(parser):
    """The line of each command in the list of the program, or of `corpus`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from ((choice.dest, choice.help) for choice in action._choices_actions)
            for subparser in action.choices.values():
                yield from summaries(subparser)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_is_and_its_default(command):
    options = [option for option in COMMANDS[command]._actions if option.dest != "help"]
    assert options or command in WITHOUT_OPTIONS
    for option in options:
        name = f"{command} {option.option_strings or option.dest}"
        assert option.help, f"{name} has no help"
        shown = option.help % vars(option)
        assert not FRAGMENT.match(shown), f"{name} begins in the middle: {shown}"
        assert not shown.endswith("."), f"{name} ends with a full stop: {shown}"
        if option.default not in (None, False, True, []):
            default = ",".join(map(str, option.default)) if isinstance(option.default, tuple) else option.default
            assert f"default: {default}" in shown, f"{name} does not say that its default is {default}: {shown}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_is_written_in_any_format_and_its_columns_are_listed(command):
    parser = COMMANDS[command]
    outputs = [action for action in parser._actions if action.dest == "output" and "file to write" in action.help]
    if all(".parquet" not in action.help for action in outputs):
        return
    assert all(".parquet, .csv" in action.help for action in outputs)
    assert re.search(r"^Columns( of [^:]+)?:$", parser.format_help(), re.MULTILINE), f"{command} lists no columns"


def test_every_command_has_a_summary_that_begins_with_a_verb():
    for name, summary in summaries(_parser()):
        assert re.match(r"[a-z]+(-[a-z]+)?,? ", summary), name
        assert not re.match(r"(what|whether|how|of|the|a)\b", summary), f"{name}: {summary}"


def test_help_keeps_the_list_of_columns():
    """Each column on lines of its own, whatever the width of the terminal."""
    described = COMMANDS["compare"].description.splitlines()
    columns = [line.split(":")[0].strip() for line in described if re.match(r" {4}\S", line)]
    shown = COMMANDS["compare"].format_help().splitlines()
    assert columns
    assert all(any(line.startswith(f"  {names}: ") for line in shown) for names in columns)
