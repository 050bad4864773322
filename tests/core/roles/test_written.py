"""Roles that a reader writes: the built-in ones in the language of rules, each condition by hand, and bad input."""

import re
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from passing import pass_texts

import attention_sieve
from attention_sieve.__main__ import main
from attention_sieve.core.analysis import results
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import with_relations
from attention_sieve.core.pauses import pausing
from attention_sieve.core.roles.measures import RoleSet, ScoreSettings, role_scores
from attention_sieve.core.roles.question import scores_question
from attention_sieve.core.roles.roles import BY_NAME, known_roles, role_named, role_title
from attention_sieve.core.roles.rules import (
    PREFIX,
    READERS,
    Relative,
    file_help,
    read_role,
    table_of,
    toml_of,
    written_role,
)
from attention_sieve.core.roles.sieves import sieve_cells
from attention_sieve.core.texts.relations import parse
from attention_sieve.core.texts.text import Text, read_file

TEXTS = (
    Text(("The black cat saw the small dog and the cat ate it quickly.",)),
    Text(("Who sat on the mat?", "The two dogs do not eat it on the mat.")),
    Text(("Eat!",)),
)
HEAD = 'role = 1\nname = "mine"\nletter = "G"\ncolour = "#AA3377"\n'
BUILT_IN = {
    "local": "[to]\noffset = [-2, 2]",
    "syntactic": '[to]\nrelative = "head"\nrelations = ["nsubj", "dobj", "amod", "advmod"]',
    "delimiter": '[to]\nkinds = ["start", "separator"]',
    "block": 'weight = "entropy"\n[to]\nrelative = "own segment"',
    "previous": "[to]\noffset = -1",
    "duplicate": '[to]\nrelative = "earlier copy"',
    "induction": '[to]\nrelative = "after earlier copy"',
}
"""The same sieves, as a reader would write them."""


def written(conditions):
    return read_role(HEAD + conditions).id


def scores(checkpoint, role, scale):
    measured = results(checkpoint, scores_question((role,)), TEXTS)
    return role_scores(measured, ScoreSettings(roles=(role,), scale=scale))


@pytest.mark.parametrize("role", BUILT_IN)
def test_a_built_in_role_scores_the_same_as_written_in_the_language_of_rules(role, loaded):
    checkpoint = loaded("gpt2" if role == "induction" else "bert", "float64")
    for scale in ("score", "share"):
        expected, found = (scores(checkpoint, each, scale) for each in (role, written(BUILT_IN[role])))
        assert np.isfinite(expected.scores).any()
        for array in ("scores", "uniform", "greatest"):
            np.testing.assert_allclose(
                getattr(found, array), getattr(expected, array), rtol=1e-6, atol=1e-6, err_msg=array
            )


VERB = '{RIGHT_ID = "v", RIGHT_ATTRS = {POS = "VERB"}}'
SUBJECT = 'LEFT_ID = "v", REL_OP = ">", RIGHT_ATTRS = {DEP = "nsubj"}'
PAIR = Text(('Mary (22) saw "Paris", which she loves.', "The cats love [the (old) cat] in Paris."))


@pytest.mark.parametrize(
    ("conditions", "queries", "keys"),
    [
        ('[to]\nwords = ["WHICH", "she"]', None, "which she"),
        ('[from]\nkinds = ["digits"]\n[to]\nkinds = ["capitalised"]', "22", "mary paris the paris"),
        ('[from]\nkinds = "last of segment"\n[to]\nkinds = "first of segment"', ". .", "mary the"),
        ('[from]\nwords = "she"\n[to]\nkinds = "punctuation"', "she", '( ) " " , . [ ( ) ] .'),
        ('[from]\nwords = "she"\n[to]\npattern = [{TAG = {REGEX = "^V"}}]', "she", "saw loves love"),
        ('[from]\nwords = "she"\n[to]\npattern = [{POS = "ADJ", OP = "?"}, {LEMMA = "cat"}]', "she", "cats cat"),
        ('[from]\nwords = "she"\n[to]\nentities = "GPE"', "she", "paris paris"),
        (f'[from]\nwords = "she"\n[to]\ntree = [{VERB}, {{{SUBJECT}, RIGHT_ID = "s"}}]', "she", "saw loves love"),
        (f'[to]\ntree = [{VERB}, {{{SUBJECT}, RIGHT_ID = "from"}}]', "mary she cats", "saw loves love"),
        (f'[from]\nwords = "she"\n[to]\ntree = [{VERB}, {{{SUBJECT}, RIGHT_ID = "from"}}]', "she", "loves"),
        ('[from]\nwords = "she"\n[to]\ndependent_of = "nsubj"', "she", "mary she cats"),
        ('[from]\nwords = "cat"\n[to]\nrelative = "same lemma"', "cat", "cats"),
        ('[from]\nwords = "paris"\n[to]\nrelative = "other segment"\nkinds = "digits"', "paris", "22"),
        ('[from]\nkinds = "punctuation"\n[to]\nrelative = "opening bracket"\nwords = "["', "]", "["),
        ('[from]\npositions = -1\n[to]\noffset = [-3, -1]\nwords = ["paris", "in"]', "[SEP]", "in paris"),
        ('[to]\nrelative = "dependent"\nrelations = "prep"', "cat", "in"),
    ],
)
def test_conditions_pick_the_tokens_that_they_name(conditions, queries, keys, bundled):
    role = role_named(written(conditions))
    (text,) = with_relations(pass_texts(bundled, [PAIR]), [PAIR], role.wanted, noted=True)
    cells, tokens = sieve_cells(role.name, text, False), text.queries.tokens
    shown = [" ".join(tokens[at] for at in np.flatnonzero(cells.any(axis=axis))) for axis in (1, 0)]
    assert shown == [" ".join(tokens) if queries is None else queries, keys]


def test_an_antecedent_is_what_a_file_marks_and_all_that_this_one_refers_to(bundled, tmp_path):
    clusters = '{"text": "Ann saw Bo, and she said that her dog is old.", "clusters": [[[0, 3], [16, 19], [30, 33]]]}'
    (tmp_path / "a.json").write_text(clusters)
    main(["pairs", "antecedents", str(tmp_path / "a.json"), "--output", str(tmp_path / "pairs.jsonl")])
    (text,) = read_file("pairs.jsonl", (tmp_path / "pairs.jsonl").read_bytes())
    role = role_named(written('[to]\nrelative = "antecedent"'))
    (prepared,) = with_relations(pass_texts(bundled, [text]), [text], role.wanted, noted=True)
    cells, tokens = sieve_cells(role.name, prepared, False), prepared.queries.tokens
    assert {tokens[query]: [tokens[key] for key in np.flatnonzero(row)] for query, row in enumerate(cells)} == {
        **{token: [] for token in tokens},
        "she": ["ann"],
        "her": ["ann", "she"],
    }
    marked, unmarked = (scores_question((role.name,)).depends_on(each) for each in (text, Text(text.segments)))
    assert marked != unmarked
    assert scores_question(("local",)).depends_on(text) == scores_question(("local",)).depends_on(Text(text.segments))


@pytest.mark.parametrize("conditions", [*BUILT_IN.values(), f"[to]\ntree = [{VERB}]", '[to]\nrelative = "antecedent"'])
def test_a_role_survives_its_file_and_its_link(conditions):
    role = read_role(HEAD + conditions)
    assert read_role(toml_of(table_of(role))) == written_role(role.id) == role


def test_kept_scores_are_known_by_the_rule_alone():
    of_name = [HEAD, HEAD.replace("mine", "yours").replace('"G"', '"H"').replace("AA", "BB")]
    keys = [scores_question((read_role(head + BUILT_IN["previous"]).id,)).depends_on(TEXTS[0]) for head in of_name]
    assert keys[0] == keys[1]
    assert keys[0]["roles"] == {'{"role":1,"to":{"offset":-1}}': 1}
    assert "parser" not in keys[0]
    assert keys[0] != scores_question((written("[to]\noffset = -2"),)).depends_on(TEXTS[0])


def test_written_roles_follow_the_built_in_ones_and_are_called_differently():
    mine = written("[to]\noffset = -1")
    assert known_roles((mine, "local")) == ("local", mine)
    assert [role_title(name) for name in ("local", mine)] == ["local", "mine"]
    with pytest.raises(AnalysisError, match="There are two roles that are called 'mine'"):
        known_roles((mine, written("[to]\noffset = -2")))
    assert RoleSet((*BY_NAME, mine)).wanted == RoleSet(("syntactic",)).wanted


def tree(*second):
    named = ", ".join(part for part in second if not part.startswith("OP"))
    attributes = ", ".join(part for part in second if part.startswith("OP"))
    return f'[to]\ntree = [{VERB}, {{{named}, RIGHT_ID = "s", RIGHT_ATTRS = {{{attributes}}}}}]'


def as_toml(expression):
    return f"{{REGEX = '{expression}'}}"


def expression(written_so):
    return f"{HEAD}[to]\npattern = [{{TAG = {as_toml(written_so)}}}]"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("role = ", "The role is not TOML: Invalid value (at end of document)."),
        ("role = 2", "The role says role = 2. Versions of the language that are read: role = 1."),
        ('name = "x"', "The role does not say its version."),
        ("role = 1\nrule = 2", "The role has 'rule', which is not known. Known: role, name, letter"),
        (HEAD.replace("G", "GG"), "letter is 'GG'. Write one letter from A to Z, or a digit."),
        (HEAD, "to: no condition says at which tokens a head looks."),
        (HEAD + "[to]\nkinds = []", "to.kinds has 0 values. Give 1 to 100."),
        (HEAD + '[to]\nkinds = "noun"', "to.kinds is 'noun'. Choose one of: punctuation, digits"),
        (HEAD + "[from]\noffset = 1\n[to]\noffset = 1", "from has 'offset', which is not known."),
        (HEAD + "[to]\noffset = [2, 1]", r"to.offset is [2, 1]. Write a number of tokens such as -1"),
        (HEAD + "[to]\noffset = [0, 100]", "to.offset spans 101 tokens. Leave at most 64."),
        (HEAD + '[to]\nwords = "two words"', "to.words has 'two words', which is not one word."),
        (HEAD + '[to]\npattern = [{TAG = "V", OP = "*"}]', "to.pattern, word 1: OP is '*'."),
        (HEAD + '[to]\npattern = [{OP = "{0,9}"}]', "to.pattern: the pattern matches up to 9 words, of which 9 may"),
        (HEAD + '[to]\npattern = [{MORPH = "x"}]', "to.pattern, word 1: there is no attribute 'MORPH'."),
        (HEAD + '[to]\npattern = [{TAG = {REGEX = "("}}]', "to.pattern, word 1: '(' is no regular expression"),
        (expression("(?R)*"), "to.pattern, word 1: '(?R)*' is no regular expression: unknown extension ?R"),
        (expression("(a)(?1)*"), "to.pattern, word 1: '(a)(?1)*' is no regular expression: unknown extension ?1"),
        (expression("(?x)( ?R)"), "to.pattern, word 1: '(?x)( ?R)' is no regular expression"),
        (expression("((a{99}){11})"), "to.pattern, word 1: '((a{99}){11})' repeats a part at least 1,089 times."),
        (HEAD + "[to]\npattern = [{LENGTH = true}]", "to.pattern, word 1: LENGTH takes a number"),
        (HEAD + "[to]\ntree = []", "to.tree: a pattern of trees is a list of 1 to 8 tables, one for each word"),
        (HEAD + '[to]\ntree = [{RIGHT_ID = "v"}]', "to.tree, word 1: write a table with RIGHT_ID, RIGHT_ATTRS, and"),
        (HEAD + f"[to]\ntree = [{VERB}, {VERB}]", "to.tree, word 2: write a table with RIGHT_ID, RIGHT_ATTRS, LEFT_ID"),
        (HEAD + f'[to]\ntree = [{VERB}, {{{SUBJECT}, RIGHT_ID = "v"}}]', "to.tree, word 2: RIGHT_ID is 'v'."),
        (HEAD + tree('LEFT_ID = "x"', 'REL_OP = ">"'), "to.tree, word 2: LEFT_ID is 'x'. Name an earlier word: 'v'."),
        (HEAD + tree('LEFT_ID = "v"', 'REL_OP = "#"'), "to.tree, word 2: REL_OP is '#'. Choose one of: <, >, <<,"),
        (HEAD + tree('LEFT_ID = "v"', 'REL_OP = ">"', 'OP = "?"'), "to.tree, word 2: there is no attribute 'OP'."),
        (HEAD + f'[to]\noffset = 1\ntree = [{VERB}, {{{SUBJECT}, RIGHT_ID = "from"}}]', "to: offset and the word from"),
        ('weight = "entropy"\n' + HEAD + "[to]\noffset = 1", "weight: entropy is for sets of tokens"),
        (HEAD + f'[to]\nwords = {["x" * 40] * 99}', "The role has more than 2,000 bytes."),
    ],
)  # fmt: skip
def test_a_bad_file_gets_a_sentence_with_the_place(content, message):
    with pytest.raises(AnalysisError) as error:
        read_role(content)
    assert str(error.value).startswith(message)


def noted(bundled, text, conditions):
    return with_relations(pass_texts(bundled, [text]), [text], role_named(written(conditions)).wanted, noted=True)


@pytest.mark.parametrize("expressions", [["^(a|aa)+$"] * 16, [f"^(a|aa)+.{{0,{n}}}$" for n in range(16)]])
def test_all_regular_expressions_of_a_role_have_one_limit_of_time(bundled, expressions):
    words = ", ".join(f"{{ORTH = {each}, TEXT = {each}, LOWER = {each}}}" for each in map(as_toml, expressions))
    began = time.process_time()
    with suppress(AnalysisError):  # of a fast processor, which may have done one of them
        noted(bundled, Text(("a" * 27 + "c",)), f"[to]\npattern = [{words}]")
    assert time.process_time() - began < 5  # and 48 times one of them is more


def test_a_regular_expression_that_does_not_end_is_stopped(bundled):
    with pytest.raises(AnalysisError, match=r"take more than 0\.5 s over .*\$' was not done\. Write it without a rep"):
        noted(bundled, Text(("a" * 60 + "b",)), '[to]\npattern = [{LOWER = {REGEX = "^(a|aa)+$"}}]')


def test_a_word_that_is_too_long_for_an_expression_is_said(bundled):
    text, prepared = Text(("a" * 10_001,)), pass_texts(bundled, [Text(("a",))])
    role = role_named(written('[to]\npattern = [{LOWER = {REGEX = "b"}}]'))
    with pytest.raises(AnalysisError, match="There is a word of 10,001 characters, and regular expressions are search"):
        with_relations(prepared, [text], role.wanted, noted=True)


def test_the_parser_is_free_while_words_are_matched(bundled):
    texts, free = [Text(("Some words.",)), Text(("Others.",))], []

    def parse_elsewhere():
        thread = Thread(target=lambda: list(parse(texts)))
        thread.start()
        thread.join(60)
        free.append(not thread.is_alive())

    with pausing(parse_elsewhere):
        noted(bundled, texts[0], '[to]\npattern = [{POS = "NOUN"}]')
    assert free == [True, True]  # before the parser, and before the pattern


def test_a_parser_without_named_entities_is_named(bundled):
    from attention_sieve.core.texts import parsers, parsing

    pipeline, role = parsing._pipeline(parsers.english_parser()), role_named(written('[to]\nentities = "PERSON"'))
    with (
        pipeline.select_pipes(disable=["ner"]),
        pytest.raises(AnalysisError, match=r"^The parser .* has no ner, which"),
    ):
        with_relations(pass_texts(bundled, TEXTS), TEXTS, role.wanted, noted=True)


def test_a_token_of_two_words_is_one_of_both_in_trees(bundled):
    verb = '{RIGHT_ID = "v", RIGHT_ATTRS = {POS = "VERB"}}'
    other = 'LEFT_ID = "v", REL_OP = ">", RIGHT_ID = "from", RIGHT_ATTRS = {DEP = "neg"}'
    (found,) = noted(bundled, Text(("She didn't go.",)), f"[to]\ntree = [{verb}, {{{other}}}]")
    ((pair,),) = found.notes.trees.values()
    tokens = found.queries.tokens
    assert [[tokens[at] for at in side] for side in (pair.dependent, pair.head)] == [["didn", "'", "t"], ["go"]]


def test_properties_of_characters_are_known(bundled):
    (found,) = noted(bundled, Text(("the Hague of old",)), "[to]\npattern = [{TEXT = {REGEX = '^\\p{Lu}'}}]")
    (is_matched,) = found.notes.matches.values()
    assert [token for token, is_it in zip(found.queries.tokens, is_matched) if is_it] == ["hague"]


@pytest.mark.parametrize("name", ["", "e30", "!", "eyJyb2xlIjox", written("[to]\noffset = -1")[8:-3], "W10"])
def test_a_link_with_half_a_role_gets_a_sentence(name):
    with pytest.raises(AnalysisError):
        known_roles([PREFIX + name])


def test_a_file_is_scored_by_command_and_from_python_and_called_by_its_name(tmp_path, capsys):
    files = [tmp_path / name for name in ("mine.toml", "texts.txt", "a.parquet", "b.parquet")]
    role, texts, a, b = files
    texts.write_text("".join(f"{' ||| '.join(text.segments)}\n" for text in TEXTS))
    for output, offset in ((a, -1), (b, -2)):
        role.write_text(f"{HEAD}[to]\noffset = {offset}")
        options = ["--texts", texts, "--roles", "previous", "--role", role, "--output", output]
        main(["score", "--checkpoint", "bundled", *map(str, options)])
    table = pd.read_parquet(a)
    assert list(table["role"].unique()) == ["previous", "mine"]
    assert table.attrs["role mine"] == '{"role":1,"to":{"offset":-1}}'
    previous, mine = (of_role["score"].to_numpy() for _, of_role in table.groupby("role", sort=False))
    np.testing.assert_allclose(mine, previous, rtol=1e-6, atol=1e-6)
    found = attention_sieve.scores("bundled", [" ".join(TEXTS[0].segments)], roles=["local"], role=role).table
    assert list(found["role"].unique()) == ["local", "mine"]
    assert main(["compare", *map(str, (a, b)), "--output", str(tmp_path / "c.csv")])
    assert "scores of different rules for role mine" in capsys.readouterr().err
    role.write_text("role = 1")
    with pytest.raises(SystemExit):
        main(["score", "--checkpoint", "bundled", *map(str, options)])
    assert "mine.toml: letter is missing." in capsys.readouterr().err


def test_the_manual_and_the_help_say_what_a_file_holds():
    manual = (Path(__file__).parents[3] / "core" / "README.md").read_text("utf-8")
    role = read_role(re.search(r"```toml\n(.*?)```", manual, re.DOTALL)[1])
    assert (role.rule.keys.words, role.rule.offset) == ((",",), (-1, -1))
    section = manual.partition("### Roles that you write")[2].partition("### ")[0]
    for name in (*READERS, "offset", "relative", "relations"):
        assert f"`{name}`" in section
        assert name in file_help()
    assert all(relative in section.replace("\n  ", " ") for relative in get_args(Relative))
