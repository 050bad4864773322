"""The section Coreference without a browser: what it says, what it computes once, and what it sends to its views."""

import json
import re

import numpy as np
import pytest
from made_attention import to_no_antecedent
from reading import said, sent
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import StopException

from attention_sieve.cache.inference import Inference
from attention_sieve.core.coreference.accuracy import MentionChoices, coreference_scores
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.dashboard.figures.coreference import HELD_OUT, RANDOM, antecedent_table, choices_table
from attention_sieve.dashboard.plain import WORD_JOINER
from attention_sieve.dashboard.samples import MENTIONS as MENTION_SAMPLE
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.coreference import wording
from attention_sieve.dashboard.views.grammar.coreference.text import marked_text
from attention_sieve.dashboard.wording import PARSING

TEXT = {"text": "Ann saw *Bo* :red[x]. She fed him.", "clusters": [[[0, 3], [22, 25]], [[9, 11], [30, 33]]]}


@pytest.fixture
def section(app, small):
    """section(family, **link) -> the section on a small checkpoint that takes the example texts whole."""

    def opened(family="bert", **link):
        checkpoint = small(family, max_position_embeddings=400)
        usual = {"checkpoint": checkpoint, "grammar section": "Coreference", "window tokens": "400"}
        return app("grammar", **(usual | link))

    return opened


def text_list(at):
    return next(each for each in at.selectbox if each.label == wording.PICK_TEXT)


def headline(at):
    return next(each.value for each in at.markdown if "an earlier mention chosen at random is right in" in each.value)


def table(at):
    return next(frame.value for frame in at.dataframe if "who" in frame.value)


def test_the_example_is_there_at_once(section):
    at = section()
    assert not at.error
    read = "Example texts: 16 texts with 140 mentions, of which **84** have an antecedent."
    assert any(read in one.value for one in at.caption)
    assert (
        "an earlier mention chosen at random is right in 28.4%, the nearest in 19.0%, the nearest with the same head "
        "word (or else the nearest) in 42.9%."
    ) in headline(at)
    assert table(at)["all"].round(1).tolist()[:3] == [28.4, 19.0, 42.9]
    assert sent(at, "all mentions: right − same head word, in points")["ends"]["less"]
    assert any(":green-background[" in one.value or ":orange-background[" in one.value for one in at.markdown)


def test_moving_a_choice_runs_no_model(section, monkeypatch):
    at = section()
    monkeypatch.delattr(Inference, "ask")
    first, said_first = table(at)["all"].tolist(), headline(at)
    at.segmented_control(key="candidates").set_value(wording.AMONG_WORDS).run()
    held_out = [table(at)["all"].tolist()[3], first[3]]
    others = [wording.among_others("words", held_out[0] / 100), wording.among_others("mentions", held_out[1] / 100)]
    assert others[0] in said_first
    assert others[1] in headline(at)
    assert table(at)["all"].tolist()[:3] == first[:3]
    assert table(at)["all"].tolist()[3:] != first[3:]
    at.segmented_control(key="mentions group").set_value("pronoun").run()
    at.segmented_control(key="minus").set_value(wording.NOTHING).run()
    assert not sent(at, "pronoun mentions: right, in percent")["ends"]["less"]
    text_list(at).set_value(3).run()
    assert "".join(at.query_params["coreference text"]) == "3"
    assert any("Tomas" in one.value for one in at.markdown)


def test_the_link_numbers_the_text_another_file_begins_with_its_first_and_few_cases_are_said_to_be_few(section):
    assert text_list(section(**{"coreference text": "17"})).value == 1
    at = section(**{"coreference text": "3"})
    assert text_list(at).value == 3
    assert "".join(at.query_params["coreference text"]) == "3"
    assert [one.value for one in at.info] == [wording.few(84, is_example=True)]
    at.segmented_control(key="mentions from").set_value(wording.UPLOAD).run()
    content = "\n".join(json.dumps({**TEXT, "name": name}) for name in ("one", "two", "three"))
    at.get("file_uploader")[0].upload("own.jsonl", content.encode(), "application/json").run()
    assert text_list(at).value == 1
    assert text_list(at).options[1].startswith("2: two – Ann saw")
    assert "".join(at.query_params["coreference text"]) == "1"
    assert [one.value for one in at.info] == ["Only 6 cases: an illustration, not a result."]


def test_the_first_piece_is_a_choice_of_the_link_and_of_the_file(section):
    at = section(**{"mention from word": shared_wording.FROM_FIRST})
    first = table(at)["all"].tolist()
    at.segmented_control(key="mention from word").set_value(shared_wording.FROM_MEAN).run()
    assert table(at)["all"].tolist()[:3] == first[:3]
    assert table(at)["all"].tolist()[3:] != first[3:]


def test_smaller_windows_lose_antecedents_and_say_so(section):
    at = section(**{"window tokens": "40"})
    left_out = r"Not counted: .*\d+ mentions with antecedents in earlier windows only"
    assert any(re.search(left_out, one.value) for one in at.caption)


def test_decoders_can_be_asked(app, small):
    at = app("grammar", checkpoint=small("gpt2", n_positions=600), **{"grammar section": "Coreference"})
    assert not at.error
    assert headline(at)


def test_a_decoder_that_reads_another_text_is_refused_in_words(app, small):
    link = {"grammar section": "Coreference", "attention": "cross-attention"}
    at = app("grammar", checkpoint=small("t5"), **link)
    assert [one.value for one in at.info] == [wording.ONE_TEXT]


def test_a_file_is_asked_for_and_a_bad_one_refused_in_words(section):
    at = section(**{"mentions from": wording.UPLOAD})
    assert wording.WAIT in [one.value for one in at.info]
    uploader = at.get("file_uploader")[0]
    uploader.upload("gold.json", b'{"text": "Ann left."}', "application/json").run()
    assert said(at)[0].startswith("Item 1 has no mentions. Write an object with clusters, such as")


def test_parsing_of_an_upload_lets_typed_texts_pass_and_shows_its_progress(section, monkeypatch):
    at, n_ways, progress = section(**{"mentions from": wording.UPLOAD}), [], []
    monkeypatch.setattr(Inference, "give_way", lambda inference: n_ways.append(inference))
    monkeypatch.setattr(DeltaGenerator, "progress", lambda bar, share, label=None: progress.append((share, label)))
    document = {"text": "Ann saw the old dog. She fed it. " * 60, "clusters": [[[8, 19], [29, 31]]]}
    content = "\n".join(json.dumps({**document, "name": name}) for name in ("one", "two"))
    at.get("file_uploader")[0].upload("own.jsonl", content.encode(), "application/json").run()
    assert len(n_ways) > 1
    assert [share for share, label in progress if PARSING in label] == [0.5, 1]


def test_a_reader_who_does_something_else_ends_the_parsing_of_an_upload(section, monkeypatch):
    def leave(inference):
        raise StopException

    at = section(**{"mentions from": wording.UPLOAD})
    monkeypatch.setattr(Inference, "give_way", leave)
    document = {"text": "Ann saw the old dog. She fed it.", "clusters": [[[8, 19], [29, 31]]]}
    at.get("file_uploader")[0].upload("own.jsonl", json.dumps(document).encode(), "application/json").run()
    assert not at.dataframe


def read(*items):
    return read_mentions(json.dumps(items).encode())


def choices(text, *heads):
    words = np.array(heads)[None]
    return MentionChoices(
        mentions=words, words=words, is_read=np.ones(len(text.mentions), bool), **to_no_antecedent(words)
    )


def test_a_text_is_shown_as_it_is():
    (text,) = read(TEXT)
    ann, bo = text.mentions[0].head, text.mentions[1].head
    shown = marked_text(text, choices(text, [-1, -1, ann, ann]), (0, 0), "mentions").replace(WORD_JOINER, "")
    assert shown == (
        ":gray-background[Ann¹] saw \\*:gray-background[Bo²]\\* \\:red\\[x\\]\\. "
        ":green-background[She³ → ¹ ✓] fed :orange-background[him⁴ → ¹ ✗ (²)]\\."
    )
    assert "→ nothing ✗" in marked_text(text, choices(text, [-1] * 4), (0, 0), "mentions")
    assert "→ “saw” ✗" in marked_text(text, choices(text, [1, bo, 1, 1]), (0, 0), "words")


def test_choices_as_rows():
    (text,) = read(TEXT)
    ann, bo = text.mentions[0].head, text.mentions[1].head
    rows = choices_table([text], [choices(text, [-1, ann, ann, ann], [-1, ann, bo, bo])], (0, 1), "mentions")
    assert rows["word"].tolist() == ["Ann", "Bo", "She", "him"]
    assert rows["chosen"].tolist()[1:] == [1, 2, 2]
    assert rows["right"].tolist()[2:] == [False, True]
    assert rows["right"].isna().tolist() == [True, True, False, False]
    assert rows["refers back to"].tolist() == ["", "", "1", "2"]


def test_the_table_has_baselines_the_held_out_head_the_best_and_the_chosen():
    texts = read(TEXT, TEXT)
    text = texts[0]
    ann, bo = text.mentions[0].head, text.mentions[1].head
    of_text = choices(text, [-1, ann, ann, ann], [-1, ann, bo, bo], [-1, ann, ann, bo])
    scores = coreference_scores(texts, [of_text, of_text])
    found = antecedent_table(scores, (0, 1))
    assert found["who"].tolist() == [
        RANDOM,
        "nearest mention",
        "same head word",
        HELD_OUT,
        "L0 H2, best on all texts",
        "L0 H1, chosen",
    ]
    np.testing.assert_allclose(found["all"], [(1 / 2 + 1 / 3) / 2, 0, 0, 1, 1, 1 / 2])
    assert found["all low"].isna().tolist() == [True, True, True, False, False, False]
    assert found["proper"].isna().all()


def test_the_example_is_in_the_documented_form():
    texts = read_mentions(MENTION_SAMPLE.read_bytes())
    assert 12 <= len(texts) <= 20
    assert all(any(text.antecedents) for text in texts)
    assert {one.type for text in texts for one in text.mentions} == {"pronoun", "proper", "nominal"}
    for line in MENTION_SAMPLE.read_text("utf-8").splitlines():
        item = json.loads(line)
        assert [len(cluster) for cluster in item["clusters"]] == [len(types) for types in item["types"]]
        assert all(
            item["text"][start:end].strip() == item["text"][start:end] for of in item["clusters"] for start, end in of
        )
