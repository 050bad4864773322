"""Similar heads: its figures, its page without a browser, and the card that may cost no pass."""

import re

from reading import charts, sent

from attention_sieve.dashboard import controls
from attention_sieve.dashboard.state import HEADS
from attention_sieve.dashboard.views.distances import ALL_TEXTS, N_TEXTS_KEY, compared_texts
from attention_sieve.dashboard.views.inspect import wording as inspect_wording
from attention_sieve.dashboard.views.similarity import wording
from attention_sieve.dashboard.views.similarity.numbers import HOW_FAR_KEY
from attention_sieve.dashboard.views.word_links.choice import TABS


def test_the_page_compares_all_heads_and_says_what_it_found_and_in_which_units(app):
    at = app("similarity")
    assert not at.error
    said = next(each.value for each in at.markdown if "look at the same words most" in each.value)
    assert "72 heads compared on 3 texts" in said
    shown = sent(at, "Distance of the heads")
    layer, head = shown["chosen"][0]
    assert shown["texts"][layer][head] == "0", "a head lies at no distance from itself"
    at.segmented_control(key=HOW_FAR_KEY).set_value(wording.AUTHORS).run()
    assert "(summed nats)" in sent(at, "Distance of the heads")["title"]


def test_another_head_and_another_colour_cost_no_comparison(app):
    at = app("similarity")
    kept = sent(at, "Distance of the heads")["texts"]
    passed = controls.inference().n_passed
    at.session_state[HEADS] = [(3, 7)]
    at.run()
    now = sent(at, "Distance of the heads")
    assert now["label"].endswith("to L3 H7 (nats)")
    assert now["texts"] != kept
    assert controls.inference().n_passed == passed
    at.segmented_control(key="similarity colour").set_value(wording.ROLE).run()
    assert any("Heads by role" in each.value for each in at.markdown)
    assert controls.inference().n_passed <= passed + 3, "the roles of the three texts and no distances"
    passed = controls.inference().n_passed
    app("similarity", corpus_text="Texts that nobody has compared.")
    assert controls.inference().n_passed > passed


def test_layers_are_drawn(app):
    assert charts(app("similarity", **{"similarity details": wording.LAYERS}))


def test_the_card_of_a_head_takes_distances_from_the_store_and_computes_none(app):
    said = "Looking at the same words"
    link = {
        TABS: inspect_wording.SIMILAR,
        "corpus_text": "The card compares nothing.\nIt only looks into the store.\nA pass is too dear.",
    }
    at = app(**link)
    assert not any(said in each.value for each in at.markdown)
    app("similarity", **link)
    at = app(**link, head="2-5")
    found = next(each for each in at.markdown if said in each.value)
    assert re.fullmatch(r"Looking at the same words: (L\d H\d+, ){4}L\d H\d+", found.value)
    assert found.help.endswith("(nats, mean over the rows of 3 texts).")


def test_texts_are_taken_at_even_steps(monkeypatch):
    session, texts = {N_TEXTS_KEY: "16"}, tuple(range(100))
    monkeypatch.setattr("attention_sieve.dashboard.views.distances.st.session_state", session)
    assert compared_texts(texts) == tuple(place * 100 // 16 for place in range(16))
    assert compared_texts(texts[:5]) == texts[:5]
    session[N_TEXTS_KEY] = ALL_TEXTS
    assert compared_texts(texts) == texts


def test_sentences_say_what_there_is_and_nothing_else():
    nan = float("nan")
    assert wording.summary(None, "nats", (1, 1), 1) == "1 head compared on 1 text."
    said = "0.0123 nats apart; 0 is equal. 12 heads compared on 2 of 5 texts."
    assert wording.summary(0.01234, "nats", (2, 5), 12) == said
    assert wording.within_a_layer(nan, nan, "nats") == ""
    assert "no more alike" in wording.within_a_layer(0.25, 0.125, "nats")
    assert "within 0.1 nats" in wording.groups_of([1, 1], 0.1, "nats")
    assert wording.groups_of([5, 2, 1], 0.1, "nats") == (
        "2 groups, 1 loner (groups: within 0.1 nats, half the mean distance; the largest has 5 heads)."
    )


def shown_pairs(app):
    at = app("similarity", **{"similarity details": wording.TABLE})
    return next(each.value for each in at.dataframe if "other head" in each.value)


def test_the_table_names_each_pair_once_the_closest_first(app):
    table = shown_pairs(app)
    assert list(table) == ["head", "other head", *wording.COLUMNS]
    assert len(table) == len(set(zip(table["head"], table["other head"]))) == 72 * 71 // 2
    assert table["divergence"].is_monotonic_increasing
    same = table["head"].str.split().str[0] == table["other head"].str.split().str[0]
    assert (table["relative_a_b"].notna() == same).all()


def test_a_layer_against_itself_leaves_out_each_head_against_itself(app):
    table = shown_pairs(app)
    inside = table[table["head"].str.startswith("L5 ") & table["other head"].str.startswith("L5 ")]["divergence"]
    at = app("similarity", head="5-3", **{"similarity details": wording.PAIR})
    said = next(each.value for each in at.markdown if "layer 5 against layer 5" in each.value)
    assert f"{inside.mean():.3g} on average, least {inside.min():.3g} (" in said.replace("\\", "")
