"""What a link restores and what it asks for in vain, without a browser."""

import pytest
from reading import arcs
from streamlit.testing.v1 import AppTest

from attention_sieve.dashboard import controls, link, state, wording
from attention_sieve.dashboard.components.arcs.look import NAMES
from attention_sieve.dashboard.components.kept_text import mark_of
from attention_sieve.dashboard.plain import WORD_JOINER

TEXT = "Why did mosquitoes leave? ||| They had lost a kitten."
LINKS = {
    "inspect": {
        "text": f"The cat sat.\n{TEXT}",
        "number": "2",
        "head": "3-7,2-5",
        "off": "0-1",
        "arcs of": "with all heads on",
        "by": "the corpus",
        "finer": "true",
        "sieve": "delimiter",
        "patterns": "true",
        "window": "0-0",
        "view": "matrix",
        "rows": "words",
        "colours": "words",
        "strongest": "2",
        "specials": "hidden",
        "segments": "A-B",
        "share": "0.8",
        "pin": "from-4",
        "hidden": "3-7",
        "tau": "2.5",
        "alpha": "0.01",
        "correction": "Holm",
        "role rule": "tau alone, as in the paper",
        "family": "heads of all roles",
        "method": "mean alone",
        "ddof": "0",
        "direction": "both",
        "entropy": "false",
        "device": "cpu",
        "guess": "4",
    },
    "roles": {
        "dtype": "float64",
        "scale": "share above chance",
        "share tau": "0.3",
        "details": "Table",
        "roles finer": "true",
        "head": "1-2",
        "region": "none",
    },
    "surface": {"head": "1-2"},
    "grammar": {"relation sentence": "2.1", "every guess": "true", "head": "1-2"},
    "similarity": {"similarity details": "Dendrogram", "similarity colour": "role", "head": "1-2"},
    "similarity layers": {
        "similarity details": "Two layers",
        "similarity layer": "2",
        "similarity other layer": "3",
        "head": "1-2",
    },
}
"""A page, and what its link asks for: nothing of it is as on a first visit."""
VAIN = (
    (
        {
            "head": "9-20",
            "off": "50-1",
            "window": "zz",
            "number": "9",
            "pin": "from-77",
            "share": "3",
            "tau": "abc",
            "correction": "<b>x</b>",
        },
        {
            "The link asks for head L9 H20; this checkpoint has 6 layers of 12 heads. Showing L5 H11 instead.",
            "The link switches off head L50 H1; this checkpoint has 6 layers of 12 heads. They are left out.",
            "The link asks for window “zz”; a window is written as in 512-0. Showing the beginning instead.",
            "The link asks for text “9” of 1 text. Showing text 1 instead.",
            "The link asks for pin “from-77”, which this text does not have. Showing its arcs without it.",
            "The link asks for share “3”, which the arcs do not offer. Showing them as usual.",
            "The link asks for tau “abc”, which is not offered here. Showing 3 instead.",
            "The link asks for correction “<b>x</b>”, which is not offered here. Showing Benjamini-Hochberg instead.",
        },
    ),
    (
        {"head": "3-7,9-20", "guess": "0", "off": "0-1", "tau": "99"},
        {
            "The link asks for head L9 H20; this checkpoint has 6 layers of 12 heads. Showing L3 H7 instead.",
            "The link asks to predict token “0”, which this text does not have. Showing another one instead.",
            "The link asks for tau “99”, which is not offered here. Showing 3 instead.",
        },
    ),
    ({"head": "x,3-7"}, {"The link asks for head “x”; heads are written as in 3-7,2-5. Showing L3 H7."}),
)


def said_of_link(at):
    """Sentences about the link, without the signs that keep Markdown from reading them."""
    text = "\n\n".join(warning.value for warning in at.warning)
    return [
        sentence for sentence in text.replace("\\", "").replace(WORD_JOINER, "").split("\n\n") if "link" in sentence
    ]


@pytest.mark.parametrize("page", LINKS)
def test_every_choice_of_a_link_is_taken_up(app, small, page):
    checkpoint = {"checkpoint": small("bert")} if "dtype" in LINKS[page] else {}
    at = app(page.split()[0], **LINKS[page], **checkpoint)
    assert not at.exception
    assert said_of_link(at) == []
    assert at.session_state[link._ASKED] == {}
    if page == "inspect":
        assert arcs(at)["look"] == {name: LINKS[page][name] for name in arcs(at)["look"]}
        assert set(arcs(at)["look"]) == set(NAMES)


@pytest.mark.parametrize(("asked", "sentences"), VAIN)
def test_what_a_link_asks_for_in_vain_is_said_in_a_sentence_each_and_the_rest_stays(app, asked, sentences):
    at = app(**asked, text="The cat sat.", alpha="0.01")
    assert not at.exception
    assert not at.error
    assert sorted(said_of_link(at)) == sorted(sentences)
    assert at.session_state["alpha"] == 0.01


def test_numbers_of_thousands_of_digits_in_a_link_are_said_in_short_sentences_and_the_rest_stays(app):
    """Python refuses to read more than 4,300 digits."""
    number = "9" * 4_400
    asked = dict.fromkeys(("tau", "guess", "number", "share", "strongest"), number)
    asked |= dict.fromkeys(("head", "off", "window"), f"{number}-{number}") | {"pin": f"from-{number}"}
    at = app(**asked, text="The cat sat.", alpha="0.01")
    assert not at.exception
    assert not at.error
    assert at.session_state["alpha"] == 0.01
    sentences = said_of_link(at)
    assert {"tau", "head", "window", "text", "pin", "share"} <= {
        word for sentence in sentences for word in sentence.replace("“", " ").split()
    }
    assert max(map(len, sentences)) < 400


def test_a_link_with_more_heads_than_any_model_has_is_read_to_its_bound_without_a_long_wait(app):
    """Taking these heads out one by one took minutes, which the time limit of the app does not allow."""
    at = app(off=",".join(f"{6 + number // 12}-{number % 12}" for number in range(58_000)), text="The cat sat.")
    assert not at.exception
    too_many, missing = said_of_link(at)
    assert too_many == "The link names more than 16,384 heads in off. Only the first 16,384 are read."
    named = f"L6 H0, L6 H1, L6 H2, L6 H3 and {state.MOST_HEADS - 4} more;"
    assert missing.startswith(f"The link switches off heads {named}")
    assert at.session_state[state.OFF] == []


def test_a_link_to_a_region_without_heads_says_so(app):
    at = app("roles", region="block,local,sink")
    assert not at.exception
    assert said_of_link(at) == [
        "The link asks for heads with exactly the roles “block,local,sink”, which no head has here. Showing all heads."
    ]
    assert "region" not in at.query_params


@pytest.mark.parametrize(
    ("page", "asked"),
    [
        ("similarity", {"similar dimensions": "3", "camera": "1.2,-0.5,0.25,0,0,0,0,0,1"}),
        ("importance", {"relevance rule": "by sign, half to each", "importance details": "Cheaper measures"}),
    ],
)
def test_a_link_to_a_view_or_a_setting_of_an_earlier_version_opens_its_page(app, small, page, asked):
    at = app(page, checkpoint=small("bert"), **asked)
    assert not at.exception
    assert not at.error
    assert said_of_link(at) == []
    assert at.get("plotly_chart") == []


def test_a_link_without_settings_of_the_arcs_writes_none(app):
    at = app(text="The cat sat.", head="1-2")
    assert set(at.query_params) == {"corpus", "corpus_text", "text", "head"}
    assert said_of_link(at) == []


def test_a_text_that_only_another_tab_has_is_fetched_before_anything_is_drawn(app):
    at = app(**{"text in this tab": mark_of("long " * 2000)})
    assert wording.FETCHING in [each.value for each in at.markdown]
    assert not at.get("text_area")[1:]


def test_a_tab_that_answers_twice_has_given_its_text_once(app, monkeypatch):
    long = "The cat sat. " * 200
    monkeypatch.setattr(controls, "fetch_text", lambda name, mark, answer: [answer(long), answer(long)])
    at = app(**{"text in this tab": mark_of(long)})
    assert wording.FETCHING in [each.value for each in at.markdown]
    assert at.session_state["text"] == long


def test_the_copied_link_says_what_it_does_not_hold(app):
    at = app(text="word " * 2000, corpus=controls.UPLOAD)
    assert at.text_area(key="text").value == "word " * 2000
    views = [view for view in at.get("bidi_component") if "left_out" in view.proto.json]
    assert wording.TEXT_LEFT_OUT in views[0].proto.json
    assert wording.NOT_IN_LINK in [each.value for each in at.markdown]
    assert at.query_params["text in this tab"] == mark_of("word " * 2000)


@pytest.mark.parametrize(
    ("asked", "shown", "same"),
    [
        (("2.80",), 2.8, True),
        (("99",), 3.0, False),
        (("abc",), 3.0, False),
        (("TRUE",), True, True),
        (("maybe",), False, False),
        (("a", "b"), ["a", "b"], True),
        (("a",), ["a", "b"], False),
        (("",), None, True),
        (("x",), None, False),
    ],
)
def test_a_widget_shows_what_the_link_asks_for_or_not(asked, shown, same):
    assert link.is_shown(asked, shown) is same


def writes_a_head():
    import streamlit as st

    from attention_sieve.dashboard import link

    link.begin(st.session_state["page"])
    if head := st.session_state.pop("writes", None):
        link.put(["head", "off"], {"head": head})


def test_a_run_that_was_asked_for_before_the_browser_heard_of_the_last_one_keeps_what_both_have_written():
    at = AppTest.from_function(writes_a_head)
    at.session_state["page"], at.session_state["writes"] = "roles", "1-2"
    at.query_params["off"] = "0-1"
    at.run()
    assert dict(at.query_params) == {"head": "1-2"}
    at.query_params = {"off": "0-1", "details": "Table"}
    at.run()
    assert dict(at.query_params) == {"head": "1-2", "details": "Table"}
    at.session_state["page"], at.query_params = "surface", {"details": "Layers"}
    at.run()
    assert dict(at.query_params) == {"details": "Layers"}


def test_an_address_that_no_page_has_is_said_with_links_to_all_pages(app):
    at = app(**{link.NO_PAGE: "<b>nowhere</b>"})
    assert not at.exception
    (sentence,) = [each.value for each in at.warning]
    assert sentence == wording.no_such_page(link.quoted("<b>nowhere</b>"))
    links = [each.proto for each in at.get("page_link")]
    pages = [page.title for page in at.session_state["pages"].values()]
    assert [each.label for each in links[: len(pages)]] == pages
    assert link.NO_PAGE not in at.query_params
    at.button(key="close link").click().run()
    assert not at.warning
