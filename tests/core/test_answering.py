"""The way through an analysis, on the only one there is, and options made of its settings."""

import argparse
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Literal

import numpy as np
import pytest

from attention_sieve.core.answering import Reading, find, find_in
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError, TextTooLong
from attention_sieve.core.options import add_settings_options, settings_of
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import TextPredictions, relation_accuracies
from attention_sieve.core.relations.observer import predictions
from attention_sieve.core.relations.settings import RelationSettings
from attention_sieve.core.texts.relations import dependencies
from attention_sieve.core.texts.text import Text, read_typed

TEXTS = read_typed("The black cat sat on the red mat.\nShe eats red apples ||| A dog quickly ran.\nWho ran?")
LONG = Text(("she ate apples " * 30,))
ALL_CASES = RelationSettings(least_cases=1, from_word="first", reading="row")


def test_a_finding_is_that_of_pass_trees_and_judgement_one_by_one(loaded):
    checkpoint, settings = loaded("bert"), PassSettings(off=((0, 1),))
    prepared, _ = prepare_all(checkpoint, TEXTS, settings, "error")
    trees = list(dependencies(TEXTS))
    work = predictions(checkpoint, list(prepared.values()), trees, settings, from_word="first")
    by_text = dict(chain.from_iterable(work))
    expected = relation_accuracies(
        [TextPredictions.of(tree, by_text[row]) for row, tree in enumerate(trees)], ALL_CASES
    )
    found = find(RELATION_ANALYSIS, checkpoint, TEXTS, ALL_CASES, settings)
    assert [one.relation for one in found.accuracies] == [one.relation for one in expected]
    for one, other in zip(found.accuracies, expected, strict=True):
        np.testing.assert_allclose(one.accuracy, other.accuracy, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(one.p_values, other.p_values, rtol=1e-5, atol=1e-6)


def test_only_prepared_texts_are_read_and_each_stage_is_watched(loaded):
    checkpoint, seen = loaded("bert"), []

    def watch(work, n_texts, doing=None):
        seen.append((n_texts, doing))
        return chain.from_iterable(work)

    texts = (TEXTS[0], LONG, TEXTS[2])
    prepared, _ = prepare_all(checkpoint, texts, PassSettings(), "skip")
    reading = Reading(checkpoint=checkpoint, pass_settings=PassSettings(), inputs=texts, prepared=prepared)
    found = find_in(RELATION_ANALYSIS, reading, ALL_CASES, watch)
    assert [item.text for item in found.items] == [TEXTS[0], TEXTS[2]]
    assert seen == [(2, "parsing"), (2, None)]
    with pytest.raises(TextTooLong, match="Text 2"):
        find(RELATION_ANALYSIS, checkpoint, texts, ALL_CASES)


def test_an_attention_without_trees_is_refused_before_a_text_is_read(loaded):
    with pytest.raises(AnalysisError, match="Cross-attention is between two texts"):
        find(RELATION_ANALYSIS, loaded("t5"), [LONG], ALL_CASES, PassSettings("cross"))


@dataclass(frozen=True)
class Within:
    ddof: Annotated[Literal[1, 0], "a number of a few"] = 1
    weighs: Annotated[bool, "leave the weight out"] = True


@dataclass(frozen=True)
class Settings:
    number: Annotated[float, "a number"] = 0.5
    count: Annotated[int | None, "a count"] = 3
    word: Annotated[Literal["a", "b"], "a word"] = "a"
    is_on: Annotated[bool, "a switch"] = False
    ends: Annotated[tuple[int, int], "a range"] = (-5, 5)
    within: Within = Within()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], Settings()),
        (["--number", "2", "--count", "7"], Settings(number=2.0, count=7)),
        (["--word", "b", "--is-on", "--ends", "-1", "4"], Settings(word="b", is_on=True, ends=(-1, 4))),
        (["--no-weighs", "--ddof", "0"], Settings(within=Within(ddof=0, weighs=False))),
    ],
)
def test_every_field_is_an_option(options, expected):
    parser = argparse.ArgumentParser()
    add_settings_options(parser, Settings())
    settings = settings_of(parser.parse_args(options), Settings())
    assert settings == expected
    assert hash(settings) == hash(expected)


def test_an_option_that_is_not_given_leaves_what_stands_elsewhere():
    parser = argparse.ArgumentParser()
    add_settings_options(parser, Settings())
    usual = Settings(number=9.0, word="b", is_on=True)
    assert settings_of(parser.parse_args(["--word", "a"]), usual) == Settings(number=9.0, word="a", is_on=True)


@pytest.mark.parametrize(
    "options", [["--count", "2.5"], ["--word", "c"], ["--ends", "1"], ["--number", "x"], ["--ddof", "2"]]
)
def test_a_value_of_another_kind_is_refused(options, capsys):
    parser = argparse.ArgumentParser()
    add_settings_options(parser, Settings())
    with pytest.raises(SystemExit):
        parser.parse_args(options)
    assert options[0] in capsys.readouterr().err


def test_the_help_says_the_sentence_and_the_default():
    parser = argparse.ArgumentParser()
    add_settings_options(parser, Settings())
    shown = " ".join(parser.format_help().split())
    assert all(sentence in shown for sentence in ("a number; default: 0.5", "a switch", "a range; default: -5 5"))


def test_facts_name_the_settings_and_no_column(loaded):
    facts = RELATION_ANALYSIS.facts(find(RELATION_ANALYSIS, loaded("bert"), TEXTS, ALL_CASES), ALL_CASES)
    told = {"from word": "first", "reading": "row", "least cases": "1", "documents known": "none"}
    assert facts.items() >= told.items()
    assert not facts.keys() & RELATION_ANALYSIS.columns.keys()
