"""A decoder on the pages: its roles, the scale that does not follow the length, and texts that are made for it."""

import subprocess
import sys

import numpy as np
import pytest
from reading import arcs, button, numbers, sent, told

from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.rules import PREFIX, read_role
from attention_sieve.dashboard import controls, wording

TEXTS = "The dog saw the dog that the cat saw.\nA stray cat chased a stray dog."
LONG = "\n".join(["The dog saw the dog that the cat saw and ran to the black birds. " * 8] * 3)


@pytest.fixture
def decoder(small):
    return str(small("gpt2", "CausalLM", n_positions=200))


def scale(at):
    box = at.selectbox(key="scale")
    return box.value or box.placeholder


def test_shares_are_usual_for_a_decoder_and_a_click_or_a_link_brings_scores_back(app, decoder):
    at = app("roles", checkpoint=decoder, corpus_text=TEXTS)
    assert scale(at) == "share above chance"
    assert any(wording.BY_DECODER in each.value for each in at.caption)
    button(at, wording.BACK_TO_SCORES).click().run()
    assert scale(at) == "times uniform attention"
    assert not any(wording.BY_DECODER in each.value for each in at.caption)
    at = app("roles", checkpoint=decoder, corpus_text=TEXTS, scale="times uniform attention")
    assert scale(at) == "times uniform attention"


def test_encoders_keep_scores_on_short_texts_and_show_shares_on_long_ones(app):
    assert scale(app("roles", corpus_text=TEXTS)) == "times uniform attention"
    at = app("roles", corpus_text=LONG)
    assert scale(at) == "share above chance"
    assert any(wording.BY_LENGTH in each.value for each in at.caption)


def test_a_decoder_is_scored_for_its_roles_in_one_pass_and_offers_texts_made_for_it(app, decoder):
    texts = ["The red dog saw the red dog.", "Two black birds saw two black cats."]
    passed = controls.inference().n_passed
    at = app("roles", checkpoint=decoder, corpus_text="\n".join(texts))
    grid = sent(at, "Roles of the heads")
    assert [role["letter"] for role in grid["roles"]][len(ROLES) :] == ["P", "I", "U", "R"]
    # The usual roles and those of decoders, one pass each.
    assert controls.inference().n_passed == passed + 2 * len(texts)
    at.button(key="to probe texts: names and ordinals").click().run()
    assert not at.error
    grid = sent(at, "Roles of the heads")
    assert [grid["roles"][place]["letter"] for place in grid["shown"]] == ["P", "F", "I", "U", "R"]


def test_the_card_names_the_heads_that_share_keys_and_values(app, small):
    llama = str(small("llama", "CausalLM"))
    at = app("inspect", checkpoint=llama, text=TEXTS, corpus_text=TEXTS, head="1-2")
    assert sent(at, "Heads of")["shared"] == 2
    assert any("Shares its keys and values with L1 H3 (" in each.value for each in at.markdown)


def test_ids_are_not_compared_under_two_vocabularies(app, decoder, small):
    other = str(small("llama", "CausalLM"))
    at = app("compare", checkpoint=decoder, corpus="probe texts: repeats", **{"with": other})
    assert any("different tokenizers" in each.value for each in at.info)


def test_the_card_names_no_role_that_the_grid_of_a_decoder_does_not_have(app, decoder):
    link = {"scale": "times uniform attention", "tau": "1", "head": "0-0"}
    at = app("inspect", checkpoint=decoder, text=TEXTS, corpus_text=TEXTS, **link)
    (said,) = [each.value for each in at.markdown if "In this text:" in each.value]
    assert "In this text: looks at the tokens after earlier copies of the same token." in said
    assert "neighbouring tokens" not in said


def test_a_model_with_attention_sinks_is_drawn_with_what_they_leave_and_says_so(app, small):
    at = app("inspect", checkpoint=str(small("gpt_oss", "CausalLM")), text="The dog saw the dog.", head="1-2")
    assert not at.exception
    n_tokens = len(arcs(at)["queries"]["tokens"])
    roots = numbers(arcs(at)["attention"]).astype(float) / 255
    left = (roots**2).reshape(n_tokens, n_tokens).sum(axis=1).mean()
    assert left < 0.98
    said = [wording.sinks(share) for share in (1 - left - 0.005, 1 - left, 1 - left + 0.005)]
    assert any(each.value in said for each in at.caption)


def test_a_model_without_them_says_nothing_of_them(app, decoder):
    at = app("inspect", checkpoint=decoder, text="The dog saw the dog.", head="1-2")
    assert "a sink of each head" not in told(at)


def test_a_role_that_rests_on_the_first_token_is_marked_on_roles_and_on_the_card(app, shared, tmp_path):
    subprocess.run([sys.executable, shared / "planted" / "known.py", tmp_path], check=True, capture_output=True)
    ends = read_role('role = 1\nname = "ends"\nletter = "Z"\ncolour = "#0072B2"\nto.positions = [0, 1, 2]').id
    rng = np.random.default_rng(0)
    texts = "\n".join(" ".join(f"w{n}" for n in rng.permutation(200)[:20] + 1) for _ in range(12))
    link = {"checkpoint": str(tmp_path), "corpus_text": texts, "head": "0-3", "role": ends.removeprefix(PREFIX)}
    at = app("roles", details="Table", **link)
    assert any("Also rest on the first token: 6 of 6 ends heads." in each.value for each in at.markdown)
    (table,) = [each.value for each in at.dataframe if "rests_on_first" in each.value]
    assert set(table["role"][table["rests_on_first"]]) == {"ends"}
    at = app("inspect", text="w1 w2 w3", **link)
    (said,) = [each.value for each in at.markdown if "Over 12 texts:" in each.value]
    assert "sink, ends (also rests on the first token)" in said


def test_tokens_stand_in_the_list_as_they_are(app, decoder):
    at = app("inspect", checkpoint=decoder, text="The dog saw the")
    at.text_input(key="asked token").set_value("*").run()
    names = at.selectbox(key="speak for").options
    assert "“*”" in names, names
