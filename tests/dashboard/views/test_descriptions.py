"""What each head mostly does, in words and on Inspect, without a browser."""

from dataclasses import replace

import pytest
from reading import button, choose_heads, sent

from core.descriptions.facts import HeadDescription, RelationFact, RoleFact, ShareFact, SpreadFact
from core.texts.relations import RELATIONS
from dashboard.views.descriptions import wording
from dashboard.views.descriptions.wording import does, evidence

TEXTS = "The old dog slept.\nA stray cat chased them.\nMy cousin finally sold his van."
REST = ShareFact(target="cls", share=0.7, low=0.65, high=0.75, even=0.05)
SOME = replace(REST, share=0.3, low=0.25, high=0.35)
SUBJECT = RelationFact(
    relation="nsubj", direction="dependent-to-head", accuracy=0.79, low=0.7, high=0.86, baseline=0.41, offset=2,
    n_cases=1_234, p_value=0.0004,
)  # fmt: skip
CASES = "(right in 79% of 1,234 held-out cases, interval 70 to 86%; always guessing one distance gets 41%)"


def said(*facts):
    """The sentence, with plain spaces."""
    return does(HeadDescription(head=(2, 8), n_texts=128, facts=facts)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ((), "shows no clear pattern on these texts."),
        ((REST,), "mostly rests on [CLS] (70% of its attention)."),
        (
            (replace(REST, target="previous"), SOME),
            "mostly looks at the previous token (70% of its attention); otherwise at [CLS] (30% of its attention).",
        ),
        (
            (SUBJECT, SOME),
            f"mostly looks from a subject to its verb {CASES}; otherwise at [CLS] (30% of its attention).",
        ),
        (
            (REST, replace(SUBJECT, direction="head-to-dependent")),
            f"mostly rests on [CLS] (70% of its attention); among words, it looks from a verb to its subject {CASES}.",
        ),
        ((replace(SUBJECT, relation="xyz"),), f"mostly looks from a word (xyz) to its head {CASES}."),
        (
            (SOME, replace(SOME, target="punctuation"), RoleFact(role="syntactic")),
            "gives 30% of its attention to [CLS] and 30% of its attention to full stops and commas; by its role, it "
            "looks at words that are related to each other.",
        ),
        ((RoleFact(role="block"),), "looks, by its role, at tokens of the same segment."),
        ((SpreadFact(ratio=0.95),), "spreads its attention almost evenly (95% of the greatest entropy)."),
    ],
)
def test_facts_become_one_sentence(facts, sentence):
    assert said(*facts) == sentence


def test_the_evidence_says_how_a_relation_was_chosen_and_what_even_attention_would_give():
    text = evidence(HeadDescription(head=(2, 8), n_texts=128, facts=(SUBJECT, SOME)))
    assert text.replace("\N{NO-BREAK SPACE}", " ") == (
        "nsubj: relation and distance (+2) chosen on one half of the texts and judged on the other; p < 0.001, "
        "corrected for the number of heads; [CLS]: 25 to 35%, evenly spread attention would give 5%. Over 128 texts."
    )


def test_the_relations_of_roles_have_words_that_can_be_turned_around():
    assert set(RELATIONS) <= set(wording.RELATIONS)
    for dependent, head in wording.RELATIONS.values():
        assert dependent.startswith(("a ", "an "))
        assert head.startswith("its ")


def test_a_click_says_what_each_head_does_in_the_card_the_tooltip_and_the_files(app):
    at = app(corpus_text=TEXTS, head="0-2")
    assert not at.exception
    assert sent(at, "Heads of")["sentences"] is None, "the tooltip does not wait for a pass"
    button(at, wording.ASK).click().run()
    assert not at.exception
    assert [each for each in at.markdown if each.value.startswith("**L0 H2** mostly looks at the previous token")]
    at.run()
    (_, _, of_tooltip, *_), *_ = sent(at, "Heads of")["sentences"]
    assert of_tooltip.startswith("Mostly looks at the previous token (")
    assert not [each for each in at.button if each.label == wording.ASK]
    texts = sent(at, "Texts in which L0 H2 does so")
    assert len(texts["texts"]) == 3
    assert {"".join(words for words, _ in parts) for parts in texts["texts"]} == set(TEXTS.splitlines())
    assert {mark for parts in texts["texts"] for _, mark in parts} == {"", "query", "key"}
    choose_heads(at, (4, 5))
    assert [each.value for each in at.markdown if each.value.startswith("**L4 H5** mostly rests on")]
