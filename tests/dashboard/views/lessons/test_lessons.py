"""The lessons: their steps on the real pages, with what they compute, for any checkpoint, and what leaving restores."""

import re
import shutil
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from reading import arcs, sent, told

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import Window
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import tokenize
from attention_sieve.dashboard import controls, state
from attention_sieve.dashboard.figures.miniatures import fan
from attention_sieve.dashboard.samples import EXAMPLE
from attention_sieve.dashboard.views.lessons import answers, course
from attention_sieve.dashboard.views.lessons.computation import StepInputs
from attention_sieve.dashboard.views.lessons.page import TYPED_CODE
from attention_sieve.dashboard.views.lessons.plans import steps_of
from attention_sieve.dashboard.views.lessons.sentences import MORE_EVIDENCE, SIMILAR
from attention_sieve.dashboard.views.lessons.tally import Visitor, tally
from attention_sieve.dashboard.views.text.stories import SENTENCE

ROOM = {"bert": {"max_position_embeddings": 128}, "gpt2": {"n_positions": 128}}
"""The sentence has 63 tokens for their small vocabularies."""


def click(at, key):
    found = next(button for button in at.button if button.key == key)
    found.click().run()
    return at


def go_on(at):
    """Press Next, and once more where a step then asks for a guess."""
    click(at, "lesson next")
    return click(at, "lesson next") if ASKED in told(at) else at


ASKED = "You have not guessed yet."


@pytest.mark.parametrize(
    ("where", "lesson", "family", "off"),
    [("inspect", 2, "gpt2", None), ("inspect", 3, "bert", "0-0,1-1"), ("roles", 4, "bert", None),
     ("inspect", 5, "gpt2", None)],
)  # fmt: skip
def test_every_step_says_what_it_finds_in_any_checkpoint_and_no_word_of_tests(app, small, where, lesson, family, off):
    at = app(where, checkpoint=small(family, **ROOM[family]), lesson=str(lesson), step="1", off=off)
    for place in range(len(steps_of(lesson))):
        assert f"Step {place + 1} of {len(steps_of(lesson))}" in told(at)
        if place + 1 < len(steps_of(lesson)):
            assert not at.tabs
            assert not at.expander
            beside = told(at).replace("it takes no test settings", "")
            assert not re.search(r"\btau\b|\bp-value|\bVenn\b|p =", beside), beside
            go_on(at)
    assert at.radio(key=f"check {lesson}").options
    click(at, "leave lesson")
    assert at.expander


def test_another_text_does_not_do_where_words_of_the_sentence_are_asked_for(app):
    at = app(lesson="1", step="2")
    at.text_area(key="text").set_value("Something else.").run()
    assert "another text is on screen" in told(at)
    click(at, "put sentence back")
    assert at.text_area(key="text").value == SENTENCE
    assert "Here is a riddle" in told(at)
    click(at, "lesson guess it")
    assert "Click a word in the right-hand column first." in told(at)
    assert "Step 2 of 6" in told(at)
    go_on(at)
    at.text_area(key="text").set_value("Something else.").run()
    assert "another text is on screen" in told(at)
    click(at, "lesson next")
    assert "another text" not in told(at)


def test_a_prediction_stands_beside_the_answer(app):
    at = app(lesson="2", step="3")
    at.number_input(key="guessed number").set_value(0)
    click(at, "lesson guess it")
    found = re.search(r"(\d+) of 72 heads. Most of all (L\d+ H\d+)", told(at))
    assert found
    assert "You said 0: not yet." in told(at)
    click(at, "lesson back")
    at.number_input(key="guessed number").set_value(int(found[1]))
    click(at, "lesson guess it")
    assert f"You said {found[1]}: right." in told(at)
    assert at.query_params["said"] == found[1]
    click(at, "lesson next")
    assert "said" not in at.query_params


def test_a_link_holds_the_prediction_of_the_step_that_it_leads_to(app):
    at = app(lesson="2", step="2", said="0-2")
    assert "You said L0 H2 (100%): right." in told(at)
    assert at.session_state[state.HEADS] == [(0, 2)]
    assert "You said 7: not yet." in told(app(lesson="2", step="4", said="7"))
    assert re.search(r"You said closed \(\d+%\): not yet\.", told(app(lesson="1", step="3", said="5")))
    assert "You have not guessed." in told(app(lesson="2", step="2", said="9-99"))


@pytest.mark.parametrize(
    ("lesson", "step", "said"),
    [
        ("2", "2", "<img src=x onerror=alert(1)>"),
        ("2", "2", "7"),
        ("2", "4", "1" * 7),
        ("2", "1", "0-2"),
        ("1", "3", "x" * 5000),
    ],
)
def test_a_prediction_that_the_step_does_not_ask_for_is_said(app, lesson, step, said):
    at = app(lesson=lesson, step=step, said=said)
    assert "You said" not in told(at)
    assert any("holds a guess that this step does not ask for" in each.value for each in at.warning)
    assert all(len(each.value) < 500 for each in at.warning)
    assert "said" not in at.query_params


def test_settings_of_the_link_stay_in_force_in_a_lesson(app):
    assert not any(slider.key == "tau" for slider in app(lesson="2", step="2").slider)
    assert app(lesson="2", step="2", tau="2.5").slider(key="tau").value == 2.5


def test_a_checkpoint_that_takes_no_such_text_keeps_the_lesson(app, small):
    at = app(checkpoint=small("bert"), lesson="1", step="1")
    assert any("takes 40" in each.value for each in at.error)
    click(at, "lesson next")
    assert "Step 2 of 6" in told(at)


@pytest.mark.parametrize(("lesson", "step", "said"), [("9", "1", "lesson 7, step 1"), ("x", "77", "lesson 1, step 6")])
def test_a_link_to_a_step_that_there_is_not_is_said(app, lesson, step, said):
    at = app(lesson=lesson, step=step)
    assert any(said in each.value for each in at.warning)


def test_the_lesson_of_chance_counts_random_models_and_takes_texts(app, small):
    at = app("roles", checkpoint=small("bert"), lesson="4", step="2", corpus=controls.TYPED)
    at.number_input(key="guessed number").set_value(1)
    click(at, "lesson guess it")
    assert re.search(r"for each of 3 models: \d+, \d+, \d+. With the weights that were learnt: \d+", told(at))
    for _ in range(2):
        click(at, "lesson next")
    assert at.session_state["corpus"] == controls.TYPED
    assert re.search(r"only 3, and over these, \d+ of 6 heads.*best odds: 1(\.\d)?\s:\s", told(at))
    before = at.session_state["corpus_text"]
    at.text_input(key=course.SENTENCE_TO_ADD).set_value(" The cat sat. ").run()
    assert at.session_state["corpus_text"] == f"{before}\nThe cat sat."
    assert at.text_input(key=course.SENTENCE_TO_ADD).value == ""
    assert "only 4, and over these" in told(at)
    click(at, "sentence 1")
    assert f"Added: {MORE_EVIDENCE[0]}" in told(at)
    assert next(button for button in at.button if button.key == "sentence 1").disabled


@pytest.mark.parametrize(("page", "lesson"), [("inspect", "2"), ("roles", "4"), ("compare", "6")])
def test_who_came_by_a_link_leaves_to_the_page_as_it_first_is(app, small, page, lesson):
    checkpoint = small("bert", **ROOM["bert"])
    at, new = (app(page, checkpoint=checkpoint, **way) for way in ({"lesson": lesson, "step": "4"}, {}))
    click(at, "leave lesson")
    for key in ("text", "corpus", "corpus_text", "patterns", state.WITH):
        if key in new.session_state:
            assert at.session_state[key] == new.session_state[key], key
    assert at.session_state[state.OFF] == []


def test_the_lesson_of_fine_tuning_names_the_layer_that_moved(app, small):
    a, b = small("bert", **ROOM["bert"]), small("bert", "SequenceClassification", num_labels=2, **ROOM["bert"])
    at = app("compare", checkpoint=a, lesson="6", step="2", **{"with": b})
    at.number_input(key="guessed number").set_value(0)
    click(at, "lesson guess it")
    assert re.search(r"Layer \d\. There, on average over its heads, \d+% of the attention goes elsewhere", told(at))


def test_the_lesson_of_fine_tuning_says_that_it_needs_a_second_checkpoint(app, small):
    at = app("compare", checkpoint=small("bert"), lesson="6", step="1")
    assert "Choose a second one below" in told(at)


@pytest.fixture(scope="module")
def by_hand():
    """The lessons' sentence in a checkpoint of one layer and three heads: spread evenly, one back, and resting."""
    text = tokenize(Text((SENTENCE,)), load_checkpoint(find_checkpoint("bundled")).tokenizer, 100)
    n = len(text.ids)
    attention = np.full((1, 3, n, n), 1 / n)
    attention[0, 1] = np.eye(n, k=-1) + np.eye(n) * (np.arange(n) == 0)
    attention[0, 2] = 0.2 / n
    attention[0, 2, :, -1] += 0.8
    shop, closed = text.tokens.index("shop"), text.tokens.index("closed")
    attention[0, 2, closed] = 0
    attention[0, 2, closed, shop] = 1
    looked = TextAttention(
        text=PassText(kind="self", source=text),
        causal=False,
        window=Window(queries=(0, n), keys=(0, n)),
        attention=attention,
        block=0,
        overview=None,
    )
    return StepInputs(visit=None, text_attention=looked, typed=SENTENCE), n, closed, shop


def test_answers_by_hand(by_hand):
    seen, n, closed, shop = by_hand
    found = answers.previous_word(seen)
    assert (found.heads, found.values["share"], found.section) == (((0, 1),), "100%", "")
    assert [found.is_right(guess) for guess in ((0, 1), (0, 0), None)] == [True, False, False]
    half = seen.text_attention.attention.copy()
    half[0, 0] = 0.6 * half[0, 1] + 0.4 * half[0, 0]
    half[0, 2] = 0.95 * half[0, 1] + 0.05 * half[0, 2]
    found = answers.previous_word(replace(seen, text_attention=replace(seen.text_attention, attention=half)))
    assert [(found.is_right((0, head)), found.is_close((0, head))) for head in (0, 1, 2)] == [
        (False, True), (True, True), (True, True)
    ]  # fmt: skip
    found = answers.previous_word(seen)
    assert found.of_guess((0, 0)) == f"L0 H0 ({100 / n:.0f}%)"
    found = answers.near_object(seen)
    assert (found.heads, found.query) == (((0, 2),), closed)
    assert (found.values["word"], found.values["most"], found.values["share"]) == ("closed", "shop", "100%")
    assert [found.is_right(guess) for guess in (shop, closed)] == [True, False]
    found = answers.resting(seen)
    assert (found.values["count"], found.values["heads"], found.values["head"]) == ("1", "3", "L0 H2")


def test_a_checkpoint_without_such_a_head_is_told_so(by_hand):
    seen, n, *_ = by_hand
    even = replace(seen, text_attention=replace(seen.text_attention, attention=np.full((1, 2, n, n), 1 / n)))
    assert answers.previous_word(even).section == "none"
    assert not answers.previous_word(even).is_right((0, 0))


def test_feedback_says_what_the_guessed_head_does(by_hand):
    seen, n, closed, shop = by_hand
    attention = np.full((1, 4, n, n), 1 / n)
    attention[0, 0, closed] = np.eye(n)[shop]
    attention[0, 1] = np.eye(n, k=1) + np.eye(n) * (np.arange(n) == n - 1)
    attention[0, 2] = np.eye(n)
    attention[0, 3] = np.eye(n)[-1]
    result = answers.previous_word(replace(seen, text_attention=replace(seen.text_attention, attention=attention)))
    for head, said in enumerate(("looks_far", "looks_ahead", "looks_at_itself", "rests")):
        phrase = result.doing((0, head))
        assert phrase.name == said
        assert dict(phrase.values).items() >= {"head": f"L0 H{head}", "share": "100%"}.items()
    assert dict(result.doing((0, 0)).values).items() >= {"word": "closed", "most": "shop"}.items()


def test_words_in_pieces_are_named_whole(app):
    """Two pieces of one word are one answer, and one guess."""
    at = app(lesson="3", step="3", text="My uncle repaired three gramophones.")
    assert "repaired → gramophones." in told(at)
    assert "##" not in told(at)


def test_a_checkpoint_that_predicts_shows_its_prediction_and_how_few_heads_change_it(app, small):
    at = app(lesson="5", step="1", checkpoint=small("bert", "SequenceClassification", num_labels=2, **ROOM["bert"]))
    assert "What the model predicts" in told(at)
    assert re.search(r"1\. LABEL_\d \*\*0\.\d\d\*\*", told(at))
    click(at, "lesson guess it")
    assert "Type a number first." in told(at)
    at.number_input(key="guessed number").set_value(0)
    click(at, "lesson guess it")
    assert re.search(r"You said 0: (not yet|close).*(of 6: without L|the same line comes first)", told(at), re.DOTALL)


def test_switching_heads_off_moves_the_ranking_while_the_lesson_asks(app):
    at = app(lesson="5", step="1", head="5-10,5-11,5-5")
    assert f"1. {SIMILAR[0]}" in told(at)
    click(at, "switch off")
    assert f"1. {SIMILAR[1]}" in told(at)
    assert "Step 1 of" in told(at)


def test_only_the_number_itself_is_right_and_one_within_a_tenth_of_it_is_close(app):
    found = answers._number(40, 72)
    guesses = (40, 44, 36, 45, 35, None, (1, 2))
    assert [found.is_right(guess) for guess in guesses] == [True] + [False] * 6
    assert [found.is_close(guess) for guess in guesses] == [True] * 3 + [False] * 4
    counted = int(re.search(r"(\d+) of 72 heads", told(app(lesson="2", step="4")))[1])
    at = app(lesson="2", step="4", said=str(counted + 1))
    assert f"You said {counted + 1}: close. It is less." in told(at).replace("**", "")


def test_a_sentence_in_another_language_gets_no_english_grammar(app):
    at = app(lesson="3", step="3", text="Der Hund frisst den Knochen.")
    assert "type an English sentence of your own" in told(at).replace("*", "")
    assert "den → " not in told(at)
    assert any("This looks like German. The parser here reads English" in each.value for each in at.info)
    assert not any("looks like" in each.value for each in app(lesson="3", step="3", text="She ate pizza.").info)


def test_a_riddle_sends_words_without_links_and_its_answer_the_links_and_the_guess(app):
    asking = arcs(app(lesson="3", step="1", head="0-2"))
    assert asking["queries"]["tokens"][asking["asked"]["query"]] == "opened"
    assert not any(b64decode(asking["attention"]))
    assert (asking["asked"]["guess"], asking["asked"]["is_answered"]) == (None, False)
    answer = arcs(app(lesson="3", step="2", said="1"))
    assert answer["asked"] == {"query": asking["asked"]["query"], "guess": 1, "is_answered": True}
    assert answer["heads"][0]["name"] == asking["heads"][0]["name"]
    assert any(b64decode(answer["attention"]))


@pytest.mark.parametrize(
    ("lesson", "step", "answer"),
    [
        ("1", "2", r"\d+%"),
        ("2", "1", r"L\d+ H\d+"),
        ("2", "3", r"\d+ of 72"),
        ("5", "1", r"\d+ of 72: without L"),
    ],
)
def test_the_step_that_asks_does_not_give_its_answer_away(app, lesson, step, answer):
    at = app(lesson=lesson, step=step)
    asking = told(at)
    said = told(app(lesson=lesson, step=str(int(step) + 1)))
    found = re.search(answer, said.partition("You have not guessed.")[2])
    assert found, said
    assert found[0] not in asking


def test_the_next_lesson_begins_after_a_sentence_of_the_readers_own(app):
    """Also with a chosen head and a changed setting, which the address holds, too."""
    at = app(lesson="2", step=str(len(steps_of(2))), head="1-2", tau="2.5")
    at.text_area(key="text").set_value("The tired girl reads a long book.").run()
    click(at, "lesson next")
    assert "Lesson 3 of" in told(at)


@pytest.fixture
def pair(store):
    """Makes a second checkpoint in the place of the sample, while a test runs."""
    folder = store / "checkpoints" / "movie-reviews"
    yield lambda: shutil.copytree(find_checkpoint("bundled").folder, folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_the_lesson_on_a_pair_and_its_chip_are_offered_once_the_pair_is_there(app, pair):
    def offered():
        lessons = {button.key for button in app("lessons").button}
        chips = [link.label for link in app().get("page_link")]
        after = click(app(lesson="5", step=str(len(steps_of(5)))), "lesson next")
        return "begin 6" in lessons, "Before and after training" in chips, after.session_state["lesson"]

    assert offered() == (False, False, 7)
    pair()
    assert offered() == (True, True, 6)


def test_the_reader_switches_the_language_on_the_list_of_lessons_and_the_link_and_numbers_follow(app):
    at = app("lessons", language="de")
    assert at.selectbox(key="language").value == "de"
    assert "1. Was ein Kopf ist" in told(at)
    assert "(englisch)" in told(at)
    at.selectbox(key="language").set_value("en").run()
    assert "language" not in at.query_params
    at.selectbox(key="language").set_value("de").run()
    assert at.query_params["language"] == "de"
    at = app(lesson="2", step="2", said="0-2", language="de")
    assert "Du hast L0 H2 (100\u00a0%) gesagt: richtig." in told(at)
    assert "100\u00a0% seiner Aufmerksamkeit" in told(at)
    click(at, "lesson next")
    assert at.query_params["language"] == "de"
    assert "Schritt 3 von" in told(at)


def test_a_language_that_there_is_not_is_said(app):
    at = app("lessons", language="<b>xx")
    assert any("no lessons in this language" in each.value for each in at.warning)
    assert "language" not in at.query_params


def test_who_has_a_code_joins_the_class_on_the_list_of_lessons(app):
    code = tally().make(Visitor("teacher's page", None))
    at = app("lessons")
    at.text_input(key=TYPED_CODE).set_value("no code")
    click(at, "join class")
    assert "There is no class" in told(at)
    at.text_input(key=TYPED_CODE).set_value(f" {code.lower()} ")
    click(at, "join class")
    assert f"You are in the class {code}." in told(at)
    assert at.session_state[state.CLASS] == code


def test_the_code_of_the_class_and_a_link_to_this_step_stand_in_a_corner_of_present(app):
    code = tally().make(Visitor("teacher's page", None))
    at = app(**{"lesson": "2", "step": "1", "present": "1", "class": code})
    (corner,) = [each.body for each in at.get("html") if "QR" in each.body]
    assert f"<b>{code}</b>" in corner
    assert 'src="data:image/svg+xml' in corner
    assert not [each for each in app(**{"lesson": "2", "step": "1", "class": code}).get("html") if "QR" in each.body]


def thumbnails(at):
    """Of each lesson that is offered, an SVG, or nothing where only its place is kept."""
    encoded = [re.search('base64,([^"]*)|$', element.value)[1] for element in at.get("html")[:-1]]
    return [b64decode(svg or "").decode() for svg in encoded]


def test_a_lesson_has_a_thumbnail_of_what_the_checkpoint_does_in_its_sentence(app):
    pictures = thumbnails(app("lessons"))
    inputs = StepInputs(
        visit=None, text_attention=controls.inference().look(Engine(find_checkpoint(BUNDLED)), EXAMPLE)[0]
    )
    assert pictures[0] == fan(inputs.attention.attention[answers.previous_word(inputs).heads[0]])
    assert all(pictures[:3])


def test_a_thumbnail_that_takes_more_than_that_is_there_once_its_lesson_has_computed_it(app, small):
    checkpoint = small("bert", **ROOM["bert"])
    assert not thumbnails(app("lessons", checkpoint=checkpoint))[4]
    app("inspect", checkpoint=checkpoint, lesson="5", step="3")
    assert thumbnails(app("lessons", checkpoint=checkpoint))[4]


def test_an_unanswered_question_is_asked_once_before_its_answer_and_a_chosen_guess_goes_with_next(app):
    at = app(lesson="2", step="1")
    click(at, "lesson next")
    assert ASKED in told(at)
    assert "Step 1 of" in told(at)
    click(at, "lesson next")
    assert "You have not guessed." in told(at)
    at = app(lesson="2", step="1")
    at.session_state[state.HEADS] = [(0, 2)]
    at.run()
    click(at, "lesson next")
    assert "You said L0 H2 (100%): right." in told(at).replace("**", "")


def test_back_goes_one_step_back_to_what_that_step_was_about_also_after_a_link(app):
    at = app("roles", lesson="4", step="5", corpus=None, corpus_text=None)
    assert at.session_state["corpus"] == controls.TYPED
    click(at, "lesson back")
    assert "Step 4 of" in told(at)
    assert at.session_state["corpus"] == "sample pairs and texts"
    at = app(lesson="3", step="3", text="The tired girl reads a long book.")
    click(at, "lesson next")
    click(at, "lesson back")
    assert "Step 3 of" in told(at)
    assert "reads → book" in told(at)


@pytest.mark.parametrize("pressed", [["back", "next"], ["next", "back"]])
def test_back_and_next_that_are_pressed_within_one_run_of_the_page_lead_to_where_the_reader_was(app, pressed):
    at = app(lesson="1", step="4")
    for name in pressed:
        next(button for button in at.button if button.key == f"lesson {name}").click()
    at.run()
    assert "Step 4 of 6" in told(at)


def test_no_letter_of_a_role_is_shown_before_the_lesson_on_roles(app):
    for lesson in ("1", "2", "3", "5"):
        grid = sent(app(lesson=lesson, step="1"), "Heads of")
        assert (grid["roles"], grid["shown"]) == ([], [])
    assert sent(app("roles", lesson="4", step="1"), "Roles of")["roles"]


def test_the_grid_of_random_weights_stands_where_it_is_spoken_of(app, small):
    checkpoint = small("bert")
    at = app("roles", checkpoint=checkpoint, lesson="4", step="3")
    random, own = sent(at, "Control, random weights"), sent(at, "Roles of")
    said = re.search(r"for each of 3 models: (\d+), .* were learnt: (\d+)", told(at))
    syntactic = [role["label"] for role in own["roles"]].index("syntactic")
    for grid, count in zip((random, own), said.groups()):
        states = np.frombuffer(b64decode(grid["states"]), "u1").reshape(len(grid["roles"]), -1)
        assert int(states[syntactic].sum()) == int(count)


def test_a_sentence_in_another_language_is_not_added_to_texts_that_are_parsed_as_english(app):
    at = app("roles", lesson="4", step="5")
    before = at.session_state["corpus_text"]
    at.text_input(key=course.SENTENCE_TO_ADD).set_value("Der alte Hund frisst heute den harten Knochen nicht.").run()
    assert "Not added: this looks like German. Type one in English" in told(at)
    assert at.session_state["corpus_text"] == before
