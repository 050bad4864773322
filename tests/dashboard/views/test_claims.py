"""Claims about heads on their page: as the call tests them, in other places, and those that are none."""

import json

import pytest
from reading import charts, said

import attention_sieve as sieve
from attention_sieve.dashboard.views.claims import wording

TEXTS = "The patient nurse gently washed it.\nA stray dog chased them.\nMy cousin finally sold his van."
CLAIMED = "L0 H2 and L1 H1 are previous-token heads"


def opened(app, claim, **more):
    return app("claims", claim=claim, corpus_text=TEXTS, **more)


def test_a_claim_is_tested_as_the_call_tests_it_and_elsewhere(app, bundled, folders):
    other = str(folders("bert"))
    at = opened(app, CLAIMED, **{"claim on corpus": "true", "with": other})
    assert not at.error
    assert any("**does not hold** for 1 (L1 H1); **no test** for 1 (L0 H2)" in each.value for each in at.markdown)
    called = sieve.claim(bundled, CLAIMED, TEXTS.splitlines()).table
    shown = at.dataframe[0].value
    assert shown["verdict"].tolist() == called["verdict"].tolist() == ["no test", "does not hold"]
    assert shown["fails"][0] == "too few texts for a constant score"
    assert shown["score"].tolist() == pytest.approx(called["mean"].tolist(), abs=0.006)
    assert shown["rank"].tolist() == [f"{rank} of 72" for rank in called["rank"]]
    places = at.table[0].value
    assert places["where"].tolist()[0] == "type texts"
    assert len(places) == 1
    untested = {each.key: each.label for each in at.button if each.key and each.key.startswith("test in")}
    assert "probe texts" in untested.values()
    at.button(key=f"test in {other} on type texts").click().run()
    there = sieve.claim(other, CLAIMED, TEXTS.splitlines(), device="cpu").result.places[0]
    assert at.table[0].value["holds for"].tolist()[1].startswith(f"{len(there.held)} of 2")
    claimed = json.dumps({"0-2": 0.9, "1-1": 0.2, "2-2": 0.1})
    at.text_area(key="claim").set_value(claimed).run()
    assert said(at) == ["Scores by head do not say of which role they are. Name the role, too."]
    at.selectbox(key="claim role").set_value("previous").run()
    assert not at.error
    assert any("Spearman's" in each.value for each in at.markdown)
    assert at.dataframe[0].value["claimed"].tolist() == [0.9, 0.2, 0.1]
    assert "ranking" in at.table[0].value.columns
    assert "has no head L2 H2" in at.table[0].value["holds for"].tolist()[-1], "the other checkpoint has two layers"


def test_the_page_opens_on_a_claim_about_the_bundled_checkpoint_with_its_picture(app):
    at = app("claims", corpus_text=TEXTS)
    assert not at.error
    assert at.text_area(key="claim").value == wording.EXAMPLES["bundled"]
    (drawn,) = charts(at)
    called = sieve.claim("bundled", wording.EXAMPLES["bundled"], TEXTS.splitlines()).table
    heads = drawn[drawn["kind"] == "head"]
    assert heads["value"].tolist() == pytest.approx(called["mean"].tolist())
    assert heads["holds"].tolist() == (called["verdict"] == "holds").tolist()
    beside = drawn[drawn["kind"] == "beside"]
    assert beside.loc[beside["what"] == "permuted keys", "value"].tolist() == pytest.approx(called["permuted"].tolist())
    n_held = int((called["verdict"] == "holds").sum())
    assert any(each.value.startswith(f"**{n_held} of 3 heads** pass") for each in at.markdown)


def test_what_is_no_claim_gets_a_sentence_and_stays_in_its_field(app):
    at = opened(app, wording.EXAMPLES["bundled"])
    at.text_area(key="claim").set_value("").run()
    at.button(key="claim example").click().run()
    assert at.text_area(key="claim").value == wording.EXAMPLES["bundled"]
    assert not at.error
    for written, says in (
        ("L9 H9 is an amod head", "bundled has no head L9 H9: it has 6 layers x 12 heads"),
        ("L1 H8 is a wonderful head", "'wonderful', at character 12 of the claim, is no role."),
    ):
        at.text_area(key="claim").set_value(written).run()
        assert any(says in each for each in said(at))
        assert at.text_area(key="claim").value == written
    at.file_uploader(key="claim file").upload("scores.json", b'{"1-2": 0.5,\n"3-4" 1}').run()
    assert at.text_area(key="claim").value == '{"1-2": 0.5,\n"3-4" 1}'
    assert "at line 2, character 7" in said(at)[0]
