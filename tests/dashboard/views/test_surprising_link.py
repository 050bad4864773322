"""The answer to a typed text on Inspect, without a browser."""

import re

from reading import choose_heads, sent
from streamlit.testing.v1 import AppTest

from attention_sieve.core.word_links.habits import FUNCTION_WORDS
from attention_sieve.dashboard.views.text import stories
from attention_sieve.dashboard.views.text import wording as story_wording
from attention_sieve.dashboard.views.word_links import wording

BROTHER = "My brother broke his new phone."
LINKS = [("L2 H4", "his", "brother"), ("L3 H1", "broke", "phone"), ("L0 H5", "brother", "my")]


def said(at):
    """Sentences about a surprising link."""
    return [each.value for each in at.markdown if "other words give it" in each.value]


def arcs(at):
    """Names of the heads whose arcs are drawn, and the pinned token."""
    data = sent(at, "Attention of")
    pin = data["look"].get("pin")
    return [head["name"] for head in data["heads"]], pin and data["queries"]["tokens"][int(pin.split("-")[1])]


def button(at, key):
    return next((each for each in at.button if each.key == key), None)


def enter(at: AppTest, typed: str) -> AppTest:
    at.text_area(key="text").set_value(typed).run()
    return at


def test_enter_chooses_and_pins_the_most_surprising_link_and_next_goes_through_the_others(app):
    at = app("inspect")
    (of_example,) = said(at)
    assert of_example.startswith("**_closed_ looks at _shop_** :small[L1 H7 gives it 88%; ")
    enter(at, BROTHER)
    for head, query, key in LINKS:
        (sentence,) = said(at)
        assert sentence.startswith(f"**_{query}_ looks at _{key}_** :small[{head} gives it ")
        assert "; other words give it " in sentence
        assert arcs(at) == ([head], query)
        button(at, "next link").click().run()
    assert arcs(at) == (["L2 H4"], "his"), "after the last comes the first"
    assert at.query_params["head"] == "2-4"
    assert at.query_params["pin"] == "from-4"


def test_a_link_is_answered_at_once_but_heads_that_it_names_stay_until_the_answer_is_asked_for(app):
    assert arcs(app("inspect", text=BROTHER)) == (["L2 H4"], "his")
    at = app("inspect", text=BROTHER, head="1-2", pin="to-3")
    at.run()
    assert arcs(at) == (["L1 H2"], "broke")
    assert at.query_params["pin"] == "to-3"
    button(at, "show link").click().run()
    assert arcs(at) == (["L2 H4"], "his")


def test_heads_chosen_before_can_be_restored(app):
    at = enter(app("inspect", head="1-2"), BROTHER)
    assert arcs(at)[0] == ["L2 H4"]
    enter(at, "The dog that the cats chased was tired.")
    button(at, "heads before").click().run()
    assert arcs(at)[0] == ["L1 H2"]


def test_running_the_page_again_leaves_what_the_reader_has_chosen_since(app):
    at = enter(app("inspect"), BROTHER)
    at.session_state["head"] = [(5, 2)]  # as a click does before the run
    choose_heads(at, (5, 2))
    assert arcs(at)[0] == ["L5 H2"]
    assert button(at, "show link") is not None


def test_a_story_has_its_own_head_and_back_from_its_example_the_text_is_answered_again(app):
    at = enter(app("inspect"), BROTHER)
    at.button_group(key=stories.CHIP).set_value(story_wording.HER).run()
    assert said(at) == []
    assert arcs(at)[1] == "her"
    at.button(key="own text").click().run()
    assert at.text_area(key="text").value == BROTHER
    assert arcs(at) == (["L2 H4"], "his")
    assert button(at, "heads before") is None


def test_a_text_with_too_few_words_to_compare_has_nothing_that_stands_out(app):
    at = enter(app("inspect"), "one two")
    assert wording.NOTHING_STANDS_OUT in [each.value for each in at.markdown]
    assert said(at) == []


def test_attention_of_random_weights_does_not_stand_out(app, small):
    many = {"num_hidden_layers": 12, "num_attention_heads": 9, "hidden_size": 9, "intermediate_size": 8}
    at = app("inspect", checkpoint=small("bert", **many), text=BROTHER)
    assert wording.NOTHING_STANDS_OUT in [each.value for each in at.markdown]


def test_attention_between_two_texts_is_not_answered(app, small):
    at = app("inspect", checkpoint=small("t5"), attention="cross-attention", text="A source here. ||| A target there.")
    assert said(at) == []
    assert wording.NOTHING_STANDS_OUT not in [each.value for each in at.markdown]


def test_content_words_stand_out_before_words_that_join_others(app):
    at = enter(app("inspect"), "She sat by the bank of the river and put her money in a deposit.")
    joining = []
    for _ in range(5):
        (sentence,) = said(at)
        query, key = re.match(r"\*\*_(.*?)_ looks at _(.*?)_\*\*", sentence).groups()
        joining.append(not FUNCTION_WORDS.isdisjoint({query, key}))
        if button(at, "next link") is None:
            break
        button(at, "next link").click().run()
    assert joining == sorted(joining)
    assert not joining[0]


def test_heads_of_a_link_stay_chosen_over_the_example_which_has_an_answer_too(app):
    at = app("inspect", head="0-2")
    assert arcs(at) == (["L0 H2"], None)
    assert len(said(at)) == 1
    button(at, "show link").click().run()
    assert arcs(at) == (["L1 H7"], "closed")
