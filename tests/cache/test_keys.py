import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import keys
from cache.keys import attention_key, scores_key
from core.texts import Text

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates included
WORDS = st.lists(ANY_TEXT, max_size=3).map(tuple)
TEXTS = st.builds(
    Text,
    st.lists(ANY_TEXT, min_size=1, max_size=2).map(tuple),
    st.none() | st.lists(WORDS, min_size=1, max_size=2).map(tuple),
)
QUESTIONS = st.tuples(st.text("0123456789abcdef", max_size=8), st.sampled_from(["float32", "float16"]), TEXTS, ANY_TEXT)


@pytest.mark.parametrize("key", [scores_key, attention_key])
@given(one=QUESTIONS, other=QUESTIONS)
def test_keys_are_equal_where_the_questions_are(key, one, other):
    assert (key(*one) == key(*other)) == (one == other)


@pytest.mark.parametrize("key", [scores_key, attention_key])
@given(question=QUESTIONS, other=QUESTIONS)
def test_any_changed_ingredient_changes_the_key(key, question, other):
    for place, ingredient in enumerate(other):
        changed = (*question[:place], ingredient, *question[place + 1 :])
        assert (key(*changed) == key(*question)) == (changed == question)


@given(QUESTIONS)
def test_scores_and_attention_of_one_text_have_different_keys(question):
    assert scores_key(*question) != attention_key(*question)


def test_two_segments_differ_from_one_that_joins_them():
    assert scores_key("0f", "float32", Text(("a b",)), "") != scores_key("0f", "float32", Text(("a", "b")), "")


def test_words_a_file_brought_differ_from_none():
    with_words = Text(("a b",), words=(("a", "b"),))
    assert scores_key("0f", "float32", Text(("a b",)), "") != scores_key("0f", "float32", with_words, "")


def test_an_emoji_differs_from_its_two_lone_surrogates():
    assert scores_key("0f", "float32", Text(("\U0001f600",)), "") != scores_key(
        "0f", "float32", Text(("\ud83d\ude00",)), ""
    )


def test_a_raised_format_changes_every_key(monkeypatch):
    question = ("0f", "float32", Text(("a",)), "")
    before = scores_key(*question), attention_key(*question)
    monkeypatch.setattr(keys, "FORMAT", keys.FORMAT + 1)
    assert not {*before} & {scores_key(*question), attention_key(*question)}


def test_a_key_keeps_its_value_between_versions():
    # sha256 of the JSON as written here; a change makes every stored result unfindable, so FORMAT has to rise with it.
    canonical = (
        '{"checkpoint":"0f","dtype":"float32","format":1,"kind":"measures","parser":"spacy",'
        '"text":{"segments":["Où?","Là."],"words":null}}'
    )
    key = scores_key("0f", "float32", Text(("Où?", "Là.")), "spacy")
    assert key == hashlib.sha256(canonical.encode()).hexdigest()
    assert key == "0a8edd60940a4776055481244cd01d6f5bbde981c8fbcffca404802c42c43f3b"
