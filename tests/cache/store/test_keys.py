import dataclasses
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_sieve.cache.store.store import ATTENTION_VERSION, DIVERGENCE_VERSION, answer_key, divergence_key
from attention_sieve.cache.store.store import attention_key as key_of_attention
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.relations.analysis import prediction_question
from attention_sieve.core.relations.cases import ParsedText
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.relations import dependencies
from attention_sieve.core.texts.text import Text, text_fields, texts_sha256

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates included
WORDS = st.lists(ANY_TEXT, max_size=3).map(tuple)
SEGMENTS = st.lists(ANY_TEXT, min_size=1, max_size=2).map(tuple)
BROUGHT = st.none() | st.lists(WORDS, min_size=1, max_size=2).map(tuple)
HEADS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=3, unique=True).map(sorted).map(tuple)
QUESTIONS = st.tuples(
    st.text("0123456789abcdef", max_size=8),
    st.sampled_from(["float32", "float16"]),
    st.sampled_from(["self", "encoder", "decoder", "cross"]),
    HEADS,
    SEGMENTS,
    BROUGHT,
    ANY_TEXT,
)
ALL_ON = PassSettings()


def scores_key(checkpoint, dtype, settings, text, parser, version=SCORES.version):
    return answer_key(("scores", version), checkpoint, dtype, settings, text=text_fields(text), parser=parser)


def attention_key(checkpoint, dtype, settings, text, parser, start=(0, 0)):
    return key_of_attention(checkpoint, dtype, settings, start, text=text_fields(text), parser=parser)


KEYS = pytest.mark.parametrize("key_of", [scores_key, attention_key])


def asked(key_of, question):
    checkpoint, dtype, kind, off, segments, words, parser = question
    return key_of(checkpoint, dtype, PassSettings(kind, off), Text(segments, words), parser)


def key_of_text(text):
    return scores_key("0f", "float32", ALL_ON, text, "")


@KEYS
def test_the_document_of_a_text_changes_no_key(key_of):
    """So that results that were stored before documents were read are found, and the same sentence is passed once."""
    text = Text(("He saw",), (("He", "saw"),), ((2, 0),), (("nsubj", "root"),))
    one, other = (dataclasses.replace(text, document=name) for name in ("a", "b"))
    assert one != other
    assert len({key_of("0f", "float32", ALL_ON, each, "") for each in (text, one, other)}) == 1
    (tree,), question = dependencies([text]), prediction_question("mean")
    assert question.depends_on(ParsedText.of(one, tree)) == question.depends_on(ParsedText.of(text, tree))
    assert divergence_key(("0f", "1f"), "float32", (ALL_ON, ALL_ON), one) == divergence_key(
        ("0f", "1f"), "float32", (ALL_ON, ALL_ON), text
    )
    assert texts_sha256([one]) == texts_sha256([text])


@KEYS
@given(one=QUESTIONS, other=QUESTIONS)
def test_any_changed_ingredient_changes_the_key(key_of, one, other):
    for place, ingredient in enumerate(other):
        changed = (*one[:place], ingredient, *one[place + 1 :])
        assert (asked(key_of, changed) == asked(key_of, one)) == (changed == one)


@KEYS
@given(QUESTIONS)
def test_an_equal_question_has_an_equal_key(key_of, question):
    checkpoint, dtype, kind, off, segments, words, parser = question
    equal = Text((*segments,), None if words is None else tuple((*some,) for some in words))
    assert re.fullmatch("[0-9a-f]{64}", asked(key_of, question))
    assert key_of(checkpoint, dtype, PassSettings(kind, off), equal, parser) == asked(key_of, question)


@KEYS
def test_the_order_in_which_heads_were_switched_off_does_not_matter(key_of):
    settings = [PassSettings("self", off) for off in (((0, 2), (1, 1)), ((1, 1), (0, 2), (1, 1)), ((2, 0), (1, 1)))]
    keys = [key_of("0f", "float32", one, Text(("a",)), "") for one in settings]
    assert keys[0] == keys[1] != keys[2]


def test_a_divergence_has_one_key_for_both_orders_and_another_for_anything_else():
    off, text, other = PassSettings("self", ((0, 1),)), Text(("a",)), Text(("b",))
    asked = (("0f", "1f"), "float32", (ALL_ON, off), text)
    assert divergence_key(("1f", "0f"), "float32", (off, ALL_ON), text) == divergence_key(*asked)
    changed = (("0f", "2f"), "float16", (off, ALL_ON), other)
    keys = {divergence_key(*asked[:place], one, *asked[place + 1 :]) for place, one in enumerate(changed)}
    assert len(keys | {divergence_key(*asked)}) == 5


@given(QUESTIONS)
def test_scores_attention_and_attention_elsewhere_in_one_text_have_different_keys(question):
    checkpoint, dtype, kind, off, segments, words, parser = question
    of_text = (checkpoint, dtype, PassSettings(kind, off), Text(segments, words), parser)
    elsewhere = {attention_key(*of_text, start) for start in ((0, 0), (8, 0), (0, 8))}
    assert len({scores_key(*of_text), attention_key(*of_text)} | elsewhere) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Text(("a b",)), Text(("a", "b"))),
        (Text(("a b",)), Text(("a b",), words=(("a", "b"),))),
        (Text(("\U0001f600",)), Text(("\ud83d\ude00",))),
    ],
    ids=["two segments and one that joins them", "words a file brought", "an emoji and its two lone surrogates"],
)
def test_texts_that_are_easily_taken_for_each_other_have_different_keys(one, other):
    assert key_of_text(one) != key_of_text(other)


def test_a_raised_version_changes_the_keys_of_its_question_alone():
    question = ("0f", "float32", ALL_ON, Text(("a",)), "")
    assert scores_key(*question) != scores_key(*question, version=SCORES.version + 1)
    assert (ATTENTION_VERSION, DIVERGENCE_VERSION, SCORES.version) == (5, 5, 6), (
        "each stands alone: bump the one that changed"
    )


def test_every_field_of_a_text_but_its_document_counts():
    """The key names them by hand: a new field has to be named there, unless no pass depends on it, as on documents, or
    the questions that read it name it: the parser, and marked pairs."""
    named = ["segments", "words", "heads", "relations", "document", "spans", "parser", "given", "pairs"]
    assert [field.name for field in dataclasses.fields(Text)] == named
    told = Text(("She left.",), (("She", "left."),), ((2, 0),), (("nsubj", "root"),))
    others = (
        dataclasses.replace(told, segments=("He left.",)),
        dataclasses.replace(told, words=(("She", "left", "."),)),
        dataclasses.replace(told, heads=((0, 1),)),
        dataclasses.replace(told, relations=(("obj", "root"),)),
        dataclasses.replace(told, heads=None, relations=None),
        dataclasses.replace(told, spans=(((0, 3), (4, 8)),)),
        dataclasses.replace(told, spans=(((0, 3), (4, 9)),)),
        dataclasses.replace(told, given=GivenTokens((7, 8))),
        dataclasses.replace(told, given=GivenTokens((7, 9))),
        dataclasses.replace(told, given=GivenTokens((7, 9), (0, 1), (1, 2))),
    )
    keys = {scores_key("0f", "float32", PassSettings(), text, "spacy") for text in (told, *others)}
    assert len(keys) == 1 + len(others)


def test_a_key_keeps_its_value_between_versions():
    # sha256 of the JSON as written here; a change makes every stored result unfindable, so a version has to rise.
    canonical = (
        '{"attention":"cross","checkpoint":"0f","dtype":"float32","format":6,"kind":"scores","off":[[1,0]],"parser":"spacy",'
        '"text":{"segments":["Où?","Là."],"words":null}}'
    )
    key = scores_key("0f", "float32", PassSettings("cross", ((1, 0),)), Text(("Où?", "Là.")), "spacy")
    assert key == hashlib.sha256(canonical.encode()).hexdigest()
    assert key == "e018ee6f7cd5d1a283b2105d5ac65530995fbfa47408c026f0463f1b6d184dfc"
