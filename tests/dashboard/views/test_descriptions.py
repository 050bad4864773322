"""What each head mostly does, in words and on Inspect, without a browser."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from reading import button, choose_heads, sent
from streamlit.util import calc_hash

from attention_sieve.core.descriptions.accuracies import (
    HeadDescription,
    KeyControl,
    MentionFact,
    RelationFact,
    RoleFact,
    ShareFact,
    SpreadFact,
)
from attention_sieve.core.texts.relations import RELATIONS
from attention_sieve.dashboard.samples import MENTIONS
from attention_sieve.dashboard.views.descriptions import wording
from attention_sieve.dashboard.views.descriptions.sentences import with_sentences
from attention_sieve.dashboard.views.descriptions.wording import does, evidence, over, tip
from attention_sieve.dashboard.wording import DEPENDENT_AND_HEAD

TEXTS = "The old dog slept.\nA stray cat chased them.\nMy cousin finally sold his van."
REST = ShareFact(target="cls", share=0.7, low=0.65, high=0.75, even=0.05)
SOME = replace(REST, share=0.3, low=0.25, high=0.35)
SUBJECT = RelationFact(
    relation="nsubj", direction="dependent-to-head", accuracy=0.79, low=0.7, high=0.86, baseline=0.41, offset=2,
    where_wrong=0.66, surplus=0.1, n_cases=1_234, p_value=0.0004,
    control=KeyControl(to_right=0.27, from_others=0.01, p_value=1e-9, beats=True, from_everywhere=False),
)  # fmt: skip
MENTIONED = MentionFact(
    source="own.jsonl", accuracy=0.61, low=0.5, high=0.72, nearest=0.19, same_word=0.43, where_wrong=0.58, surplus=0.02,
    n_cases=80, n_documents=8, p_value=0.02,
    control=KeyControl(to_right=0.12, from_others=0.08, p_value=0.4, beats=False, from_everywhere=True),
)  # fmt: skip
HELD_OUT = (
    "(right in 61% of 80 cases in the other half of own.jsonl, interval 50 to 72%; the better of two simple guesses "
    "gets 43%, and where that is wrong the head is right in 58%; it looks there from everywhere: 1.5 times what other "
    "words give to the same word)"
)
CASES = (
    "(right in 79% of 1,234 cases in the other half of these texts, interval 70 to 86%; always guessing one distance "
    "gets 41%, and where that is wrong the head is right in 66%; its attention there is 27 times what other words give "
    "to the same word)"
)


def said(*facts, sight="around"):
    """The sentence, with plain spaces."""
    return does(HeadDescription(head=(2, 8), n_texts=128, facts=facts, sight=sight)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ((), "shows no clear pattern on these texts."),
        ((REST,), "mostly rests on [CLS] (70% of its attention)."),
        (
            (SUBJECT, SOME),
            f"mostly looks from a subject to its verb {CASES}; otherwise at [CLS] (30% of its attention).",
        ),
        (
            (REST, replace(SUBJECT, direction="head-to-dependent")),
            f"mostly rests on [CLS] (70% of its attention); among words, it looks from a verb to its subject {CASES}.",
        ),
        ((MENTIONED,), f"looks from a mention, such as “she”, to an earlier one of the same thing {HELD_OUT}."),
        (
            (REST, MENTIONED),
            "mostly rests on [CLS] (70% of its attention); among mentions, it looks from one, such as “she”, to an "
            f"earlier one of the same thing {HELD_OUT}.",
        ),
        (
            (replace(SUBJECT, control=replace(SUBJECT.control, beats=False)),),
            f"mostly looks from a subject to its verb {CASES[:-1]}, but the cases are too few to be sure).",
        ),
        ((replace(SUBJECT, relation="xyz"),), f"mostly looks from a word (xyz) to its head {CASES}."),
        (
            (SOME, replace(SOME, target="punctuation"), RoleFact(role="syntactic")),
            "gives 30% of its attention to [CLS] and 30% of its attention to full stops and commas; by its role, it "
            "looks at words that are related to each other.",
        ),
        (
            (replace(REST, target="first"), replace(SOME, target="punctuation")),
            "mostly rests on the first token (70% of its attention beyond an even share); otherwise at full stops and "
            "commas (30% of its attention).",
        ),
        ((RoleFact(role="block"),), "looks, by its role, at tokens of the same segment."),
        ((SpreadFact(ratio=0.95),), "spreads its attention almost evenly (entropy 95% of that of even attention)."),
    ],
)
def test_facts_become_one_sentence(facts, sentence):
    assert said(*facts) == sentence


@pytest.mark.parametrize(
    ("sight", "fact", "sentence"),
    [
        ("back", replace(REST, target="previous"), "mostly looks back at the previous token (70% of its attention)."),
        ("back", REST, "mostly rests on [CLS] (70% of its attention)."),
        (
            "back",
            replace(SUBJECT, direction="head-to-dependent"),
            f"mostly looks back from a verb to its subject {CASES}.",
        ),
        ("across", SOME, "gives 30% of its attention to [CLS] of the source text."),
    ],
)
def test_a_sentence_tells_where_a_token_can_look(sight, fact, sentence):
    assert said(fact, sight=sight) == sentence


def test_the_evidence_says_how_a_relation_was_chosen_and_what_even_attention_would_give():
    text = evidence(HeadDescription(head=(2, 8), n_texts=128, facts=(SUBJECT, SOME)))
    assert text.replace("\N{NO-BREAK SPACE}", " ") == (
        "nsubj: chosen on one half of the texts and judged on the other, where the best distance is +2; p < 0.001, "
        "corrected for the number of heads; attention to the right word 27.0%, from other words 1.0%, p < 0.001, "
        "corrected likewise; [CLS]: 25 to 35%, evenly spread attention would give 5%. Over the 128 texts of the corpus."
    )


def test_what_is_judged_on_other_texts_is_worded_for_those():
    elsewhere = replace(SUBJECT, on_others=True)
    found = HeadDescription(head=(2, 8), n_texts=128, n_others=64, facts=(elsewhere,))
    says = CASES.replace("the other half of these texts", "varied sample texts")
    words = [part.replace("\N{NO-BREAK SPACE}", " ") for part in (over(found), tip(found), evidence(found))]
    assert words[:2] == [
        "Chosen on the 128 texts of the corpus and judged on 64 varied sample texts:",
        f"In varied sample texts: mostly looks from a subject to its verb {says}.",
    ]
    assert words[2].startswith("nsubj: chosen on the corpus and judged on varied sample texts, where the best distance")
    assert tip(replace(found, n_others=0, facts=(SUBJECT,))).startswith("In these texts: mostly looks from a subject")


@pytest.mark.parametrize(
    "table", [pd.DataFrame({"head": ["L1 H0", "L0 H1"]}), pd.DataFrame({"layer": [1, 0], "head": [0, 1]})]
)
def test_a_table_of_heads_has_the_sentence_of_each(table):
    sentences = [["a", "b"], ["c", "d"]]
    assert with_sentences(table, sentences, "mostly_a")["mostly_a"].tolist() == ["c", "b"]
    assert with_sentences(table, None) is table


def test_the_relations_of_roles_have_words_that_can_be_turned_around():
    assert set(RELATIONS) <= set(DEPENDENT_AND_HEAD)
    for dependent, head in DEPENDENT_AND_HEAD.values():
        assert dependent.startswith(("a ", "an "))
        assert head.startswith("its ")


def test_a_click_says_what_each_head_does_in_the_card_the_tooltip_and_the_files(app):
    at = app(corpus_text=TEXTS, head="0-2")
    assert sent(at, "Heads of")["sentences"] is None, "the tooltip does not wait for a pass"
    button(at, wording.ASK).click().run()
    assert [each for each in at.markdown if "of the corpus **L0 H2** mostly looks at the previous token" in each.value]
    at.run()
    (_, _, of_tooltip, *_), *_ = sent(at, "Heads of")["sentences"]
    assert of_tooltip.startswith("In these texts: mostly looks at the previous token (")
    assert not [each for each in at.button if each.label == wording.ASK]
    texts = sent(at, "Texts in which L0 H2 does so")
    assert len(texts["texts"]) == 3
    assert {"".join(words for words, _ in parts) for parts in texts["texts"]} == set(TEXTS.splitlines())
    assert {mark for parts in texts["texts"] for _, mark in parts} == {"", "strong", "lined"}
    assert " looks at " in texts["says"][0]
    choose_heads(at, (4, 5))
    assert [each.value for each in at.markdown if "of the corpus **L4 H5** mostly rests on" in each.value]
    button(at, wording.SHOW_RESTS).click().run()
    texts = sent(at, "Texts in which L4 H5 does so")
    assert len(texts["texts"]) == 3
    assert {mark for parts in texts["texts"] for _, mark in parts} == {"", "strong", "lined"}
    assert "% to [CLS]" in texts["says"][0].replace("\N{NO-BREAK SPACE}", " ")
    choose_heads(at, (2, 4))
    assert "mention" not in sentence_of(at, "L2 H4"), "too few of the example texts to tell it from simple guesses"


def sentence_of(at, name):
    """What the card says a head does, without the signs that keep Markdown from reading it."""
    said = next(each.value for each in at.markdown if f"of the corpus **{name}** " in each.value)
    return said.replace("\\", "").replace("\N{NO-BREAK SPACE}", " ")


def test_the_readers_own_texts_with_mentions_take_the_place_of_the_example_texts(app):
    items = [json.loads(line) for line in MENTIONS.read_text("utf-8").splitlines()]
    own = [item | {"name": f"{item['name']} {number}"} for item in items for number in range(2)]
    link = {"grammar section": "Coreference", "mentions from": "a file of your own"}
    at = app("grammar", **link, corpus_text=f"{TEXTS}\nShe left.")
    at.get("file_uploader")[0].upload("own.jsonl", "\n".join(map(json.dumps, own)).encode(), "application/json").run()
    at._page_hash = calc_hash("inspect")
    at.run()
    button(at, wording.ASK).click().run()
    choose_heads(at, (2, 4))
    assert "of 84 cases in the other half of own.jsonl, interval" in sentence_of(at, "L2 H4")
    assert any("looks at" in says for says in sent(at, "Texts in which L2 H4 does so")["says"])
