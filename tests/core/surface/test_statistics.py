"""Statistics and labels of heads over many texts: by hand, and with heads planted into hand-made maps."""

import numpy as np
import pytest
from passing import SELF, whole_tile
from scipy import stats

from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.surface.frequencies import FrequencyList
from attention_sieve.core.surface.observer import SurfaceObserver
from attention_sieve.core.surface.per_text import SHARES, SPREAD, TextSurface
from attention_sieve.core.surface.statistics import (
    BEHAVIOURS,
    NEAR,
    OFFSETS,
    RADIUS,
    RARE,
    HeadStatistics,
    PositionalHeads,
    RareShares,
    behaviours,
    head_labels,
    head_statistics,
    layer_statistics,
    offset_shares,
    positional,
    rare_shares,
    uniform_entropy,
)
from attention_sieve.core.texts.text import Text

NAN = float("nan")
N_LAYERS, N_HEADS = 2, 3


def surface(top_key=None, top_column=None, value=0.0, distance=1.0, **changed):
    """What was found of a made-up text, every statistic one value but for what is changed."""
    cells = np.full((N_LAYERS, N_HEADS), value)
    top_key = np.full((N_LAYERS, N_HEADS, 4), -1) if top_key is None else np.asarray(top_key)
    made = {
        "shares": np.full((len(SHARES), N_LAYERS, N_HEADS), value),
        "entropy": cells,
        "cls_entropy": cells,
        "uniform_entropy": np.array([value, 1.0]),
        "cls_uniform_entropy": np.array([NAN, value]),
        "confidence": cells,
        "distance": cells + distance,
        "top_key": top_key,
        "top_column": np.zeros((N_LAYERS, N_HEADS), int) if top_column is None else np.asarray(top_column),
        "agreement": np.array([value, 2 * value]),
        "output_agreement": np.array([NAN, value]),
    }
    return TextSurface(**made | changed)


def same_for_all(row):
    """One row of most attended keys for every head."""
    return np.broadcast_to(np.array(row), (N_LAYERS, N_HEADS, len(row)))


def test_means_and_intervals_are_those_over_the_texts_that_have_a_value():
    texts = [surface(value=value) for value in (0.25, 0.5, 0.9)] + [surface(cls_entropy=np.full((2, 3), NAN))]
    found = head_statistics(texts, alpha=0.1)
    assert found.names == (*SHARES, *SPREAD, *NEAR.values())
    assert found.mean.shape == (len(found.names), N_LAYERS, N_HEADS)
    for name, values in {"self": [0.25, 0.5, 0.9, 0], "cls entropy": [0.25, 0.5, 0.9]}.items():
        place = found.names.index(name)
        low, high = stats.t.interval(0.9, len(values) - 1, np.mean(values), stats.sem(values))
        np.testing.assert_allclose(found.of(name), np.mean(values))
        np.testing.assert_allclose(found.low[place], low)
        np.testing.assert_allclose(found.high[place], high)
        assert found.n_texts[place] == len(values)


def with_shares(**by_name):
    """A text of which some shares are known; NaN for the others."""
    shares = np.full((len(SHARES), N_LAYERS, N_HEADS), NAN)
    for name, value in by_name.items():
        shares[SHARES.index(name)] = value
    return surface(shares=shares)


def test_a_text_without_a_kind_of_key_has_a_share_of_0_of_it_where_another_has_some():
    signs = {"sep": 0.4, "punctuation": 0.5, "other": 0.1, "sep from sep": 0.7, "sep from others": 0.3}
    found = head_statistics([with_shares(**signs), with_shares(sep=0.25, other=0.75), with_shares(punctuation=1.0)])
    for name, values in {
        "sep": [0.4, 0.25, 0],
        "punctuation": [0.5, 0, 1],
        "other": [0.1, 0.75, 0],
        "sep from others": [0.3, 0, 0],
    }.items():
        place = found.names.index(name)
        np.testing.assert_allclose(found.of(name), np.mean(values))
        np.testing.assert_allclose(found.high[place] - found.of(name), stats.sem(values) * stats.t.ppf(0.975, 2))
        assert found.n_texts[place] == 3
    np.testing.assert_allclose(found.of("sep from sep"), 0.7, err_msg="no separator asks in the other texts")
    assert np.isnan(found.of("cls")).all(), "no text has any"
    assert found.n_texts[found.names.index("cls")] == 0


def test_one_text_has_a_mean_and_no_interval():
    found = head_statistics([surface(value=0.5)])
    np.testing.assert_allclose(found.of("self"), 0.5)
    assert np.isnan(found.low).all()
    assert found.n_texts[found.names.index("top self")] == 0, "no query of it counts"
    assert np.isnan(found.of("top self")).all()


def test_layers_have_statistics_of_their_own():
    found = layer_statistics([surface(value=value) for value in (0.25, 0.75)])
    np.testing.assert_allclose(found.mean, [[0.5, 1.0], [NAN, 0.5]])
    assert found.n_texts.tolist() == [2, 2]
    np.testing.assert_allclose(uniform_entropy([surface(value=v) for v in (1.0, 2.0)]), [[1.5, 1.0], [NAN, 1.5]])


def test_offsets_are_counted_where_they_exist():
    # A mark, three words, a mark: each word's most attended key in two heads of the first layer.
    top = same_for_all([-1, 1, 1, 2, -1]).copy()
    top[0, 1] = [-1, 2, 3, 1, -1]
    shares = offset_shares([surface(top)])
    assert shares.shape == (len(OFFSETS) + 1, N_LAYERS, N_HEADS)
    of_first, of_second = shares[:, 0, 0], shares[:, 0, 1]
    # The first word has no previous one: two have, and both attend to it.
    assert of_first[RADIUS - 1] == 1.0
    assert of_first[RADIUS] == pytest.approx(1 / 3)
    assert of_second[RADIUS + 1] == 1.0
    assert of_second[RADIUS - 2] == 1.0
    assert (shares[-1] == 0).all()
    assert np.isnan(shares[0]).all(), "no word has one five before it"
    n = 2 * RADIUS + 3
    assert offset_shares([surface(same_for_all([0] * n))])[-1, 0, 0] == pytest.approx((n - RADIUS - 1) / n)


def test_texts_count_by_their_tokens():
    attends_back, attends_itself = same_for_all([0, 0, 1, 2]), same_for_all([0, 1])
    shares = offset_shares([surface(attends_back), surface(attends_itself)])
    np.testing.assert_allclose(shares[RADIUS - 1], 3 / 4)
    np.testing.assert_allclose(shares[RADIUS], 3 / 6)
    near = head_statistics([surface(attends_back), surface(attends_itself)])
    np.testing.assert_allclose(near.of("top previous"), (3 / 3 + 0) / 2)
    np.testing.assert_allclose(near.of("top self"), (1 / 4 + 1) / 2)


def test_a_head_is_positional_from_nine_tenths_on():
    n = 21
    nine_tenths = np.arange(n) - 1
    nine_tenths[[0, 3, 7]] = [0, 3, 7]
    fewer = nine_tenths.copy()
    fewer[12] = 12
    top = same_for_all(nine_tenths).copy()
    top[1, 2] = fewer
    found = positional([surface(top)])
    assert found.share[0, 0] == pytest.approx(18 / 20)
    assert found.offset[0, 0] == -1
    expected = np.ones((N_LAYERS, N_HEADS), bool)
    expected[1, 2] = False
    np.testing.assert_array_equal(found.holds, expected)


def test_texts_of_one_token_pairs_and_offsets_that_few_tokens_have_make_nothing_positional():
    # Every token that has a key four before it attends to it, but that is one of five.
    assert not positional([surface(same_for_all([0, 0, 0, 0, 0]))]).holds.any()
    alone = surface(same_for_all([-1, 1, -1]))
    assert not positional([alone]).holds.any()
    assert positional([alone, surface(same_for_all([-1, 2, 1, -1]))]).share[0, 0] == 1
    crossed = surface(same_for_all([0, 1, 2]), distance=NAN)
    assert np.isnan(offset_shares([crossed])).all()
    assert not positional([crossed]).holds.any()
    assert np.isnan(head_statistics([crossed]).of("top self")).all()


def test_rare_words_are_counted_by_query_and_by_column():
    ranks = np.array([0, 3, 900, 900, 40, 700, 0])
    top = same_for_all([-1, 2, 3, 5, 5, 1, -1]).copy()
    top[1, 0] = [-1, 1, 1, 1, 4, 4, -1]
    column = np.full((N_LAYERS, N_HEADS), 3)
    column[1, 0] = 5
    found = rare_shares([surface(top, column), surface(same_for_all([-1, 1, -1]))], [ranks, np.array([0, 500, 0])])
    assert found.n_texts == 1, "the second text has frequent words only"
    assert found.rarest[0, 0] == pytest.approx(2 / 5)
    assert found.two_rarest[0, 0] == pytest.approx(4 / 5)
    assert found.column[0, 0] == 1.0
    assert (found.rarest[1, 0], found.two_rarest[1, 0], found.column[1, 0]) == (0, 0, 0)
    assert found.chance == pytest.approx(3 / 5)
    one_word = surface(same_for_all([-1, 1, 1, -1]), np.full((2, 3), 1))
    found = rare_shares([one_word], [np.array([0, 600, 600, 0])])
    assert found.chance == 1.0, "marks are no words"
    np.testing.assert_allclose([found.rarest, found.two_rarest, found.column], 1)


def test_rare_words_are_beyond_the_most_frequent_and_means_are_over_texts():
    texts = [surface(same_for_all([0, 0]), np.full((2, 3), 1)), surface(same_for_all([0, 1, 1, 1]))]
    ranks = [np.array([510, 500]), np.array([480, 501, 470, 460])]
    none = rare_shares(texts, [of_text - 10 for of_text in ranks])
    assert none.n_texts == 0
    assert np.isnan(none.rarest).all()
    assert np.isnan(none.chance)
    found = rare_shares(texts, ranks)
    assert found.n_texts == 2
    np.testing.assert_allclose(found.rarest, (1 + 3 / 4) / 2)
    np.testing.assert_allclose(found.two_rarest, 1)
    np.testing.assert_allclose(found.column, 0)
    assert found.chance == pytest.approx((1 + 2 / 4) / 2)


def test_statistics_take_rare_words_in_where_ranks_are_given():
    texts = [surface(same_for_all([0, 1])), surface(same_for_all([0, 0]))]
    found = head_statistics(texts, ranks=[np.array([1, 600]), np.array([1, 2])])
    assert found.names[-3:] == RARE
    np.testing.assert_allclose(found.of("on rarest"), 0.5)
    assert found.n_texts[-3:].tolist() == [1, 1, 1]


def rare_of(two_rarest, chance):
    cells = np.full((N_LAYERS, N_HEADS), NAN)
    return RareShares(rarest=cells, two_rarest=np.array(two_rarest), column=cells, chance=chance, n_texts=3)


def test_a_head_is_rare_above_half_and_twice_chance_and_only_where_it_is_not_positional():
    holds = np.array([[False, False, False], [False, False, True]])
    at = PositionalHeads(holds=holds, offset=np.full((2, 3), 1), share=np.full((2, 3), 0.5))
    shares = [[0.51, 0.5, 0.8], [0.2, NAN, 0.9]]
    found = head_labels(at, rare_of(shares, 0.2))
    assert found.rare.tolist() == [[True, False, True], [False, False, False]]
    assert head_labels(at, rare_of(shares, 0.3)).rare.tolist() == [[False, False, True], [False, False, False]]
    assert not head_labels(at, rare_of(np.full((2, 3), NAN), NAN)).rare.any()


WORDS = "the cat sat on a mat and who ran where it is not".split()  # noqa: SIM905
FREQUENCIES = FrequencyList("made up", {word: rank for rank, word in enumerate((*WORDS, *map(str, range(600))), 1)})
"""Words from the most frequent on; apples, birds and coffee are not in the list."""
PLANTED = (
    Text(("the coffee cat sat on a mat and ran where it is not",)),
    Text(("it is not where the cat and the apples sat",)),
    Text(("who ran on the mat", "birds and a cat sat where it is not")),
)


def observed(checkpoint, text, maps):
    """What is found of hand-made maps [layer head query key], a tile a layer."""
    prepared = prepare(checkpoint, text, SELF)
    observer = SurfaceObserver(checkpoint, [prepared])
    for layer, of_layer in enumerate(maps(prepared)):
        observer.observe(whole_tile(of_layer, observer, layer))
    return observer.results()[0]


def planted_maps(text):
    """Layer 0: anything, the previous token, [CLS]. Layer 1: the rarest word, its own segment, anything."""
    n = text.n_tokens
    chance, place = np.random.default_rng(n), np.arange(n)
    anything = [chance.dirichlet(np.ones(n), size=n) for _ in range(2)]
    previous, cls, rare = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    previous[place, np.maximum(place - 1, 0)] = 1
    cls[:, 0] = 1
    rare[
        :, [token in ("coffee", "apples", "birds") or token.startswith(("app", "bird")) for token in text.source.tokens]
    ] = 1
    segment = (text.source.segments[:, None] == text.source.segments).astype(float)
    maps = np.array(
        [[anything[0], previous, cls + 0.01 * anything[0]], [rare + 0.01 * anything[1], segment, anything[1]]]
    )
    return maps / maps.sum(-1, keepdims=True)


def test_planted_heads_are_labelled_so_and_nothing_else_is(loaded):
    checkpoint = loaded("bert", "float64")
    found = [observed(checkpoint, text, planted_maps) for text in PLANTED]
    ranks = [FREQUENCIES.ranks(text.key_words) for text in found]
    assert [max(of_text) for of_text in ranks] == [614, 614, 614]
    labels = head_labels(positional(found), rare_shares(found, ranks))
    assert np.argwhere(labels.positional.holds).tolist() == [[0, 1]]
    assert labels.positional.offset[0, 1] == -1
    assert np.argwhere(labels.rare).tolist() == [[1, 0]]
    statistics = head_statistics(found, ranks=ranks)
    np.testing.assert_allclose(statistics.of("previous")[0, 1], 1)
    np.testing.assert_allclose(statistics.of("on rarest")[1, 0], 1)
    np.testing.assert_allclose(statistics.of("column rarest")[1, 0], 1)
    assert statistics.of("cls")[0, 2] > 0.98


def of_two_heads(**of_first_head):
    """Statistics of two heads of one layer: what is given of the first, all else 0.3."""
    names = ("self", "previous", "next", "cls", "sep", "punctuation", "entropy")
    mean = np.full((len(names), 1, 2), 0.3)
    for name, value in of_first_head.items():
        mean[names.index(name), 0, 0] = value
    return HeadStatistics(names=names, mean=mean, low=mean, high=mean, n_texts=np.full(len(names), 5))


@pytest.mark.parametrize(
    ("of_head", "label"),
    [
        ({}, None),
        ({"next": 0.51}, "next"),
        ({"next": 0.5}, None),
        ({"previous": 0.51}, "previous"),
        ({"entropy": 3.81}, "broad"),
        ({"cls": 0.61}, "cls"),
        ({"cls": 0.55}, None),
        ({"sep": 0.61, "next": 0.9}, "sep"),
        ({"sep": 0.7, "punctuation": 0.61}, "punctuation"),
        ({"self": 0.99}, None),
        ({"next": 0.7, "sep": np.nan}, "next"),
    ],
)
def test_a_head_is_labelled_by_the_last_behaviour_it_shows(of_head, label):
    found = behaviours(of_two_heads(**of_head))
    assert found.tolist() == [[-1 if label is None else BEHAVIOURS.index(label), -1]]
