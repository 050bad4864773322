import base64
import json
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from streamlit.testing.v1 import AppTest

from dashboard.components.arcs import attention_arcs
from dashboard.components.thumbnails import head_thumbnails
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.arcs_svg import arcs_svg, top_share, visible

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["<img src=x onerror=alert(1)>", "</script>", "مرحبا", "\u202eabc", "\x00\ud800\ufffe", "\n\t", "x" * 300]


def arguments(**changes: object) -> dict:
    """Two heads on five tokens: [CLS] grand ##mother slept [SEP]."""
    attention = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 5))
    return {
        "key": "arcs",
        "tokens": ["[CLS]", "grand", "##mother", "slept", "[SEP]"],
        "special": np.array([True, False, False, False, True]),
        "segments": np.array([-1, 0, 0, 0, -1]),
        "word_of": np.array([-1, 0, 0, 1, -1]),
        "attention": attention,
        "heads": [(3, 7), (3, 11)],
        "sieve": None,
        "label": "Attention of two heads",
    } | changes


def shown(draw: Callable[..., object], **given_arguments: object) -> AppTest:
    def page(draw, given_arguments):
        draw(**given_arguments)

    at = AppTest.from_function(
        page, kwargs={"draw": draw, "given_arguments": given_arguments}, default_timeout=30
    ).run()
    assert not at.exception
    return at


def mounted(at: AppTest) -> str:
    return at.get("bidi_component")[0].proto.json


def payload(**changes: object) -> dict:
    return json.loads(mounted(shown(attention_arcs, **arguments(**changes))))


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8)


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


def test_of_equal_weights_the_earlier_keys_are_kept():
    assert top_share(np.full(4, 0.25), 0.5).tolist() == [True, True, False, False]


def test_a_row_without_attention_keeps_nothing():
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
    sent = (unpacked(payload()["attention"]).reshape(attention.shape) / 255) ** 2
    assert np.abs(sent - attention).max() < 0.004
    assert np.abs(np.sqrt(sent) - np.sqrt(attention)).max() <= 0.5 / 255 + 1e-9


def test_a_rerun_with_the_same_input_sends_the_same_bytes():
    at = shown(attention_arcs, **arguments(sieve=("local", np.eye(5, dtype=bool))))
    first = mounted(at)
    assert mounted(at.run()) == first


def test_heads_are_named_and_coloured_in_order():
    heads = payload()["heads"]
    assert [head["name"] for head in heads] == ["L3 H7", "L3 H11"]
    assert [head["color"] for head in heads] == list(HEAD_COLORS[:2])


def test_a_colour_that_returns_is_dashed():
    attention = np.full((12, 5, 5), 0.2)
    heads = payload(attention=attention, heads=[(0, head) for head in range(12)])["heads"]
    looks = [(head["color"], head["dashed"]) for head in heads]
    assert len(set(looks)) == 12


def test_pieces_are_joined_to_words():
    assert payload()["wordLabels"] == ["grandmother", "slept"]


def test_short_texts_grow_and_long_texts_scroll():
    n_tokens = 300
    long = payload(
        tokens=["a"] * n_tokens,
        special=np.zeros(n_tokens, bool),
        segments=np.zeros(n_tokens, int),
        word_of=np.arange(n_tokens),
        attention=np.eye(n_tokens)[None],
        heads=[(0, 0)],
    )
    assert payload()["height"] is None
    assert long["height"] == 640


def test_sieve_share_is_the_mean_over_queries_that_have_a_sieve():
    attention = np.full((2, 5, 5), 0.2)
    attention[1, 1] = [0, 0, 0.7, 0.3, 0]
    cells = np.zeros((5, 5), bool)
    cells[1, 2] = cells[3, [0, 4]] = True
    sieve = payload(attention=attention, sieve=("syntactic", cells))["sieve"]
    assert sieve["inside"] == [0.3, 0.55]
    assert sieve["even"] == 0.3
    assert sieve["queries"] == 2
    assert np.unpackbits(unpacked(sieve["cells"]))[:25].reshape(5, 5).tolist() == cells.tolist()


def test_evenly_spread_attention_of_a_causal_model_stays_before_the_query():
    attention = np.tril(np.ones((5, 5)))
    attention /= attention.sum(axis=1, keepdims=True)
    cells = np.zeros((5, 5), bool)
    cells[3, 3] = True
    sieve = payload(attention=attention[None], heads=[(0, 0)], sieve=("local", cells))["sieve"]
    assert sieve["even"] == sieve["inside"][0] == 0.25


def test_an_empty_sieve_has_no_shares():
    sieve = payload(sieve=("block", np.zeros((5, 5), bool)))["sieve"]
    assert (sieve["queries"], sieve["inside"], sieve["even"]) == (0, [], None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": []}, "at least one token, got none"),
        ({"special": np.zeros(4, bool)}, r"special needs one value for each of 5 tokens, got shape \(4,\)"),
        ({"segments": np.zeros(6, int)}, "segments needs one value"),
        ({"word_of": np.zeros(6, int)}, "word_of needs one value"),
        ({"attention": np.full((2, 5, 4), 0.25)}, r"need attention of shape \(2, 5, 5\), got \(2, 5, 4\)"),
        ({"attention": np.full((2, 5, 5), 0.25)}, "sums to 1; one row is off by 0.25"),
        ({"attention": np.full((2, 5, 5), np.nan)}, "negative or missing weights"),
        ({"share": 0.0}, "above 0 and at most 1, got 0.0"),
        ({"heads": []}, "1 to 12 heads, got 0"),
        ({"heads": [(3, 7), (3, 7)]}, "shown once, got L3 H7, L3 H7"),
        ({"sieve": ("local", np.zeros((4, 5), bool))}, r"has shape \(5, 5\), got \(4, 5\)"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        attention_arcs(**arguments(**changes))


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


def drawn(tokens: list[str], share: float = 0.5) -> ElementTree.Element:
    attention = np.random.default_rng(1).dirichlet(np.ones(len(tokens)), size=(2, len(tokens)))
    text = arcs_svg(tokens, attention, [(0, 1), (2, 3)], share=share, title="T", caption=["bert", "<text 1>"])
    return ElementTree.fromstring(text)


def test_a_file_of_hostile_tokens_is_well_formed_and_only_text():
    svg = drawn(HOSTILE)
    assert {element.tag for element in svg.iter()} <= {
        SVG + tag for tag in ("svg", "rect", "g", "line", "path", "text")
    }
    assert sum(text.text == "</script>" for text in svg.iter(f"{SVG}text")) == 2


def test_a_file_draws_the_top_share():
    tokens = ["a", "b", "c"]
    attention = np.random.default_rng(1).dirichlet(np.ones(3), size=(2, 3))
    assert len(list(drawn(tokens, share=0.6).iter(f"{SVG}path"))) == top_share(attention, 0.6).sum()


def test_a_file_carries_its_caption():
    assert [text.text for text in drawn(["a", "b"]).iter(f"{SVG}text")][-2:] == ["bert", "<text 1>"]


def test_a_file_needs_attention_between_its_tokens():
    with pytest.raises(ValueError, match=r"of shape \(1, 2, 2\), got \(1, 2, 3\)"):
        arcs_svg(["a", "b"], np.ones((1, 2, 3)), [(0, 0)], title="T", caption=[])


# Thumbnails


def thumbnails(**changes: object) -> AppTest:
    attention = np.full((2, 3, 40, 40), 1 / 40)
    attention[1, 2] = np.eye(40)
    given_arguments = {"key": "heads", "attention": attention, "layer": None, "chosen": None, "label": "All heads"}
    return shown(head_thumbnails, **given_arguments | changes)


def pixels(data: dict) -> np.ndarray:
    return unpacked(data["pixels"]).reshape(len(data["heads"]), data["side"], data["side"])


def test_thumbnails_show_every_head_of_the_model_or_of_one_layer():
    assert len(json.loads(mounted(thumbnails()))["heads"]) == 6
    assert json.loads(mounted(thumbnails(layer=1)))["heads"] == [[1, head, f"L1 H{head}"] for head in range(3)]


def test_even_attention_gives_an_even_thumbnail():
    images = pixels(json.loads(mounted(thumbnails())))
    assert images.shape == (6, 32, 32)
    assert np.unique(images[0]).tolist() == [round((1 / 32) ** 0.5 * 255)]


def test_a_diagonal_head_gives_a_diagonal_thumbnail():
    image = pixels(json.loads(mounted(thumbnails())))[5]
    assert (np.diagonal(image) > 190).all()
    assert image.sum() == np.diagonal(image).astype(int).sum()


def test_thumbnails_of_many_heads_stay_small():
    attention = np.full((32, 32, 64, 64), 1 / 64, dtype=np.float32)
    assert len(mounted(thumbnails(attention=attention))) < 300_000


def test_an_unknown_layer_is_named():
    with pytest.raises(ValueError, match="Layer 2 is not one of the 2 layers"):
        head_thumbnails(key="k", attention=np.ones((2, 3, 4, 4)), layer=2, chosen=None, label="")


def test_a_head_chosen_elsewhere_is_pushed_to_the_browser_once():
    at = thumbnails(chosen=(1, 2))
    first = mounted(at)
    assert json.loads(first)["push"] == {"number": 1, "head": [1, 2]}
    assert mounted(at.run()) == first
