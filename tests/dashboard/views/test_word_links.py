"""Words first on Inspect, without a browser."""

import re

import pytest
from reading import arcs, said, sent

from attention_sieve.dashboard.views.word_links import wording
from attention_sieve.dashboard.views.word_links.choice import FROM, TABS, TO

SENTENCE = "The old baker quietly closed her small shop because the customers had slowly left the town."


def answer(at):
    """The sentence that names the head of the strongest link."""
    return next((each.value for each in at.markdown if each.value.startswith("Strongest in **")), None)


def entries(at):
    """The ranked list."""
    return [each for each in at.button if (each.key or "").startswith("linking head")]


def picked(at):
    return [at.selectbox(key=side).value for side in (FROM, TO)]


def test_two_words_rank_the_heads_and_a_click_shows_the_first_ones_arcs(app):
    assert not [each for each in app("inspect", text=SENTENCE).selectbox if each.key in (FROM, TO)]
    at = app("inspect", text=SENTENCE, **{TABS: wording.TITLE})
    assert answer(at) is None
    assert [each.value for each in at.caption].count(wording.HINT) == 1
    at.selectbox(key=FROM).set_value("her").run()
    at.selectbox(key=TO).set_value("baker").run()
    assert [at.query_params[side] for side in (FROM, TO)] == ["her", "baker"]
    assert re.search("“her” gives [0-9]+% of its attention to “baker”", answer(at))
    first = entries(at)[0]
    head = first.label.split(":")[0]
    assert answer(at).startswith(f"Strongest in **{head}**")
    first.click().run()
    assert [each["name"] for each in arcs(at)["heads"]] == [head]
    assert sent(at, "Word links in ")["title"] == "% of attention from “her” to “baker”"


def test_one_word_links_to_whichever_other_is_strongest_head_by_head(app):
    at = app("inspect", text=SENTENCE, **{TO: "baker"})
    assert all(" from “" in each.label and " to “" not in each.label for each in entries(at))
    at.button(key="swap words").click().run()
    assert picked(at) == ["baker", wording.ANY]
    assert all(" to “" in each.label and " from “" not in each.label for each in entries(at))
    assert FROM in at.query_params
    assert TO not in at.query_params


def test_repeated_words_are_numbered_and_in_a_pair_say_where_they_are(app):
    at = app("inspect", text=SENTENCE, **{FROM: "the (2 of 3)", TO: "[CLS]"})
    assert picked(at) == ["the (2 of 3)", "[CLS]"]
    assert answer(at) is not None
    at.text_area(key="text").set_value("The baker left. ||| Where did the baker go?").run()
    assert "baker (2 of 2, in B)" in at.selectbox(key=FROM).options
    assert "[SEP] (1 of 2)" in at.selectbox(key=FROM).options


def test_a_word_that_is_not_there_is_said_and_comes_back_with_its_text(app):
    at = app("inspect", text=SENTENCE, **{FROM: "the <b>", TO: "shop"})
    assert "“the \\<b\\>” is not among the words shown" in at.warning[0].value
    assert picked(at) == [wording.ANY, "shop"]
    at.selectbox(key=FROM).set_value("her").run()
    assert not at.warning
    at.text_area(key="text").set_value("A stray dog chased them.").run()
    assert len(at.warning) == 2
    assert picked(at) == [wording.ANY, wording.ANY]
    at.text_area(key="text").set_value(SENTENCE).run()
    assert not at.warning
    assert picked(at) == ["her", "shop"]


@pytest.mark.parametrize("kind", ["decoder", "cross-attention"])
def test_an_encoder_decoder_links_the_words_of_its_texts(app, small, kind):
    link = {FROM: "left", TO: "left" if kind == "decoder" else "dog"}
    at = app("inspect", checkpoint=small("t5"), attention=kind, text="The dog barked ||| She left", **link)
    assert picked(at) == [*link.values()]
    assert bool([each for each in at.button if each.key == "swap words"]) == (kind == "decoder")
    assert sent(at, "Word links in ")["layers"] > 0


def test_a_head_that_is_off_is_marked_and_the_arcs_shown_decide(app):
    at = app("inspect", text=SENTENCE, **{FROM: "her", TO: "baker"})
    head = entries(at)[0].label.split(":")[0]
    off = f"{head[1:].replace(' H', '-')}"
    at = app("inspect", text=SENTENCE, off=off, **{FROM: "her", TO: "baker"})
    (label,) = [each.label for each in entries(at) if each.label.startswith(head)]
    assert label.endswith("(switched off)")


def test_over_the_corpus_two_words_or_a_relation_are_judged(app):
    texts = "The nurse washed it.\nA dog saw the nurse.\nThe old nurse left."
    at = app("inspect", text="The nurse left.", corpus_text=texts, **{TABS: wording.TITLE})
    at.session_state["links over corpus"] = True
    at.run()
    assert wording.TWO_OR_RELATION in [each.value for each in at.caption]
    at.selectbox(key="linked by").set_value("nsubj").run()
    assert any(each.value.startswith("From any word to any word") for each in at.markdown)
    assert any(each.value.startswith("Best find: **L") for each in at.markdown)
    at.selectbox(key=FROM).set_value("nurse").run()
    assert "in 2 texts" in next(each.value for each in at.markdown if each.value.startswith("From “nurse” to any word"))
    at.selectbox(key="linked by").set_value(wording.NO_RELATION).run()
    at.selectbox(key=TO).set_value("the").run()
    assert sent(at, "Links from “nurse” to “the” in ")["title"] == "% of attention from “nurse” to “the”"
    at.selectbox(key=TO).set_value("[CLS]").run()
    assert said(at) == ["In no text with this pattern can the first word attend to the second. Choose other words."]
