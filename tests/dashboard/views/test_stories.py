"""The stories of Inspect, without a browser."""

import numpy as np
import pytest
from reading import sent

from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import tokenize
from attention_sieve.dashboard.views.text import stories, wording
from attention_sieve.dashboard.views.text.stories import SENTENCE, STORIES, strongest

BULB = ":material/lightbulb: "
OWN = "My brother quickly repaired his old car."
"""A text of the reader's own, with a subject and an object."""
HEADLESS = "My brother laughed."
"""One without an object, and with no head of the bundled checkpoint that looks from its verb to its subject or back."""


def arcs_of(at):
    """Names of the heads whose arcs are drawn."""
    return [head["name"] for head in sent(at, "Attention of")["heads"]]


def told(at):
    """What the page says of a story."""
    return [each.value.removeprefix(BULB) for each in at.markdown if each.value.startswith(BULB)]


@pytest.fixture(scope="module")
def tokens():
    """tokens(text) -> its tokens under the bundled checkpoint."""
    tokenizer = load_checkpoint(find_checkpoint("bundled")).tokenizer
    return lambda text: tokenize(Text((text,)), tokenizer, 100)


def test_a_story_links_the_words_it_names_in_its_example(tokens):
    for name, joined in (
        (wording.OBJECT, ("closed", "shop")),
        (wording.SUBJECT, ("proposed", "committee")),
        (wording.HER, ("her", "baker")),
    ):
        of_example = tokens(STORIES[name].example)
        (link,) = np.argwhere(STORIES[name].links_of(of_example))
        assert tuple(of_example.tokens[at] for at in link) == joined
    of_example = tokens(SENTENCE)
    links = np.argwhere(STORIES[wording.PREVIOUS_WORD].links_of(of_example))
    assert [(query, key) for query, key in links] == [(at, at - 1) for at in range(2, len(of_example.ids) - 1)]
    links, special = STORIES[wording.RESTING].links_of(of_example), of_example.is_cls | of_example.is_sep
    assert np.array_equal(links, ~special[:, None] & special)


def test_the_strongest_head_is_the_one_with_the_greatest_mean_share_by_hand():
    attention = np.full((2, 2, 3, 3), 1 / 3)
    attention[1, 0, 1] = 0.8, 0.1, 0.1
    attention[1, 0, 2] = 0.0, 0.6, 0.4
    links = np.eye(3, k=-1, dtype=bool)
    found = strongest(attention, links, causal=False)
    assert (found.head, found.share, found.even) == ((1, 0), pytest.approx(0.7), pytest.approx(1 / 3))
    attention[0, 1] = np.nan
    assert strongest(attention, links, causal=False).head == (1, 0), "a head that was removed is never the strongest"
    # Where later tokens cannot be seen, the second query has two keys to choose from, and a link to a later key none.
    links[0, 2] = True
    assert strongest(attention, links, causal=True).even == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_a_head_that_looks_there_from_everywhere_is_passed_over_by_hand():
    """Both heads of the second layer look at the first word from the third; one does from every word."""
    attention = np.full((2, 2, 4, 4), 0.05)
    attention[1, 0, :, 0], attention[1, 1, 2, 0] = 0.8, 0.6
    links = np.zeros((4, 4), bool)
    links[2, 0] = True
    words = np.array([True, True, True, False])
    assert strongest(attention, links, causal=False).head == (1, 0)
    found = strongest(attention, links, causal=False, words=words)
    assert (found.head, found.share, found.of_others) == ((1, 1), pytest.approx(0.6), pytest.approx(0.05))
    attention[1, 1], attention[0, 1, 2, 0] = 0.05, 0.09
    found = strongest(attention, links, causal=False, words=words)
    assert (found.head, found.follows) == ((0, 1), False), "where none follows the link, the one that comes closest"
    attention[1, 0, 1, 0] = 0.0
    assert strongest(attention, links, causal=True, words=words).of_others == 0, "a word that cannot see it is no other"


def test_a_head_that_always_looks_that_far_back_is_passed_over_by_hand():
    attention = np.full((2, 2, 4, 4), 0.05)
    attention[1, 0], attention[1, 1, 2, 1] = np.eye(4, k=-1), 0.6
    links = np.zeros((4, 4), bool)
    links[2, 1] = True
    found = strongest(attention, links, causal=False, words=np.ones(4, bool))
    assert (found.head, found.share, found.at_distance) == ((1, 1), pytest.approx(0.6), pytest.approx(0.05))


@pytest.mark.parametrize("name", [name for name in STORIES if name != wording.HER])
def test_a_story_is_told_of_the_readers_own_sentence_and_pins_the_word_that_it_speaks_of(app, name):
    at = app("inspect", text=OWN)
    at.button_group(key=stories.CHIP).set_value(name).run()
    assert at.text_area(key="text").value == OWN
    (said,) = told(at)
    (head,) = arcs_of(at)
    assert said.startswith(f"**{head}**: ")
    if STORIES[name].joins_words:
        pinned = sent(at, "Attention of")["queries"]["tokens"][int(at.query_params["pin"].removeprefix("from-"))]
        assert f"the attention of *{pinned}* goes to " in said
    assert not [each for each in at.button if each.key == "own text"]


@pytest.mark.parametrize("name", [wording.OBJECT, wording.SUBJECT, wording.HER])
def test_the_example_stands_in_for_a_sentence_without_such_words_or_head_until_back(app, name):
    at = app("inspect", text=HEADLESS)
    at.button_group(key=stories.CHIP).set_value(name).run()
    assert at.text_area(key="text").value == STORIES[name].example
    (said,) = told(at)
    (head,) = arcs_of(at)
    assert said.startswith(f"**{head}**: "), "in the example, the head is there"
    at.button(key="own text").click().run()
    assert at.text_area(key="text").value == HEADLESS
    assert told(at) == []
    assert at.button_group(key=stories.CHIP).value is None


def test_the_next_story_tries_the_readers_own_sentence_again_and_typing_ends_it(app):
    at = app("inspect", text=OWN)
    at.button_group(key=stories.CHIP).set_value(wording.HER).run()
    assert at.text_area(key="text").value == SENTENCE
    at.button_group(key=stories.CHIP).set_value(wording.OBJECT).run()
    assert at.text_area(key="text").value == OWN
    assert len(told(at)) == 1
    at.text_area(key="text").set_value("Another text.").run()
    assert told(at) == []
    assert at.run().button_group(key=stories.CHIP).value is None


def test_a_checkpoint_without_such_a_head_says_so_and_keeps_the_choice(app, small):
    at = app("inspect", checkpoint=small("bert"), head="1-2")
    at.button_group(key=stories.CHIP).set_value(wording.SUBJECT).run()
    (said,) = told(at)
    assert said.startswith("This checkpoint has no such head in this sentence. Closest is L")
    assert arcs_of(at) == ["L1 H2"]


def test_a_link_restores_the_story_and_its_own_heads(app):
    at = app("inspect", text=SENTENCE, story=wording.PREVIOUS_WORD, head="3-1")
    (said,) = told(at)
    assert "goes to the word before" in said
    assert arcs_of(at) == ["L3 H1"]


def test_a_decoder_only_checkpoint_tells_them_too(app, small):
    at = app("inspect", checkpoint=small("gpt2", max_position_embeddings=400))
    for name, there in (
        (wording.RESTING, "(the first token, where there are none)"),
        (wording.OBJECT, "back to its verb"),
    ):
        at.button_group(key=stories.CHIP).set_value(name).run()
        (said,) = told(at)
        assert there in said


def test_a_sentence_that_was_cut_before_the_words_of_a_story_tells_nothing(app, small):
    at = app(
        "inspect", checkpoint=small("bert", max_position_embeddings=12), text=SENTENCE, story=wording.HER, cut="true"
    )
    assert told(at) == []


def test_stories_are_of_an_encoder_or_of_the_only_stack(app, small):
    at = app("inspect", checkpoint=small("t5"), attention="decoder", text="A source. ||| A target.")
    assert not [each for each in at.button_group if each.key == stories.CHIP]
    at.selectbox(key="checkpoint").set_value("bundled").run()
    assert at.button_group(key=stories.CHIP).options == list(STORIES)
