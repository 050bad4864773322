import json
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from drawn import SVG, plain, texts_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from reading import numbers
from streamlit.testing.v1 import AppTest

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.components.arcs import arcs_data
from attention_sieve.dashboard.components.arcs.look import AS_USUAL, ArcStyle, Group, Overlay
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, LESS, MORE
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, Side, Signs, arcs_svg, top_share, visible

SIGNS = Signs()
HOSTILE = ["<img src=x onerror=alert(1)>", "</script>", "مرحبا", "\u202eabc", "\x00\ud800\ufffe", "\n\t", "x" * 300]


def side(**changes: object) -> Side:
    """Five tokens: [CLS] grand ##mother slept [SEP]."""
    fields = {
        "tokens": ["[CLS]", "grand", "##mother", "slept", "[SEP]"],
        "special": np.array([True, False, False, False, True]),
        "segments": np.array([-1, 0, 0, 0, -1]),
        "words": np.array([-1, 0, 0, 1, -1]),
    }
    return Side(**fields | changes)


def arguments(**changes: object) -> dict:
    """Two heads on five tokens."""
    attention = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 5))
    return {
        "queries": side(),
        "attention": attention,
        "heads": [(3, 7), (3, 11)],
        "label": "Attention of two heads",
    } | changes


def payload(**changes: object) -> dict:
    """What the browser gets."""
    given = arguments(**changes)
    keys, style, overlay = given.pop("keys", None), given.pop("style", AS_USUAL), given.pop("overlay", None)
    maps = AttentionMaps(**given, keys=keys or given["queries"])
    return json.loads(json.dumps(arcs_data(maps, style, overlay=overlay)))


# Top share


@pytest.mark.parametrize(
    ("share", "kept"),
    [
        (0.4, [False, True, False, False]),
        (0.5, [False, True, False, False]),
        (0.51, [True, True, False, False]),
        (0.8, [True, True, False, False]),
        (1.0, [True, True, True, False]),
    ],
)
def test_top_share_keeps_the_fewest_keys_that_reach_it(share, kept):
    assert top_share(np.array([0.3, 0.5, 0.2, 0.0]), share).tolist() == kept


def test_ties_keep_the_earlier_keys_and_a_row_short_of_its_share_of_the_whole_is_kept_in_full():
    assert top_share(np.full(4, 0.25), 0.5).tolist() == [True, True, False, False]
    assert top_share(np.array([0.1, 0.3, 0.0]), 0.5, 1.0).tolist() == [True, True, False]
    assert not top_share(np.zeros((2, 3)), 1.0).any()


@pytest.mark.parametrize("share", [0, -0.1, 1.01])
def test_a_share_outside_its_range_is_named(share):
    with pytest.raises(ValueError, match=r"above 0 and at most 1, got"):
        top_share(np.ones(1), share)


@given(
    arrays.arrays(np.float64, (3, 7), elements=st.floats(1e-3, 1)),
    st.floats(0.05, 1),
)
def test_kept_keys_reach_the_share_and_none_could_be_spared(weights, share):
    attention = weights / weights.sum(axis=-1, keepdims=True)
    kept = top_share(attention, share)
    reached = (attention * kept).sum(axis=-1)
    lightest = np.where(kept, attention, 1).min(axis=-1)
    assert (reached >= share - 1e-5).all()
    assert (reached - lightest < share).all()


# What the browser gets


def test_sent_weights_are_right_within_a_quantisation_step():
    attention = arguments()["attention"]
    sent = (numbers(payload()["attention"]).reshape(attention.shape) / 255) ** 2
    assert np.abs(sent - attention).max() < 0.004
    assert np.abs(np.sqrt(sent) - np.sqrt(attention)).max() <= 0.5 / 255 + 1e-9


def test_a_rerun_with_the_same_input_sends_the_same_bytes():
    def page(maps, overlay):
        from attention_sieve.dashboard.components.arcs import attention_arcs
        from attention_sieve.dashboard.components.arcs.look import ArcSettings
        from attention_sieve.dashboard.components.source import Selection

        attention_arcs(maps, Selection("arcs", ArcSettings()), overlay=overlay)

    maps = AttentionMaps(**arguments(), keys=side())
    overlay = Overlay(chosen=("local", np.eye(5, dtype=bool)))
    at = AppTest.from_function(page, kwargs={"maps": maps, "overlay": overlay}, default_timeout=30).run()
    first = at.get("bidi_component")[0].proto.json
    assert at.run().get("bidi_component")[0].proto.json == first
    assert not at.exception


def test_heads_are_named_and_coloured_in_order_and_a_colour_that_returns_is_dashed():
    heads = payload(attention=np.full((12, 5, 5), 0.2), heads=[(0, head) for head in range(12)])["heads"]
    assert [head["name"] for head in heads] == [f"L0 H{head}" for head in range(12)]
    assert [head["color"] for head in heads] == [*HEAD_COLORS, *HEAD_COLORS[:4]]
    assert len({(head["color"], head["dashed"]) for head in heads}) == 12


def test_pieces_are_joined_to_words_and_keys_that_are_the_queries_are_sent_once_and_long_texts_scroll():
    n_tokens = 300
    short, long = payload(), payload(queries=plain(["a"] * n_tokens), attention=np.eye(n_tokens)[None], heads=[(0, 0)])
    assert (short["queries"]["wordLabels"], short["keys"]) == (["grandmother", "slept"], None)
    assert (short["height"], long["height"]) == (None, 640)


def test_sieve_share_is_the_mean_over_queries_that_have_a_sieve():
    attention = np.full((2, 5, 5), 0.2)
    attention[1, 1] = [0, 0, 0.7, 0.3, 0]
    cells = np.zeros((5, 5), bool)
    cells[1, 2] = cells[3, [0, 4]] = True
    sieve = payload(attention=attention, overlay=Overlay(chosen=("syntactic", cells)))["sieve"]
    assert sieve["inside"] == [0.3, 0.55]
    assert sieve["even"] == 0.3
    assert sieve["queries"] == 2
    assert np.unpackbits(numbers(sieve["cells"]))[:25].reshape(5, 5).tolist() == cells.tolist()
    empty = payload(overlay=Overlay(chosen=("block", np.zeros((5, 5), bool))))["sieve"]
    assert (empty["queries"], empty["inside"], empty["even"]) == (0, [], None)


def test_evenly_spread_attention_of_a_causal_model_stays_before_the_query():
    attention = np.tril(np.ones((5, 5)))
    attention /= attention.sum(axis=1, keepdims=True)
    cells = np.zeros((5, 5), bool)
    cells[3, 3] = True
    sieve = payload(attention=attention[None], heads=[(0, 0)], causal=True, overlay=Overlay(chosen=("local", cells)))[
        "sieve"
    ]
    assert sieve["even"] == sieve["inside"][0] == 0.25


def test_a_row_without_a_query_has_no_attention_and_the_text_of_a_group_can_be_named():
    attention = arguments()["attention"].copy()
    attention[:, 2], attention[:, :, 2] = 0, 0
    attention /= np.maximum(attention.sum(axis=-1, keepdims=True), 1e-9)
    data = payload(attention=attention, style=ArcStyle(group=Group("two", "five words")))
    assert (data["group"], data["text"]) == ("two", "five words")
    assert payload()["text"] is None


# Two texts, and windows of one


def test_queries_and_keys_of_two_texts_travel_apart():
    attention = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 5))
    cells = np.zeros((5, 3), bool)
    cells[1, 2] = cells[4, 0] = True
    keys = plain(["le", "chat", "dort"], name="source")
    data = payload(
        queries=side(name="target"), keys=keys, attention=attention, overlay=Overlay(chosen=("local", cells))
    )
    assert (data["queries"]["name"], data["keys"]["name"]) == ("target", "source")
    assert data["keys"]["tokens"] == ["le", "chat", "dort"]
    assert data["inside"] is None
    sent = (numbers(data["attention"]).reshape(2, 5, 3) / 255) ** 2
    assert np.abs(sent - attention).max() < 0.004
    assert np.unpackbits(numbers(data["sieve"]["cells"]))[:15].reshape(5, 3).tolist() == cells.tolist()
    assert data["sieve"]["even"] == 0.3333


def window(**changes: object) -> dict:
    """Tokens 2 and 3 of five as queries, 1 to 3 as keys; 0.25 and 1 of the queries' attention stay in the window."""
    given = {"queries": side().part(2, 4), "keys": side().part(1, 4), "heads": [(3, 7)]}
    return given | {"attention": np.array([[[0.25, 0, 0], [0.5, 0.25, 0.25]]])} | changes


def test_a_window_says_where_it_lies_and_how_much_of_each_row_stays_in_it():
    data = payload(**window())
    assert [data[side]["start"] for side in ("queries", "keys")] == [2, 1]
    assert [data[side]["whole"] for side in ("queries", "keys")] == [5, 5]
    assert data["keys"]["tokens"] == ["grand", "##mother", "slept"]
    inside = numbers(data["inside"], "<u2") / 65535
    assert inside == pytest.approx([0.25, 1], abs=1e-5)
    assert data["height"] == 640


def test_words_of_a_window_are_numbered_from_its_first():
    data = payload(**window(queries=side().part(3, 5)))
    assert data["queries"]["words"] == [0, -1]
    assert data["queries"]["wordLabels"] == ["slept"]


@pytest.mark.parametrize(("causal", "even"), [(False, 2 / 5), (True, (2 / 3 + 2 / 4) / 2)])
def test_evenly_spread_attention_of_a_window_is_spread_over_the_whole_text(causal, even):
    cells = np.array([[True, True, False], [False, True, True]])
    sieve = payload(**window(causal=causal, overlay=Overlay(chosen=("local", cells))))["sieve"]
    assert sieve["even"] == pytest.approx(even, abs=1e-4)
    assert sieve["inside"] == [0.375]


def test_a_part_of_a_part_keeps_its_place_in_the_whole_text():
    part = side().part(1, 5).part(3, 5)
    assert (list(part.tokens), part.start, part.length) == (["slept", "[SEP]"], 3, 5)
    assert part.special.tolist() == [False, True]
    assert part.segments.tolist() == [0, -1]
    assert part.words.tolist() == [1, -1]
    assert part.is_part
    assert not side().is_part


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 2), (3, 6)])
def test_a_part_outside_the_text_is_named(start, stop):
    with pytest.raises(ValueError, match=f"Tokens {start} to {stop - 1} are not among 0 to 4"):
        side().part(start, stop)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": []}, "at least one token on each side, got none"),
        ({"special": np.zeros(4, bool)}, r"special needs one value for each of 5 tokens, got shape \(4,\)"),
        ({"segments": np.zeros(6, int)}, "segments needs one value"),
        ({"words": np.zeros(6, int)}, "words needs one value"),
        ({"start": 3, "n_whole": 7}, "5 tokens from 3 on do not lie in a text of 7"),
    ],
)
def test_what_is_wrong_with_a_side_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        side(**changes)


# Differences of two maps


def difference(signs: Signs = SIGNS, **changes: object) -> dict:
    """One head on five tokens, b - a."""
    a, b = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 5))
    return arguments(attention=(b - a)[None], heads=[(3, 7)], signs=signs, **changes)


def test_differences_travel_to_four_digits_with_zeros_and_signs_kept():
    given = difference()["attention"].copy()
    given[0, 2] = [0.5, 0.0, -0.5, 0.0, 0.0]
    data = payload(**difference() | {"attention": given})
    sent = numbers(data["attention"], "<i2").reshape(given.shape) / 32767
    assert np.abs(sent - given).max() < 2e-5
    assert (sent[0, 2] == 0).tolist() == [False, True, False, True, True]
    assert data["inside"] is None


def test_a_difference_says_what_its_colours_mean_and_a_map_has_none():
    data = payload(**difference(Signs("more in b", "less in b")))
    assert [data["signed"][word] for word in ("more", "less")] == ["more in b", "less in b"]
    assert data["signed"]["pens"] == [{"color": MORE, "dashed": False}, {"color": LESS, "dashed": True}]
    assert payload()["signed"] is None


def test_the_sieve_share_of_a_difference_has_a_sign():
    given = np.zeros((1, 5, 5))
    given[0, 1] = [0.3, 0, -0.3, 0, 0]
    given[0, 3] = [-0.1, 0, 0, 0, 0.1]
    cells = np.zeros((5, 5), bool)
    cells[1, 2] = cells[3, 0] = True
    assert payload(**difference() | {"attention": given, "overlay": Overlay(chosen=("local", cells))})["sieve"][
        "inside"
    ] == [-0.2]


def test_differences_of_a_window_may_leave_it():
    given = np.array([[[0.25, 0, 0], [-0.5, 0.25, 0]]])
    assert payload(**window(attention=given, signs=Signs()))["inside"] is None


@pytest.mark.parametrize(
    ("given", "changes", "message"),
    [
        ({}, {"attention": np.full((2, 5, 4), 0.25)}, r"need attention of shape \(2, 5, 5\), got \(2, 5, 4\)"),
        ({}, {"keys": plain(["a", "b"])}, r"5 queries and 2 keys need attention of shape \(2, 5, 2\), got \(2, 5, 5\)"),
        ({}, {"attention": np.full((2, 5, 5), 0.25)}, "sums to at most 1; one row is off by 0.25"),
        ({}, {"attention": np.full((2, 5, 5), np.nan)}, "negative or missing weights"),
        ({}, {"heads": [], "attention": np.zeros((0, 5, 5))}, "1 to 12 heads, got 0"),
        ({}, {"heads": [(3, 7), (3, 7)]}, "shown once, got L3 H7, L3 H7"),
        (
            {},
            {"overlay": Overlay(chosen=("local", np.zeros((4, 5), bool)))},
            r"for 5 queries and 5 keys has that shape, got \(4, 5\)",
        ),
        (window(), {"attention": np.full((1, 2, 3), 0.5)}, r"sums to at most 1; one row is off by 0\.5"),
        (difference(), {"attention": np.zeros((2, 5, 5)), "heads": [(3, 7), (3, 11)]}, "one head at a time, got 2"),
        (difference(), {"attention": np.tile([1.5, -1.5, 0, 0, 0], (1, 5, 1))}, "lie between -1 and 1"),
        (difference(), {"attention": np.full((1, 5, 5), np.nan)}, "lie between -1 and 1"),
        (difference(), {"attention": np.zeros((1, 5, 4))}, r"need attention of shape \(1, 5, 5\), got \(1, 5, 4\)"),
    ],
)
def test_what_does_not_fit_is_named(given, changes, message):
    with pytest.raises(ValueError, match=message):
        payload(**given | changes)


# Signs for characters that do not show


@pytest.mark.parametrize(
    ("token", "sign"),
    [
        ("", "∅"),
        ("\n", "↵"),
        ("\t", "⇥"),
        ("  ", "␣␣"),
        (" a b ", "␣a b␣"),
        ("\x07", "\N{REPLACEMENT CHARACTER}"),
        ("\u202eabc", "\N{REPLACEMENT CHARACTER}abc"),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        ("مرحبا", "مرحبا"),
    ],
)
def test_every_character_of_a_token_shows(token, sign):
    assert visible(token) == sign


# The file


def file_of(
    queries: Side,
    attention: np.ndarray,
    heads: list[Head],
    *,
    keys: Side | None = None,
    signs: Signs | None = None,
    **drawing: Any,
) -> str:
    maps = AttentionMaps(
        queries=queries, keys=keys or queries, attention=attention, heads=heads, signs=signs, label="Attention"
    )
    return arcs_svg(maps, title="T", **drawing)


def drawn(tokens: list[str], share: float = 0.5) -> ElementTree.Element:
    attention = np.random.default_rng(1).dirichlet(np.ones(len(tokens)), size=(2, len(tokens)))
    text = file_of(plain(tokens), attention, [(0, 1), (2, 3)], share=share, caption=["bert", "<text 1>"])
    return ElementTree.fromstring(text)


def test_a_file_of_hostile_tokens_is_well_formed_and_only_text():
    svg = drawn(HOSTILE)
    assert {element.tag for element in svg.iter()} <= {
        SVG + tag for tag in ("svg", "title", "rect", "g", "line", "path", "text")
    }
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert texts.count("</script>") == 2
    assert texts[-2:] == ["bert", "<text 1>"]


def test_a_file_draws_the_top_share():
    tokens = ["a", "b", "c"]
    attention = np.random.default_rng(1).dirichlet(np.ones(3), size=(2, 3))
    assert len(list(drawn(tokens, share=0.6).iter(f"{SVG}path"))) == top_share(attention, 0.6).sum()


def test_a_file_draws_the_strongest_links_of_each_query():
    attention = np.array([[[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.3, 0.35, 0.35]]])
    svg = file_of(plain(["a", "b", "c"]), attention, [(0, 1)], share=0.1, strongest=2, caption=[])
    widths = [float(path.get("stroke-width")) for path in ElementTree.fromstring(svg).iter(f"{SVG}path")]
    assert widths == [round(0.8 + 3.2 * weight, 2) for weight in (0.3, 0.35, 0.35, 0.5, 1)]
    with pytest.raises(ValueError, match="At least 1 link of each query is drawn, got 0"):
        file_of(plain(["a"]), np.ones((1, 1, 1)), [(0, 1)], strongest=0, caption=[])


def test_a_file_of_two_texts_has_their_names_and_tokens():
    queries, keys = plain(["the", "cat"], name="target"), plain(["le", "chat", "dort"], name="source")
    attention = np.array([[[0.0, 0.4, 0.6], [1.0, 0.0, 0.0]]])
    svg = file_of(queries, attention, [(0, 1)], keys=keys, share=1.0, caption=[])
    expected = ["T", "L0 H1", "target, queries", "source, keys", "the", "cat", "le", "chat", "dort"]
    assert texts_of(svg) == expected
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}path"))) == 3


def test_a_file_of_a_window_counts_shares_of_the_whole_row():
    whole = plain(list("abcdefgh"))
    attention = np.array([[[0.1, 0.1], [0.6, 0.4]]])
    svg = file_of(whole.part(4, 6), attention, [(0, 1)], keys=whole.part(0, 2), caption=["bert"])
    assert texts_of(svg)[-2:] == [
        "Window: queries 4 to 5 of 8, keys 0 to 1 of 8; on average 40% of the attention leaves it.",
        "bert",
    ]
    # Of the first row 0.2 is in the window, all of it in the top half of the row; of the second, 0.6 is enough.
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}path"))) == 3


def test_a_file_of_a_difference_draws_more_and_less_apart():
    given = np.array([[[0.6, -0.4, -0.2], [0.004, -0.004, 0.0], [0.0, 0.0, 0.0]]])
    tokens = plain(["a", "b", "c"])
    svg = file_of(tokens, given, [(3, 7)], share=0.7, signs=Signs("more in b", "less in b"), caption=["x"])
    assert texts_of(svg)[:3] == ["T", "L3 H7: + more in b", "− less in b"]
    paths = list(ElementTree.fromstring(svg).iter(f"{SVG}path"))
    # The top 0.7 of the first row's 1.2; the second row's differences are too small to draw, the third has none.
    assert [(path.get("stroke"), path.get("stroke-width")) for path in paths] == [(LESS, "2.08"), (MORE, "2.72")]
    assert [path.get("stroke-dasharray") for path in paths] == ["7 3", None]


def test_a_file_of_a_difference_in_a_window_says_nothing_of_what_leaves_it():
    whole = plain(list("abcdefgh"))
    svg = file_of(
        whole.part(4, 6), np.array([[[0.1, 0.1], [0.6, -0.4]]]), [(0, 1)], keys=whole.part(0, 2), signs=Signs(),
        caption=["bert"],
    )  # fmt: skip
    assert texts_of(svg)[-2:] == ["Window: queries 4 to 5 of 8, keys 0 to 1 of 8.", "bert"]


def test_special_tokens_give_their_targets_a_name_and_others_have_a_general_one() -> None:
    labels = {each["name"]: each["label"] for each in payload()["targets"]}
    assert (labels["first"], labels["separator"]) == ("first token", "[SEP]")
    kinds = ("first", "other", "other", "punctuation", "separator")
    named = payload(queries=side(tokens=["<s>", "grand", "mother", ".", "</s>"], kinds=kinds))
    labels = {each["name"]: each["label"] for each in named["targets"]}
    assert (labels["first"], labels["separator"], labels["punctuation"]) == ("<s>", "</s>", "punctuation")
    assert named["queries"]["kinds"] == list(kinds)
