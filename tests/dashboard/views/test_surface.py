"""The page Where heads look without a browser: what it computes, what it says, and what it leaves out."""

import base64
import re

import numpy as np
import pytest
from reading import button, charts, said, sent, sentences
from small_checkpoints import save

from attention_sieve.core.answering import find
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls, wording
from attention_sieve.dashboard.views.surface import wording as words

TABS = (words.ENTROPY, words.CHOSEN, words.HEADS, words.FUNCTIONS, words.LAYERS, words.TABLE)
N_CHARTS = {words.ENTROPY: 3, words.TABLE: 1}
"""The picture of the page, and those of a tab."""
DRAWER = [wording.MORE_SETTINGS, wording.DEVICE]
"""What unfolds in the test settings."""
N_TEXTS = 3
TEXTS = "the cat sat on the mat.\na dog chased two black birds.\nshe does eat red apples."


@pytest.fixture
def opened(app):
    """opened(tab, **link) -> the page with that tab open."""
    return lambda tab=words.ENTROPY, **link: app("surface", **{"surface details": tab, **link})


def shown_map(at, name):
    """The numbers that the head grid draws."""
    sent_map = sent(at, name)
    parts = np.frombuffer(base64.b64decode(sent_map["parts"]), "<f4").reshape(sent_map["layers"], sent_map["heads"])
    return parts * float(sent_map["high"][0])


def test_only_the_open_tab_is_drawn(opened):
    assert {tab: len(charts(opened(tab))) for tab in N_CHARTS} == N_CHARTS


@pytest.mark.parametrize(
    ("statistic", "figure"),
    [("sep", words.DOTS_2), ("entropy", words.DOTS_4), ("confidence", words.VOITA_1B), ("other", words.NO_FIGURE)],
)
def test_the_grid_shows_what_the_library_gives_and_names_its_figure(opened, bundled, statistic, figure):
    at = opened(words.HEADS, corpus_text=TEXTS, statistic=words.STATISTICS[statistic])
    shown = shown_map(at, words.STATISTICS[statistic])
    expected = find(SURFACE_ANALYSIS, bundled, read_typed(TEXTS)).heads.of(statistic)
    np.testing.assert_allclose(shown, expected, atol=2e-4)
    details = {each["label"]: each["texts"] for each in sent(at, words.STATISTICS[statistic])["details"]}
    assert details[words.MEAN][2][5] == f"{expected[2, 5]:.3g}"
    assert details[words.TEXTS][0][0] == str(N_TEXTS)
    assert " to " in details["95% interval"][0][0]
    assert figure in sentences(at)


def test_the_formulas_of_the_code_are_a_setting(opened):
    at = opened(words.HEADS, corpus_text=TEXTS, statistic=words.STATISTICS["sep from sep"])
    of_paper = shown_map(at, words.STATISTICS["sep from sep"])
    at.toggle(key="surface as in code").set_value(True).run()
    assert not at.error
    shown = shown_map(at, words.STATISTICS["sep from sep"])
    np.testing.assert_allclose(shown, of_paper / 2, atol=1e-4)  # each text has one [SEP], and the code divides by two
    assert words.BY_CODE in [each.value for each in at.caption]
    assert words.DENOMINATORS in [each.value for each in opened(words.TABLE, corpus_text=TEXTS).caption]
    again = opened(words.TABLE, corpus_text=TEXTS, **{"surface as in code": "true"})
    captions = [each.value for each in again.caption]
    assert words.BY_CODE in captions
    assert words.DENOMINATORS not in captions


def test_the_headline_counts_what_the_statistics_say_and_the_papers_numbers_stand_folded(opened, bundled):
    at = opened(corpus_text=TEXTS)
    numbers = find(SURFACE_ANALYSIS, bundled, read_typed(TEXTS))
    mostly = int((numbers.heads.of("cls") > 0.5).sum())
    positional = int(numbers.labels.positional.holds.sum())
    (headline,) = (each for each in sentences(at) if f"Over {N_TEXTS}" in each)
    assert headline.startswith(f"**{mostly} of 72 heads** put over half of their attention on [CLS].")
    assert f"; {positional} positional (" in headline
    assert mostly
    assert positional
    folded = [each.label for each in at.main.expander]
    assert folded == [*DRAWER, wording.SETTINGS, wording.HOW_TO_READ, wording.HOW, words.PAPER_TITLE]
    assert not [each.value for each in at.markdown if "3.89" in each.value]
    at.session_state[f"unfolded {words.PAPER_TITLE}"] = True
    at.run()
    (paper,) = [each.value for each in at.markdown if "3.89" in each.value]
    assert "3.89 nats" in paper


def test_the_finding_and_its_numbers_are_sentences_for_every_count():
    most = {"[CLS]": 24, "[SEP]": 0}
    assert words.finding(72, most, 3) == "**24 of 72 heads** put over half of their attention on [CLS]."
    assert words.finding(6, {"[SEP]": 1}, 0) == "**1 of 6 heads** puts over half of its attention on [SEP]."
    assert words.finding(6, {}, 1) == "**1 of 6 heads** is positional."
    assert words.numbers(2, most, {-1: 2, 1: 1}, 1) == (
        "Over 2 texts: 24 on [CLS]; 0 on [SEP]; 3 positional (2 at \N{MINUS SIGN}1, 1 at +1); 1 points to rare words."
    )
    assert words.numbers(1, {}, {}, None) == "Over 1 text: 0 positional."
    assert words.numbers(1, {"[SEP]": 3}, None, 0) == "Over 1 text: 3 on [SEP]; 0 point to rare words."


def test_one_group_of_shares_is_drawn_at_a_time(opened):
    firsts = {"special tokens": "[CLS]", "separator": "other tokens → [SEP]", "neighbours": "next token"}
    for name, first in firsts.items():
        at = opened(words.ENTROPY, corpus_text=TEXTS, **{"surface shares": words.PANELS[name]})
        drawn = charts(at)[0]
        assert drawn.loc[drawn["kind"] == "dot", "label"].iloc[0] == first
        assert (words.DENOMINATORS in [each.value for each in at.caption]) == (name == "neighbours")


def test_moving_alpha_widens_the_intervals_and_runs_no_model(opened):
    at = opened(words.HEADS)
    before, passed = sent(at, words.STATISTICS["sep"])["details"][1], controls.inference().n_passed
    at.select_slider(key="alpha").set_value(0.001).run()
    after = sent(at, words.STATISTICS["sep"])["details"][1]
    assert (before["label"], after["label"]) == ("95% interval", "99.9% interval")
    assert before["texts"] != after["texts"]
    assert controls.inference().n_passed == passed


def test_the_table_has_every_statistic_of_every_head_and_is_filtered(opened):
    at = opened(words.TABLE, head="1-4,2-7")
    table = at.dataframe[0].value
    assert len(table) == len(words.STATISTICS) * 72
    assert set(table["statistic"]) == set(words.STATISTICS.values())
    at.multiselect(key="surface statistics").set_value([words.STATISTICS[name] for name in ("sep", "entropy")]).run()
    at.multiselect(key="surface layers").set_value(["1"]).run()
    table = at.dataframe[0].value
    assert len(table) == 2 * 12
    assert set(table["layer"]) == {1}
    at.toggle(key="surface chosen").set_value(True).run()
    assert set(at.dataframe[0].value["head"]) == {4}


def test_chosen_heads_come_from_the_link_and_stand_side_by_side(opened):
    of_chosen = opened(words.CHOSEN, head="1-4,2-7").dataframe[0].value
    assert list(of_chosen.columns) == ["statistic", "L1 H4", "L2 H7"]
    for drawn in charts(opened(head="1-4,2-7")):
        assert set(drawn.loc[drawn["kind"] == "chosen", "name"]) == {"L1 H4", "L2 H7"}


def test_functions_name_the_offset_and_the_relations(opened, bundled):
    at = opened(words.FUNCTIONS, corpus_text=TEXTS)
    described = next(each for each in sentences(at) if each.startswith("Rows: layers"))
    positional = find(SURFACE_ANALYSIS, bundled, read_typed(TEXTS)).labels.positional
    for layer, head in np.argwhere(positional.holds).tolist():
        assert f"L{layer} H{head} ({words.offset_name(int(positional.offset[layer, head]))})" in described
    assert words.LABELS in [each.value for each in at.markdown]
    assert "columns: heads by number" in described
    by_confidence = opened(words.FUNCTIONS, **{"by confidence": "true"})
    assert any("columns: heads by confidence" in each for each in sentences(by_confidence))


def test_heads_that_are_syntactic_here_are_told_apart_from_those_that_roles_counts(app, opened):
    """The syntactic heads of the grid are those of Roles and those of single relations alone."""
    at = opened(words.FUNCTIONS, tau="1.5", method="mean alone")
    parts = next(drawn for drawn in charts(at) if "function" in drawn)
    n_drawn = int(((parts["kind"] == "part") & (parts["function"] == "syntactic")).sum())
    counts = app("roles", tau="1.5", method="mean alone").markdown
    n_pooled = int(
        next(re.findall(r"(\d+) syntactic", each.value)[0] for each in counts if "hold a role" in each.value)
    )
    assert n_drawn > n_pooled > 0
    assert words.by_sieve(n_pooled, n_drawn - n_pooled) in sentences(at)


def test_heads_by_the_papers_own_rule_stand_in_the_grid_when_asked_for(opened):
    at = opened(words.FUNCTIONS)
    kinds = [set(drawn.loc[drawn["kind"] == "part", "function"]) for drawn in charts(at) if "function" in drawn]
    assert not any("argmax" in of_chart for of_chart in kinds)
    at.toggle(key="by argmax").set_value(True).run()
    assert not at.error
    described = next(each for each in sentences(at) if each.startswith("Rows: layers"))
    assert "syntactic by argmax (D)" in described
    assert wording.few_cases(1, 100) in sentences(at), "three sentences have few cases"


def test_another_frequency_list_changes_rare_words_and_runs_no_model_and_what_is_wrong_with_one_is_said(opened):
    at = opened(words.TABLE)
    passed, before = controls.inference().n_passed, at.dataframe[0].value
    at.selectbox(key="frequencies").set_value(words.BY_FILE).run()
    assert words.WAIT_LIST in [each.value for each in at.info]
    at.file_uploader(key="frequency list").upload("mine.tsv", b"term\tcount\na\t3\n").run()
    assert 'names no column "rank"' in said(at)[0]
    common = [f"word{number}" for number in range(600)]
    at.file_uploader(key="frequency list").upload("mine.txt", "\n".join([*common, "dog"]).encode()).run()
    assert not at.error
    after = at.dataframe[0].value
    is_rare = before["statistic"].str.contains("rarest")
    assert not before[is_rare]["mean"].equals(after[is_rare]["mean"])
    assert before[~is_rare]["mean"].equals(after[~is_rare]["mean"])
    assert controls.inference().n_passed == passed


def test_gradients_are_computed_when_asked_for_and_kept(opened, small):
    link = {"checkpoint": small("bert", "MaskedLM"), "corpus_text": TEXTS}
    at = opened(words.LAYERS, **link)
    assert len(charts(at)) == 2, "the picture of the page and the agreement of heads"
    button(at, words.COMPUTE).click().run()
    assert not at.error
    assert len(charts(at)) == 3
    assert any(each.startswith(f"Over {N_TEXTS} texts with ") for each in sentences(at))
    again = opened(words.LAYERS, **link)
    assert len(charts(again)) == 3


def test_a_checkpoint_without_a_language_model_says_so(opened, small):
    at = opened(words.LAYERS, checkpoint=small("bert"), corpus_text=TEXTS)
    controls.inference().checkpoint(at.session_state["engine"])
    at.run()
    assert words.NO_LANGUAGE_MODEL in [each.value for each in at.info]
    assert not at.error


@pytest.mark.parametrize("tab", [words.ENTROPY, words.FUNCTIONS])
def test_a_decoder_has_a_first_token_in_place_of_special_ones(opened, small, tab):
    at = opened(tab, checkpoint=small("gpt2"), corpus_text=TEXTS)
    assert not at.error
    (headline,) = (each for each in sentences(at) if "Over 3" in each)
    assert "half of their attention on the first token" in headline or "half of its attention on the first" in headline
    assert "[CLS]" not in headline


@pytest.mark.parametrize(
    ("kind", "tab"),
    [("encoder", words.ENTROPY), ("decoder", words.FUNCTIONS), *(("cross-attention", tab) for tab in TABS)],
)
def test_each_attention_of_an_encoder_decoder_is_shown(opened, small, tab, kind):
    pairs = "the cat sat on a mat ||| the dog ran\nthe dog chased two birds ||| a cat ran"
    at = opened(tab, checkpoint=small("bart", "Seq2SeqLM"), corpus_text=pairs, attention=kind)
    assert not at.error
    assert (words.NO_NEIGHBOURS in sentences(at)) == (kind == "cross-attention")
    (headline,) = (each for each in sentences(at) if "Over 2" in each)
    assert ("positional" in headline) == (kind != "cross-attention")
    assert f"of {6 if kind == 'encoder' else 12} heads**" in headline


def test_heads_switched_off_are_said_and_change_the_numbers(opened):
    before = shown_map(opened(words.HEADS), words.STATISTICS["sep"])
    at = opened(words.HEADS, off="0-2,1-3")
    assert any("Switched off: L0 H2, L1 H3" in each for each in sentences(at))
    after = shown_map(at, words.STATISTICS["sep"])
    np.testing.assert_allclose(after[0], before[0], atol=1e-6)
    assert np.abs(after[2:] - before[2:]).max() > 1e-3


def test_texts_that_are_too_long_are_named(opened, tmp_path):
    short = str(save("bert", tmp_path / "short"))
    texts = f"{'the cat sat ' * 20}\nthe dog ran\na bird sat"
    at = opened(checkpoint=short, corpus_text=texts)
    assert any("Over 2 texts" in each for each in sentences(at))
    assert len(at.warning) == 1


def test_one_text_has_no_interval(opened):
    at = opened(words.HEADS, corpus_text="the cat sat on the mat.")
    assert sent(at, words.STATISTICS["sep"])["details"][1]["texts"][0][0] == words.NO_INTERVAL


def test_a_link_with_nonsense_opens_with_what_the_page_offers(opened):
    at = opened("nonsense", statistic="x", frequencies="y", head="99-99")
    assert not at.error
    assert at.selectbox(key="frequencies").value == words.BY_TEXTS
