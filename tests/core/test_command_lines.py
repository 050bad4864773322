"""A command line made of settings gives these settings."""

import argparse
import shlex
from dataclasses import replace
from typing import Literal, get_args, get_origin

import pytest

from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.command_lines import command_line, given_options, options_of, parts_of
from attention_sieve.core.options import add_settings_options, settings_of
from attention_sieve.core.relations.settings import AS_IN_CODE, AS_IN_PAPER
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings

USUAL = {analysis.name: analysis.settings for analysis in ANALYSES if options_of(analysis.settings)}
USUAL |= {"criterion": Criterion(), "scores": ScoreSettings()}


def other(hint, value):
    """Another value of an option."""
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return (value[0] - 1, value[1] + 2) if isinstance(value[0], int) else (".", "-", "'")
    return None if value is None else value / 2 if isinstance(value, float) else value + 1


def read_again(settings, usual):
    parser = argparse.ArgumentParser()
    add_settings_options(parser, usual)
    line = command_line(["roles", *given_options(settings, usual)])
    return settings_of(parser.parse_args(shlex.split(line)[2:]), usual)


@pytest.mark.parametrize("name", USUAL)
def test_the_options_of_a_command_line_are_the_settings_that_it_was_made_of(name):
    usual = USUAL[name]
    assert given_options(usual, usual) == []
    for option, (hint, _) in options_of(usual).items():
        changed = replace(usual, **{option: other(hint, getattr(usual, option))})
        assert read_again(changed, usual) == changed, option
    for part, settings in parts_of(usual).items():
        for option, (hint, _) in options_of(settings).items():
            changed = replace(usual, **{part: replace(settings, **{option: other(hint, getattr(settings, option))})})
            assert read_again(changed, usual) == changed, option


def test_the_evaluation_of_the_code_is_written_out():
    assert read_again(AS_IN_CODE, AS_IN_PAPER) == AS_IN_CODE
