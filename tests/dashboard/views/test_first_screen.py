"""What the first screen of Inspect says and keeps, without a browser."""

import numpy as np
import pytest
from reading import arcs, button, sent, written
from streamlit.testing.v1 import AppTest

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.texts.text import PAIR_MARK, Text, read_typed
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.dashboard import controls, wording
from attention_sieve.dashboard.samples import EXAMPLE, PAIR
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.inspect import wording as inspect_wording
from attention_sieve.dashboard.views.text import wording as text_wording
from attention_sieve.dashboard.views.text.on_screen import SEGMENTS
from attention_sieve.dashboard.views.text.simple_patterns import strongest_link


def labels(at):
    return [each.label for each in at.button]


def test_a_form_that_is_sent_without_its_fields_changes_nothing():
    def page():
        import streamlit as st

        from attention_sieve.dashboard.views.text import on_screen

        st.session_state["text"] = "She sang."
        st.button("answer", on_click=on_screen._put_pair)

    at = AppTest.from_function(page).run()
    at.button[0].click().run()
    assert not at.exception
    assert at.session_state["text"] == "She sang."


def test_the_buttons_beside_the_text_stay_while_it_is_empty(app):
    at = app(text="")
    assert [error.value for error in at.error]
    assert {inspect_wording.LOOK, evidence_wording.KEEP} <= set(labels(at))
    button(at, evidence_wording.KEEP).click().run()


def test_the_first_text_that_is_kept_is_in_the_link_with_its_corpus(app, small):
    at = app(checkpoint=small("bert"), corpus=None, corpus_text=None, text="A dog chased a cat.")
    button(at, evidence_wording.KEEP).click().run()
    assert at.query_params["corpus_text"] == "A dog chased a cat."
    button(at, evidence_wording.BACK[controls.CORPORA[0]]).click().run()
    at.text_area(key="text").set_value("A cat slept.")
    button(at, evidence_wording.KEEP).click().run()
    assert at.query_params["corpus_text"] == "A dog chased a cat.\nA cat slept."


LINES = [f"Text number {i} is short." for i in range(102)]


@pytest.mark.parametrize(
    ("name", "content", "n_texts", "shown"),
    [
        ("texts.txt", "\n".join(LINES[:3]), 3, LINES[:3]),
        ("texts.txt", "\n".join(LINES), 102, LINES[:100]),
        ("not to be typed.json", '[{"text_a": "One.", "text_b": "2 ||| 3."}]', 1, ["One. ||| 2 ||| 3."]),
    ],
)
def test_an_upload_is_said_to_be_read_and_its_first_texts_can_be_seen(app, name, content, n_texts, shown):
    at = app("roles", corpus=controls.UPLOAD)
    assert [each.label for each in at.expander if "read: show" in each.label] == []
    at.file_uploader(key="upload").upload(name, content.encode()).run()
    said = f"{n_texts} text{'s' if n_texts > 1 else ''} read: show the corpus"
    (unfolded,) = [each for each in at.expander if each.label == said]
    assert [each.value for each in unfolded.text] == ["\n".join(shown)]
    assert [each.value for each in unfolded.markdown] == ([wording.more_texts(2)] if n_texts > 100 else [])


def test_signs_that_the_model_does_not_know_are_named(app):
    at = app(text="I like pizza 🍕 and 🙂 and 🍕.")
    assert [each.value for each in at.info] == ["The model does not know 🍕 🙂: it reads \\[UNK\\] instead."]
    at.text_area(key="text").set_value("I like pizza.").run()
    assert [each.value for each in at.info] == []


def test_a_decoder_begins_with_a_pair_as_long_as_nothing_is_typed(app, small):
    at = app(checkpoint=small("bart", "Seq2SeqLM"), attention="decoder", text=None, corpus_text="a dog ||| a cat")
    assert at.text_area(key="text").value == PAIR_MARK.join(PAIR.segments)
    at.selectbox(key="attention").set_value("encoder").run()
    assert at.text_area(key="text").value == EXAMPLE.segments[0]
    at.text_area(key="text").set_value("A text of my own.").run()
    at.selectbox(key="attention").set_value("decoder").run()
    assert at.text_area(key="text").value == "A text of my own."


def test_two_fields_make_a_pair_of_which_one_text_alone_is_a_text(app):
    at = app(text="A text of my own.")
    for first, second, typed in (
        ("Who sat? ", "A cat sat.", "Who sat? ||| A cat sat."),
        ("", "A cat sat.", "A cat sat."),
        ("", "", "A cat sat."),
    ):
        for key, value in zip(SEGMENTS, (first, second)):
            at.text_input(key=key).set_value(value)
        button(at, text_wording.LOOK_AT_PAIR).click().run()
        assert at.text_area(key="text").value == typed
        assert set(arcs(at)["queries"]["segments"]) == ({-1, 0, 1} if " ||| " in typed else {-1, 0})


def test_the_strongest_link_of_a_head_is_between_two_words_and_as_large_as_computed_by_hand(app):
    at = app(text="My brother broke his new phone.")
    engine = at.session_state["engine"]
    looked, _ = controls.inference().look(engine, Text(("My brother broke his new phone.",)), PassSettings())
    link = strongest_link(looked, (2, 4))
    assert (link.query.text, link.key.text) == ("his", "brother")
    words = looked.text.queries.segments != SPECIAL
    one_token_each = looked.attention[2, 4][np.ix_(words, words)]
    np.fill_diagonal(one_token_each, 0)
    assert link.share == pytest.approx(one_token_each.max(), abs=1e-6)
    his, brother = 3, 1  # words of the text
    others = np.delete(one_token_each[:, brother], [his, brother])
    assert link.from_others == pytest.approx(others.mean(), abs=1e-6)
    assert link.even == 1 / 9
    assert link.stands_out
    assert not strongest_link(looked, (5, 1)).stands_out, "it rests"


def test_a_word_of_several_pieces_gives_their_mean_and_takes_their_sum(app):
    (text,) = read_typed("Mosquitoes bit the unbelievable grandmother.")
    looked, _ = controls.inference().look(app().session_state["engine"], text, PassSettings())
    for head in ((2, 4), (5, 4), (0, 2)):
        link = strongest_link(looked, head)
        rows = looked.attention[head][list(link.query.tokens)][:, list(link.key.tokens)]
        assert link.share == pytest.approx(rows.sum(axis=1).mean(), abs=1e-6)
        assert link.query.tokens != link.key.tokens


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([], "In this text: nothing that the letters name."),
        (["local"], "In this text: looks at neighbouring tokens."),
        (
            ["syntactic", "delimiter", "delimiter:cls", "syntactic:amod"],
            "In this text: looks at words that are related to each other (adjectives); also at [CLS].",
        ),
        (["delimiter", "block"], "In this text: looks at the special tokens; also at tokens of the same segment."),
    ],
)
def test_what_a_head_does_in_the_text_is_said_in_words(names, sentence):
    assert inspect_wording.text_summary(names) == sentence


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_words_for_what_a_head_does(role):
    coarse = role.partition(":")[0]
    assert inspect_wording.text_summary([role]) != inspect_wording.text_summary([])
    assert (inspect_wording.text_summary([coarse, role]) == inspect_wording.text_summary([coarse])) == (role == coarse)


def test_a_description_says_of_which_texts_it_speaks_and_what_the_head_does_in_this_one(app):
    at = app(corpus=controls.UPLOAD, text="My brother broke his new phone.", head="2-4")
    at.file_uploader(key="upload").upload("texts.txt", b"A dog chased a cat.\nShe ate her red apple.\nWe slept.").run()
    button(at, "Describe each head in a sentence").click().run()
    (described,) = (each for each in written(at, "In your text: ") if each.startswith("Over"))
    assert described.startswith("Over the 3 texts of the corpus **L2 H4** ")
    assert "*his* → *brother*, 64%." in described
    assert sent(at, "Heads of")
    assert written(at, evidence_wording.VALID_ONCE) == []
