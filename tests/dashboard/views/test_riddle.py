"""The riddle that a new visitor meets on the first page, without a browser."""

import re
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from planted import save_planted
from reading import arcs, button, sent
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from attention_sieve.cache.inference import Inference
from attention_sieve.core.word_links.pronouns import LEAST_EXCESS, PRONOUNS, PronounSentence
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.pages import NO_PAGE
from attention_sieve.dashboard.views.riddle.show import OWN, RIDDLE
from attention_sieve.dashboard.views.text.stories import VISITED
from attention_sieve.dashboard.wording import TITLE

APP = str(Path(controls.__file__).with_name("app.py"))
PERCENT = re.compile(r"(\d+)%")


def percents(said):
    """The shares of a sentence in percent, rounded, of attention that is kept in half precision."""
    return pytest.approx([int(percent) for percent in PERCENT.findall(said)], abs=0.53)


@pytest.fixture
def newcomer(store, monkeypatch):
    """newcomer(checkpoint, cookies, page, **link) -> the app on a first visit to a server of this checkpoint."""

    def opened(checkpoint=None, cookies=(), page="", **link):
        monkeypatch.setattr("streamlit.runtime.context.ContextProxy.cookies", dict.fromkeys(cookies, "1"))
        if checkpoint is not None:
            monkeypatch.setattr(controls, "SUGGESTED", (checkpoint, *controls.SUGGESTED))
        at = AppTest.from_file(APP, default_timeout=120)
        # AppTest switches only to pages that are files; ours are functions, known by their address.
        at._page_hash = page and calc_hash(page)
        at.query_params.update(link)
        at.run()
        return at

    return opened


def guess(at, head):
    """Guess a head, as a click in the grid does before the run."""
    riddle = at.session_state[RIDDLE]
    at.session_state[RIDDLE] = replace(riddle, guess=head, n_guesses=riddle.n_guesses + 1)
    at.run()
    return at


def texts(at):
    """Headline, and the paragraphs of the riddle without the signs of Markdown."""
    return [re.sub(r"[\\*⁠]", "", each.value) for each in (*at.header, *at.markdown)]


def asks(at):
    """Whether the page is the riddle, and not the working page."""
    is_riddle = any(each.value.startswith("One of these ") for each in at.header)
    assert is_riddle != any(each.key == "text" for each in at.text_area)
    return is_riddle


def test_a_new_visitor_meets_the_riddle_alone_and_its_answer_is_not_on_the_page(newcomer, eager):
    at = newcomer()
    assert asks(at)
    assert texts(at)[0] == (
        "One of these 72 squares finds whom :blue-background[his] means in “My brother broke his new phone.” Find it."
    )
    assert [each.value for each in at.title] == [TITLE]
    assert [each.label for each in at.main.button] == ["Skip: straight to the tool"]
    grid = sent(at, "Heads of bundled")
    assert (grid["layers"], grid["heads"], grid["chosen"], grid["patterns"]["queries"]) == (6, 12, [], 9)
    tokens, attention = eager(PRONOUNS[0].sentence)
    for said, row in zip(chain(*grid["sentences"]), attention[:, :, tokens.index("his"), 1:-2].reshape(72, -1)):
        assert said.startswith(f"Of the words, his looks most at {tokens[1 + row.argmax()]}, ")
        assert percents(said) == [100 * row.max()]
    assert not any(sign in " ".join(texts(at)) for sign in ("L2 H4", "%"))
    assert dict(at.query_params) == {}


def test_the_riddle_is_asked_and_answered_in_german_and_says_what_the_english_sentence_means(newcomer):
    at = newcomer(language="de")
    assert texts(at)[0] == (
        "Eines dieser 72 Kästchen findet, wen :blue-background[his] meint in „My brother broke his new phone.“ "
        "Finde es."
    )
    assert any("Mein Bruder hat sein neues Handy kaputt gemacht." in each for each in texts(at))
    guess(at, (2, 4))
    assert texts(at)[0] == "Gefunden: L2 H4."
    assert any(re.search(r"gibt L2 H4 \d+\u00a0% seiner Aufmerksamkeit an brother", each) for each in texts(at))
    assert at.query_params["language"] == "de"


def test_the_right_head_is_shown_with_its_numbers_and_the_other_sentences_pass_after_the_answer(
    newcomer, monkeypatch, eager
):
    looked = []
    look = Inference.look
    monkeypatch.setattr(
        Inference,
        "look",
        lambda self, engine, text, *_, **__: looked.append(text) or look(self, engine, text, *_, **__),
    )
    at = newcomer()
    assert looked == [PRONOUNS[0].text]
    guess(at, (2, 4))
    assert set(looked) == {each.text for each in PRONOUNS}
    said = texts(at)
    assert said[0] == "Found it: L2 H4."
    share, from_others = given(eager, PRONOUNS[0], (2, 4))
    (of_head,) = [each for each in said if each.startswith("From his, L2 H4 gives ")]
    assert re.search("of its attention to brother; from any other word, at most", of_head)
    assert percents(of_head) == [100 * share, 100 * max(from_others.values())]
    (others,) = [each for each in said if each.startswith("It follows the pronoun in ")]
    found, missed = (re.findall(r"(\w+) to (\w+) \((\d+)%\)", part) for part in others.split(" it does not: "))
    assert ("she", "girl", "66") in found
    assert others.startswith(f"It follows the pronoun in {len(found)} of {len(PRONOUNS) - 1} other sentences, too: ")
    assert f". In {len(missed)} it does not: " in others
    assert (sorted(found), sorted(missed)) == tuple(sorted(part) for part in other_pronouns(eager))
    assert [head["name"] for head in arcs(at)["heads"]] == ["L2 H4"]
    assert arcs(at)["look"]["pin"] == "to-2"
    assert sent(at, "Heads of bundled")["chosen"] == [[2, 4]]


def other_pronouns(eager):
    """In which other sentences L2 H4 of the bundled checkpoint follows the pronoun, and in which not, by transformers
    alone; every word of these sentences is a single token."""
    found, missed = [], []
    for sentence in PRONOUNS[1:]:
        share, from_others = given(eager, sentence, (2, 4))
        follows = share - max(from_others.values()) >= LEAST_EXCESS
        (found if follows else missed).append((sentence.pronoun, sentence.antecedent, f"{100 * share:.0f}"))
    return found, missed


def given(eager, sentence, head):
    """What a head gives to the antecedent from the pronoun, and from each other word, by transformers alone."""
    tokens, attention = eager(sentence.sentence)
    antecedent, pronoun = (tokens.index(word.lower()) for word in (sentence.antecedent, sentence.pronoun))
    to_antecedent = attention[*head, :, antecedent]
    others = [number for number, token in enumerate(tokens) if token.isalnum() and number != pronoun]
    return to_antecedent[pronoun], {tokens[number]: to_antecedent[number] for number in others}


N_TOKENS, HIS = 9, 4
"""Of the first sentence: the number of its tokens, of which the first and the last are signs, and the pronoun."""
WRONG = "Not that one. It is L2 H4."
GUESSES = {
    (5, 2): ("Close! The one is L2 H4.", "but it looks at brother from everywhere: .* of brother, .* of my.", "to-2",
             lambda attention: np.sort(np.delete(attention[1:-2, 2], HIS - 1))[:-3:-1]),
    (1, 3): ("L1 H3 finds it, too. The strongest is L2 H4.", r"of its attention to brother; from any other word, .*",
             "to-2", lambda attention: [np.delete(attention[1:-2, 2], HIS - 1).max()]),
    (1, 8): (WRONG, r": it looks one word ahead \(\d+% of its attention\)\.", "from-4",
             lambda attention: [np.diag(attention, 1)[1:-1].mean()]),
    (0, 2): (WRONG, r": it looks at the previous word \(\d+% of its attention\)\.", "from-4",
             lambda attention: [np.diag(attention, -1)[1:-1].mean()]),
    (2, 7): (WRONG, r": it rests on the added signs \[CLS\] and \[SEP\] \(\d+% of its attention\)\.", "from-4",
             lambda attention: [attention[1:-1, [0, -1]].sum(1).mean()]),
    (0, 7): (WRONG, r": it gives \d+% of his to \S+\.", "from-4", lambda attention: [attention[HIS].max()]),
}  # fmt: skip
"""Headline, what is said of the guess, the token whose links are drawn (which it looks at, or which looks), and, from
its attention, the shares that are said after what it gives from the pronoun to its antecedent."""


def test_another_head_is_told_by_what_it_does_beside_the_right_one(newcomer, eager):
    at = guess(newcomer(), (1, 8))  # the first is followed by a hint
    tokens, attention = eager(PRONOUNS[0].sentence)
    assert (len(tokens), tokens[2], tokens[HIS]) == (N_TOKENS, "brother", "his")
    for (layer, head), (headline, does, pin, shares) in GUESSES.items():
        guess(at, (layer, head))
        assert texts(at)[0] == headline
        (said,) = [found for each in texts(at) if (found := re.search(rf"L{layer} H{head} gives .*{does}", each))]
        of_head = attention[layer, head]
        expected = [of_head[HIS, 2], *shares(of_head)]
        assert percents(said[0]) == [100 * share for share in expected]
        assert arcs(at)["look"]["pin"] == pin
        drawn = [(each["name"], each["dashed"]) for each in arcs(at)["heads"]]
        assert drawn == [("L2 H4", False), (f"L{layer} H{head}", True)]


@pytest.mark.parametrize(
    ("head", "headline"), [((5, 2), "Close: one more try."), ((1, 8), "Not that one: one more try.")]
)
def test_a_first_guess_that_is_not_right_is_followed_by_a_hint_and_no_answer(newcomer, head, headline):
    at = guess(newcomer(), head)
    said = texts(at)
    assert said[0] == headline
    assert any(each.startswith(f"Your L{head[0]} H{head[1]} gives ") for each in said)
    assert any(each.endswith("A hint: it is in layer 2. The next click shows the answer.") for each in said)
    assert "L2 H4" not in " ".join(said)
    assert sent(at, "Heads of bundled")["chosen"] == [list(head)]
    guess(at, (2, 4))
    assert texts(at)[0] == "Found it: L2 H4."


NOTHING = "has nothing to find here: there is no English"
OWN_SENTENCES = {
    "The girl thanked her mother.": r"finds her: girl \d+%\. ",
    "My sister thanked the king because he helped her.": r"finds her: sister \d+%; not he: ",
    "The king lost his crown.": r"does not find his: king \d+%\. ",
    "The old baker closed the shop.": NOTHING,
    "Der König verlor seine Krone.": NOTHING,
}


@pytest.mark.parametrize("sentence", OWN_SENTENCES)
def test_the_head_of_the_riddle_is_tried_on_the_readers_own_sentence_whether_or_not_it_finds_anything(
    newcomer, eager, sentence
):
    at = guess(newcomer(), (2, 4))
    at.session_state["first screen is drawn"] = True
    at.text_input(key=OWN).set_value(sentence)
    button(at, "Look").click().run()
    (said,) = [each for each in texts(at) if each.startswith("L2 H4, the head of the riddle, ")]
    assert re.search(OWN_SENTENCES[sentence], said)
    for pronoun, word, share in re.findall(r"(\w+): (\w+) (\d+%)", said):
        assert percents(share) == [100 * given(eager, PronounSentence(sentence, pronoun, word), (2, 4))[0]]
    assert sent(at, "Heads of bundled")["patterns"] is not None, "Patterns stay on"
    at.text_area(key="text").set_value("Another one.").run()
    assert not any("the head of the riddle" in each for each in texts(at))


def test_a_sentence_of_ones_own_leads_to_the_working_page_and_is_answered(newcomer):
    at = guess(guess(newcomer(), (5, 2)), (5, 2))
    at.session_state["first screen is drawn"] = True
    at.text_input(key=OWN).set_value("  ")
    button(at, "Look").click().run()
    assert any("Close!" in each for each in texts(at)), "blanks are no sentence"
    at.text_input(key=OWN).set_value("The girl said that she was tired.")
    button(at, "Look").click().run()
    assert not asks(at)
    assert at.text_area(key="text").value == "The girl said that she was tired."
    at.run()  # habits are measured below the first screen
    assert any("; other words give it " in each for each in texts(at))


@pytest.mark.parametrize("link", [{"head": "1-2"}, {"lesson": "1"}, {"text": "A dog ran."}, {NO_PAGE: "nowhere"}])
def test_whoever_comes_by_a_link_sees_the_working_page(newcomer, link):
    assert not asks(newcomer(**link))


def test_whoever_has_opened_another_page_first_sees_the_working_page(newcomer):
    at = newcomer(page="roles")
    assert not at.header
    at.session_state["first screen is drawn"] = True  # said by a browser, which AppTest has not
    at._page_hash = calc_hash("inspect")
    at.run()
    assert not asks(at)


def test_another_checkpoint_asks_the_sentence_whose_pronoun_one_of_its_heads_follows(newcomer, tmp_path):
    at = newcomer(save_planted(tmp_path / "planted", "she", "g", (1, 2)))
    assert texts(at)[0].startswith("One of these 6 squares finds whom :blue-background[she] means in “The girl said")
    guess(guess(at, (0, 0)), (0, 0))
    said = texts(at)
    assert said[0] == "Not that one. It is L1 H2."
    assert f"It follows the pronoun in none of {len(PRONOUNS) - 1} other sentences: one proves nothing yet." in said
    (sentence,) = [each for each in said if each.startswith("From she, L1 H2 gives ")]
    share, greatest_other = map(int, PERCENT.findall(sentence)[:2])
    assert share > 95 > 50 > greatest_other


@pytest.mark.parametrize(("family", "changed"), [("gpt2", {}), ("t5", {}), ("bert", {"max_position_embeddings": 6})])
def test_a_checkpoint_without_such_a_head_shows_the_working_page(newcomer, small, family, changed):
    assert not asks(newcomer(small(family, **changed)))


def test_a_checkpoint_that_is_not_there_is_reported_on_the_working_page(newcomer):
    at = newcomer("/nowhere")
    assert not asks(at)
    assert at.error


def test_whoever_comes_again_sees_the_working_page(newcomer):
    assert not asks(newcomer(cookies=[VISITED]))
