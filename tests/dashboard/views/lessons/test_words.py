"""The words of the lessons: what is checked when they are read, and that a language needs no code."""

import re
import shutil
import tomllib

import pytest

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.word_links.pronouns import PRONOUNS
from attention_sieve.dashboard import languages as room
from attention_sieve.dashboard.glossary import TERMS
from attention_sieve.dashboard.languages import (
    ENGLISH,
    PHRASES,
    RIDDLE,
    TEXTS,
    Prose,
    languages,
    localized,
    phrases,
    say,
    translated_terms,
)
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.lessons.content import read_words
from attention_sieve.dashboard.views.lessons.plans import FILES, LESSONS, is_translated, steps_of, words_of
from attention_sieve.dashboard.views.lessons.sentences import FAR, NEAR, SIMILAR
from attention_sieve.dashboard.views.lessons.sheet import BLANK, material_of, sheet

NUMBERS = range(1, len(LESSONS) + 1)
WORDS_A_MINUTE = 200
"""Of a slow reader of a foreign language; adults read English texts at about 240."""
GOOD = """+++
title = "A title"
claim = "A claim."
+++
## look
Of @{heads} heads.

## check
Which?

- [ ] This.
- [x] That.

> Because.
"""


@pytest.fixture
def second_language(tmp_path, monkeypatch):
    """A second language: the English texts under other titles."""
    folder = tmp_path / "texts" / "xx"
    shutil.copytree(TEXTS, tmp_path / "texts")
    shutil.copytree(TEXTS / ENGLISH, folder)
    for path in (*folder.glob("*.md"), folder / PHRASES):
        path.write_text(re.sub('^(title|step) = "', r"\g<0>XX ", path.read_text(), flags=re.MULTILINE))
    monkeypatch.setattr(room, "TEXTS", tmp_path / "texts")
    yield "xx"
    words_of.cache_clear()
    phrases.cache_clear()


def read(tmp_path, text, wanted=None):
    path = tmp_path / "1-lesson.md"
    path.write_text(text)
    return read_words(path, {"look": {"heads"}} if wanted is None else wanted)


def test_a_lesson_is_read(tmp_path):
    words = read(tmp_path, GOOD)
    assert (words.title, words.claim) == ("A title", "A claim.")
    assert words.sections["look"].substitute(heads="72") == "Of 72 heads."
    assert (words.question.options, words.question.right) == (("This.", "That."), 1)
    assert words.question.afterwards == "Because."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("@{heads}", "@{tokens}"), "names 'tokens', which its step does not compute"),
        (("Of @{heads}", "Of 72"), "a number is written"),
        (("## look", "## lok"), "the section 'look' is missing"),
        (("## check", "## more\nText.\n\n## check"), "no step 'more'"),
        (("- [x] That.\n", ""), "needs two options or more"),
        (("- [ ] This.", "- [x] This."), "one of them right"),
        (("> Because.", ""), "one line of >"),
        (("Of @{heads}", "Mail a@ b of @{heads}"), "begins no value"),
    ],
)
def test_what_is_wrong_with_a_lesson_is_said(tmp_path, change, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        read(tmp_path, GOOD.replace(*change))


@pytest.mark.parametrize("lesson", NUMBERS)
def test_each_lesson_claims_predicts_reveals_says_why_tries_and_checks(lesson):
    steps, words = steps_of(lesson), words_of(lesson, ENGLISH)
    assert words.claim.endswith(".")
    asking = [place for place, step in enumerate(steps) if step.asks]
    assert asking
    assert all(steps[place + 1].reveals for place in asking)
    assert max(asking) + 1 < len(steps) - 3
    assert [step.name for step in steps[-3:]] == ["why", "try", "check"]
    assert words.sections["try"].template
    assert re.match(r"\*\*[^*.]+\.\*\*(?: |$)", words.sections["why"].template), "the why is one sentence, in bold"
    assert words.question.text.endswith("?")
    texts = [words.claim, *(text.template for text in words.sections.values()), words.question.text]
    texts += [*words.question.options, words.question.afterwards]
    assert len(" ".join(texts).split()) / WORDS_A_MINUTE < 5, "minutes"


def test_a_language_is_a_folder(second_language):
    assert languages() == [ENGLISH, "de", second_language]
    for lesson in NUMBERS:
        assert words_of(lesson, second_language).title == f"XX {words_of(lesson, ENGLISH).title}"
    assert say(second_language, "step", step=1, steps=6) == f"XX {say(ENGLISH, 'step', step=1, steps=6)}"


@pytest.mark.parametrize("language", languages()[1:])
def test_a_translation_has_every_phrase_and_term_and_its_lessons_are_whole(language):
    for file in (PHRASES, RIDDLE):
        own = tomllib.loads((TEXTS / language / file).read_text())
        for name, english in phrases(ENGLISH, file).items():
            assert name == "promise" or set(Prose(own[name]).get_identifiers()) == set(
                Prose(english).get_identifiers()
            ), name
    assert {sentence.sentence for sentence in PRONOUNS} <= set(phrases(language, RIDDLE)), "what they mean"
    assert set(translated_terms(language)) == set(TERMS)
    for term, means in translated_terms(language).items():
        written = {localized(number, language) for number in re.findall(r"\d+(?:\.\d+)?", TERMS[term])}
        assert set(re.findall(r"\d+(?:,\d+)?", means)) <= written, term
    for lesson in (1, 2):
        assert is_translated(lesson, language)
        words, english = words_of(lesson, language), words_of(lesson, ENGLISH)
        assert [len(words.question.options), words.question.right] == [
            len(english.question.options), english.question.right,
        ]  # fmt: skip
        for name, section in english.sections.items():
            assert words.sections[name].template != section.template, name
            assert set(words.sections[name].get_identifiers()) == set(section.get_identifiers()), name


def test_what_is_not_translated_yet_is_in_english():
    assert not is_translated(7, "de")
    german, english = words_of(7, "de"), words_of(7, ENGLISH)
    assert (german.title, german.question) == (english.title, english.question)
    assert {name: text.template for name, text in german.sections.items()} == {
        name: text.template for name, text in english.sections.items()
    }


def test_every_phrase_is_used_and_every_used_phrase_is_there():
    views = TEXTS.parent / "views"
    files = (
        TEXTS / "__init__.py",
        *(views / "lessons").glob("*.py"),
        views / "arcs.py",
        views / "inspect" / "wording.py",
    )
    code = "".join(path.read_text() for path in files)
    named = set(re.findall(r"[\"'](\w+)[\"']", code))
    assert set(phrases(ENGLISH)) <= named


@pytest.mark.parametrize("lesson", NUMBERS)
def test_a_sheet_has_the_predictions_and_the_question_and_no_script(lesson):
    page = sheet(lesson, ENGLISH, {})
    question = words_of(lesson, ENGLISH).question
    n_asked = sum(bool(step.asks) for step in LESSONS[lesson - 1])
    assert page.count("<section>") == n_asked + 1
    assert page.count("☐") == len(question.options)
    assert "<script" not in page
    assert "@{" not in page
    assert "**" not in page
    assert not re.search(r"\b(click|press|box)\b", page, re.IGNORECASE), "nothing can be clicked on paper"


def test_a_sheet_shows_texts_as_they_are(second_language):
    path = room.TEXTS / "xx" / f"1-{FILES[0]}.md"
    path.write_text(path.read_text().replace("XX What a head is", "<b>&"))
    assert "<h1>1. &lt;b&gt;&amp;</h1>" in sheet(1, "xx", {})
    assert BLANK in sheet(1, "xx", {})


@pytest.fixture(scope="module")
def visit(tmp_path_factory, usual_choice):
    """The bundled checkpoint, with a store of its own."""
    store = Store(tmp_path_factory.mktemp("store"))
    inference = Inference(store)
    yield Visit(choice=usual_choice, engine=Engine(find_checkpoint(BUNDLED)), inference=inference, texts=())
    inference.close()
    store.close()


def test_a_sheet_has_the_sentence_both_columns_of_words_and_the_grid(visit):
    words, grid, far = (sheet(lesson, ENGLISH, material_of(visit, lesson)) for lesson in (1, 2, 3))
    for page, sentence in ((words, NEAR.sentence), (grid, NEAR.sentence), (far, FAR.sentence)):
        assert f"<blockquote>{sentence}</blockquote>" in page
    assert "A head named L1 H7 looks from closed, in the frame," in words
    assert words.count("<span class=framed>closed</span>") == 1
    assert words.count("• shop") == words.count("shop</span> •") == 1
    assert grid.count("<svg") == 72
    assert "<th>H11</th>" in grid
    assert "How many of the 72 heads" in grid
    # L0 H2 looks one word back: its spots lie below the diagonal.
    l0_h2 = grid.split("<svg")[3]
    assert {("0", "1"), ("4", "5")} <= set(re.findall(r'x="(\d+)" y="(\d+)"', l0_h2))
    ranked = sheet(5, ENGLISH, material_of(visit, 5))
    assert ranked.index(SIMILAR[0]) < ranked.index(SIMILAR[1])
