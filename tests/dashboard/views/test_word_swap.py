"""A changed word on the page Inspect, without a browser."""

import re
from dataclasses import replace

import numpy as np
import pytest
from reading import button, said, sent

from attention_sieve.core.comparison.word_swap import SentenceWord, WordPair, WordSwap, largest_move
from attention_sieve.dashboard.views.text import wording as stories_wording
from attention_sieve.dashboard.views.word_swap import wording
from attention_sieve.dashboard.views.word_swap.choice import EXAMPLES, SWAP

A, B = "The cat sat on the red mat.", "The cat sat on the black mat."
PICTURES = (wording.CONTROLS, "Attention of", "Difference of the attention")
MAP = "Attention that moves"


@pytest.fixture
def swap(app, small):
    def opened(checkpoint=None, **link):
        return app(**({"checkpoint": checkpoint or small("bert"), "text": A, "swap": B} | link))

    return opened


def markdown(at, start):
    return next(each.value for each in at.markdown if each.value.startswith(start))


def test_one_click_shows_the_first_visit_two_sentences_that_differ_in_a_word(app):
    at = app()
    button(at, wording.CHANGE).click().run()
    assert not at.error
    assert (at.text_area(key="text").value, at.text_area(key=SWAP).value) == (EXAMPLES[0].a, EXAMPLES[0].b)
    assert np.shape(sent(at, MAP)["texts"]) == (6, 12)
    assert sent(at, PICTURES[2])["signed"]
    moves = re.search(
        r"\*\*L5 H4\*\* moves (\d+)% of its attention on average", "\n".join(each.value for each in at.markdown)
    )
    assert int(moves[1]) > 50, "a first example in which little happens shows little"
    assert wording.WHAT_IS_IT not in [each.value for each in at.caption]
    button(at, EXAMPLES[-1].label).click().run()
    assert wording.WHAT_IS_IT in [each.value for each in at.caption]


def test_the_link_shows_map_both_sentences_and_their_difference_row_by_row(swap):
    at = swap(head="1-2")
    assert not at.error
    a, b, difference = (
        sent(at, label)
        for label in ("Attention of L1 H2 in sentence a", "Attention of L1 H2 in sentence b", PICTURES[2])
    )
    assert a["queries"]["tokens"] == ["[CLS]", "The", "cat", "sat", "on", "the", "red", "mat", ".", "[SEP]"]
    assert b["queries"]["tokens"] == [*a["queries"]["tokens"][:6], "black", *a["queries"]["tokens"][7:]]
    assert difference["queries"]["tokens"][6] == "red → black"
    pictures = [sent(at, wording.CONTROLS), a, b, difference]
    assert len({each["text"] for each in pictures}) == 1
    assert {each["group"] for each in pictures} == {"swap"}
    assert [each["controls"] for each in pictures] == ["alone", "without", "without", "without"]
    (moves,) = (each.value for each in at.markdown if each.value.startswith("**L1 H2** moves"))
    assert re.search(
        r"moves \d+% of its attention on average; most from “\w+”, which gives “.+” \d+% instead of \d+%, and “",
        moves,
    )
    assert moves.endswith(wording.NOT_TESTED)
    assert markdown(at, "**(a)**") == "**(a)** :orange-background[**red**]"
    assert markdown(at, "**(b)**") == "**(b)** :orange-background[**black**]"


def test_the_head_shown_first_is_the_one_that_moves_most(swap):
    at = swap()
    values = np.array([[float(text) for text in row] for row in sent(at, MAP)["texts"]])
    name = sent(at, PICTURES[2])["heads"][0]["name"]
    layer, head = map(int, re.findall(r"\d+", name))
    assert values[layer, head] == values.max()


def test_a_head_that_was_chosen_before_gives_way_to_the_one_that_moves_most(app):
    at = app(head="0-3")
    button(at, wording.CHANGE).click().run()
    (first,) = sent(at, MAP)["chosen"]
    assert first == [5, 4]
    assert at.query_params["head"] == "5-4"
    at.session_state["head"] = [(2, 7)]
    at.run()
    assert sent(at, MAP)["chosen"] == [[2, 7]], "one that is chosen here stays"
    button(at, EXAMPLES[1].label).click().run()
    assert sent(at, MAP)["chosen"] != [[2, 7]]


def test_words_that_one_sentence_lacks_are_gaps_there_and_said_to_have_no_partner(swap):
    at = swap(swap="The cat sat quietly on the red mat.")
    a, b, difference = (sent(at, label) for label in ("Attention of", "Attention of L", PICTURES[2]))
    row = difference["queries"]["tokens"].index("quietly (only b)")
    assert a["queries"]["tokens"][row] == wording.GAP
    assert markdown(at, "1 word has no partner in the other sentence")
    assert b["queries"]["tokens"][:row] == difference["queries"]["tokens"][:row]


def test_a_text_of_ones_own_is_put_beside_itself_to_be_changed(app, small):
    at = app(checkpoint=small("bert"), text=f"One dog ran.\n{A}", number="2")
    button(at, wording.CHANGE).click().run()
    assert at.text_area(key=SWAP).value == A
    assert [each.value for each in at.info] == [wording.EQUAL]
    at.text_area(key=SWAP).set_value(B).run()
    assert sent(at, MAP)
    button(at, wording.BACK).click().run()
    assert [each.key for each in at.text_area if each.key == SWAP] == []
    assert at.text_area(key="text").value == f"One dog ran.\n{A}"
    assert sent(at, "Heads of")


def test_an_example_replaces_both_and_the_readers_own_text_can_be_brought_back(swap, small):
    at = swap(small("bert", max_position_embeddings=128))
    button(at, EXAMPLES[1].label).click().run()
    assert (at.text_area(key="text").value, at.text_area(key=SWAP).value) == (EXAMPLES[1].a, EXAMPLES[1].b)
    assert sent(at, MAP)
    button(at, wording.BACK).click().run()
    button(at, stories_wording.OWN_TEXT).click().run()
    assert at.text_area(key="text").value == A


@pytest.mark.parametrize(
    ("text", "other", "sentence"),
    [
        (A, f"{B}\n{A}", wording.several(2)),
        (A, f"{A} ||| {B}", "The second text is a pair. A changed word is shown in single sentences"),
        (A, A.upper(), "have the same tokens, so nothing differs."),
        (A, "a " * 600, "tokens"),
        (" ", B, "There is no text yet."),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_sentence(swap, text, other, sentence):
    at = swap(text=text, swap=other)
    (error,) = said(at)
    assert sentence in error


def test_an_empty_second_sentence_is_asked_for_and_the_fields_stay(swap):
    at = swap()
    at.text_area(key=SWAP).set_value("").run()
    assert said(at) == [wording.EMPTY]
    at.text_area(key=SWAP).set_value(B).run()
    assert sent(at, MAP)


@pytest.mark.parametrize(
    ("of_the", "of_dog", "sentence"),
    [
        (0.2, 0.2, "**L0 H0** moves less than 1% of its attention."),
        (0.2, 1.0, "**L0 H0** moves 40% of its attention on average, only from the words that were changed."),
        (
            0.6,
            0.2,
            "**L0 H0** moves 20% of its attention on average; most from “the”, which gives “dog → cat” 60% instead of "
            "20%, and “\\[CLS\\]” 10% instead of 20%.",
        ),
        (np.nan, np.nan, "L0 H0 is not in this checkpoint"),
    ],
)
def test_the_sentence_on_a_head_says_where_its_attention_goes(of_the, of_dog, sentence):
    """[CLS] the dog against [CLS] the cat; both words give an even fifth to each of five at first."""
    names = ("[CLS]", "the", "dog", "sat", "[SEP]")
    words = [SentenceWord(text=name, tokens=(row,), is_special=name[0] == "[") for row, name in enumerate(names)]
    pairs = [WordPair(a=word, b=replace(word, text="cat") if word.text == "dog" else word) for word in words]
    a = np.full((1, 1, 5, 5), 0.2)
    b = a.copy()
    for row, share in ((1, of_the), (2, of_dog)):
        b[0, 0, row] = (1 - share) / 4
        b[0, 0, row, 2] = share
    moved = np.abs(b - a)[:, :, 1:3].sum(axis=-1).mean(axis=-1) / 2
    swap = WordSwap(words=tuple(pairs), a=a, b=b, difference=b - a, moved=moved)
    assert wording.head_moves((0, 0), swap, largest_move(swap, (0, 0))).startswith(sentence)


def frames(at):
    return [each.value for each in at.dataframe]


def test_a_causal_language_model_says_how_likely_the_words_are_and_what_comes_next(swap, small):
    at = swap(small("gpt2", "CausalLM"))
    following, words = frames(at)
    assert list(following.columns) == ["next token", "(a)", "(b)"]
    assert words[["word in (a)", "word in (b)"]].to_numpy().tolist() == [["red", "black"]]
    assert ((words[["(a)", "(b)"]] > 0) & (words[["(a)", "(b)"]] < 1)).to_numpy().all()
    # What stands before the change is the same in a model that only looks back.
    difference = sent(at, PICTURES[2])
    assert difference["queries"]["tokens"].index("red → black") == 5


def test_a_classifier_shows_its_classes_for_both(swap, small):
    (classes,) = frames(swap(small("bert", "SequenceClassification", num_labels=2, initializer_range=0.9)))
    assert list(classes.columns) == ["class", "(a)", "(b)"]
    np.testing.assert_allclose(classes[["(a)", "(b)"]].sum(), 1, atol=1e-6)


def test_the_encoder_of_an_encoder_decoder_compares_and_its_decoder_says_why_not(swap, small):
    at = swap(small("t5", "Seq2SeqLM"))
    assert not at.error
    assert wording.ONLY_ENCODER in [each.value for each in at.markdown]
    assert said(swap(small("t5", "Seq2SeqLM"), attention="decoder")) == [wording.NO_PAIRS]


def test_text_from_people_is_no_markup(swap):
    at = swap(swap="The cat sat on the **<b>x</b>** mat.")
    assert r"\*" in markdown(at, "**(b)**")
    assert "<b>" not in markdown(at, "**(b)**")


def test_a_pair_of_segments_has_no_word_to_change_and_the_button_says_so(app):
    at = app(text="The cat sat. ||| A dog ran.")
    change = button(at, wording.CHANGE)
    assert (change.disabled, change.help) == (True, wording.NOT_OF_PAIRS)
    assert not button(app(text="The cat sat."), wording.CHANGE).disabled
