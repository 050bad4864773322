import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.measures import ROW_MEASURES, SYNTACTIC_MEASURES
from core.parses import TokenPair
from core.sieves import INDICATORS, batch_sieves, local_band, query_sides, sieve_cells
from core.tokens import TokenizedText

ROLES_WITHOUT_PAIRS = ("local", "delimiter", "delimiter:cls", "delimiter:sep", "block")


def text(n_first, n_second=0, *, marks=True):
    """[CLS] first [SEP] second [SEP], or the same without marks."""
    cls, sep = ("[CLS]",) * marks, ("[SEP]",) * marks
    tokens = cls + ("a",) * n_first + sep + (("b",) * n_second + sep if n_second else ())
    segments = np.array([{"a": 0, "b": 1}.get(token, -1) for token in tokens])
    n_tokens = len(tokens)
    return TokenizedText(
        ids=np.arange(n_tokens),
        type_ids=np.zeros(n_tokens, dtype=int),
        tokens=tokens,
        spans=np.zeros((n_tokens, 2), dtype=int),
        segments=segments,
        words=np.arange(n_tokens),
        is_cls=np.array([token == "[CLS]" for token in tokens]),
        is_sep=np.array([token == "[SEP]" for token in tokens]),
        n_cut=0,
    )


def pair(name, dependent, head):
    return TokenPair(name, np.array(dependent), np.array(head))


def as_rows(cells):
    return ["".join(".#"[int(cell)] for cell in row) for row in cells]


def test_local_sieve_is_a_band_of_two_clipped_to_the_text():
    assert local_band(6).tolist() == [[0, 3], [0, 4], [0, 5], [1, 6], [2, 6], [3, 6]]


def test_local_sieve_of_a_causal_model_ends_at_the_query():
    assert local_band(5, causal=True).tolist() == [[0, 1], [0, 2], [0, 3], [1, 4], [2, 5]]


def test_local_sieve_of_one_token_is_that_token():
    assert local_band(1).tolist() == [[0, 1]]


def test_cls_sides_with_the_first_segment_and_separators_with_the_second():
    assert query_sides(text(2, 3)).tolist() == [0, 0, 0, 1, 1, 1, 1, 1]


def test_a_drawn_block_sieve_holds_no_special_token():
    assert as_rows(sieve_cells("block", text(2, 1), [], causal=False)) == [
        ".##...",
        ".##...",
        ".##...",
        "....#.",
        "....#.",
        "....#.",
    ]


@pytest.mark.parametrize(
    ("role", "row"), [("delimiter", "#..#.#"), ("delimiter:cls", "#....."), ("delimiter:sep", "...#.#")]
)
def test_a_drawn_delimiter_sieve_is_the_same_for_every_query(role, row):
    assert as_rows(sieve_cells(role, text(2, 1), [], causal=False)) == [row] * 6


def test_a_drawn_syntactic_sieve_holds_every_piece_of_both_words():
    pairs = [pair("nsubj", (1, 2), (3,)), pair("amod", (4,), (1,))]
    drawn_nsubj = as_rows(sieve_cells("syntactic:nsubj", text(3, 0), pairs[:1], causal=False))
    assert drawn_nsubj == [".....", "...#.", "...#.", ".....", "....."]
    both_ways = ("dependent-to-head", "head-to-dependent")
    assert as_rows(sieve_cells("syntactic:nsubj", text(3), pairs, False, both_ways)) == [
        ".....", "...#.", "...#.", ".##..", ".....",
    ]  # fmt: skip
    assert as_rows(sieve_cells("syntactic", text(3), pairs, False)) == [".....", "...#.", "...#.", ".....", ".#..."]


def test_a_drawn_sieve_of_a_causal_model_is_cut_to_live_keys():
    assert as_rows(sieve_cells("local", text(2), [], causal=True)) == ["#...", "##..", "###.", ".###"]


def test_a_single_segment_has_no_block_sieve():
    assert not sieve_cells("block", text(3), [], causal=False).any()


# Only numbers are drawn: the type checker picks items at random, which Hypothesis forbids while it draws.
SIZES = st.tuples(st.integers(1, 5), st.integers(0, 4), st.booleans())
PAIRS = st.tuples(
    st.sampled_from(("nsubj", "dobj", "amod", "advmod")), *(st.tuples(st.integers(0, 8), st.integers(1, 3)),) * 2
)


def made(sizes):
    n_first, n_second, marks = sizes
    return text(n_first, n_second, marks=marks)


def word(of_text, start, n_pieces):
    """Neighbouring pieces of the segments; two words may share one, as parser and tokenizer can disagree."""
    inner = np.flatnonzero(of_text.segments >= 0)
    return inner[start % len(inner) :][:n_pieces]


def uniform_attention(n_tokens, causal):
    visible = np.arange(1, n_tokens + 1) if causal else np.full(n_tokens, n_tokens)
    return np.tril(np.ones((n_tokens, n_tokens)) / visible[:, None], n_tokens * (not causal))


def row_scores(sieves, number, attention, causal):
    """What the observer does, for one text and whole maps: weights times the sums over band and indicators."""
    n_tokens = len(attention)
    band = local_band(n_tokens, causal)
    in_band = [attention[query, start:end].sum() for query, (start, end) in enumerate(band)]
    columns = np.column_stack([in_band, attention @ sieves.indicators[number, :n_tokens]])
    return np.einsum("qc,qcm->m", columns, sieves.row_weights[number, :n_tokens])


@given(drawn=st.lists(st.tuples(SIZES, st.lists(PAIRS, max_size=4)), min_size=1, max_size=3), causal=st.booleans())
def test_uniform_attention_scores_one_in_every_sieve(drawn, causal):
    texts = [made(sizes) for sizes, _ in drawn]
    pairs = [
        [pair(name, word(of_text, *one), word(of_text, *other)) for name, one, other in its_pairs]
        for of_text, (_, its_pairs) in zip(texts, drawn)
    ]
    sieves = batch_sieves(texts, pairs, causal)
    for number, of_text in enumerate(texts):
        attention = uniform_attention(len(of_text.ids), causal)
        found = row_scores(sieves, number, attention, causal)
        applicable = sieves.applicable[number, : len(ROW_MEASURES)]
        np.testing.assert_allclose(found, applicable.astype(float), atol=1e-12)
    syntactic = np.zeros((len(texts), len(SYNTACTIC_MEASURES)))
    for (number, query, key), measure, weight in zip(sieves.entry_at, sieves.entry_measure, sieves.entry_weight):
        syntactic[number, measure] += weight * uniform_attention(len(texts[number].ids), causal)[query, key]
    np.testing.assert_allclose(syntactic, sieves.applicable[:, len(ROW_MEASURES) + 1 :].astype(float), atol=1e-12)


@given(sizes=SIZES, causal=st.booleans(), seed=st.integers(0, 99))
def test_weights_give_the_score_of_the_drawn_sieve(sizes, causal, seed):
    of_text = made(sizes)
    n_tokens = len(of_text.ids)
    attention = np.random.default_rng(seed).random((n_tokens, n_tokens)) * (uniform_attention(n_tokens, causal) > 0)
    attention /= attention.sum(1, keepdims=True)
    visible = (uniform_attention(n_tokens, causal) > 0).sum(1)
    found = row_scores(batch_sieves([of_text], [[]], causal), 0, attention, causal)
    for score, role in zip(found, ROLES_WITHOUT_PAIRS):
        cells = sieve_cells(role, of_text, [], causal)
        taking_part = cells.any(1)
        if taking_part.any():
            inside = np.where(cells, attention, 0).sum(1)[taking_part] / cells.sum(1)[taking_part]
            assert score == pytest.approx((inside * visible[taking_part]).mean())
        else:
            assert score == 0


def test_what_is_not_applicable_is_marked_and_padding_has_no_weight():
    sieves = batch_sieves([text(2), text(2, 2), text(3, 1, marks=False)], [[pair("amod", (1,), (2,))], [], []], False)
    by_name = dict(zip((*ROW_MEASURES, "block", *SYNTACTIC_MEASURES), sieves.applicable.T.tolist()))
    assert by_name["local"] == [True, True, True]
    assert by_name["delimiter"] == by_name["delimiter:cls"] == by_name["delimiter:sep"] == [True, True, False]
    assert by_name["block"] == by_name["block without entropy"] == [False, True, True]
    assert by_name["syntactic dependent-to-head"] == by_name["syntactic:amod head-to-dependent"] == [True, False, False]
    assert by_name["syntactic:nsubj dependent-to-head"] == [False, False, False]
    assert sieves.row_weights.shape == (3, 7, 1 + len(INDICATORS), len(ROW_MEASURES))
    assert not sieves.row_weights[0, 4:].any()
    assert not sieves.indicators[0, 4:].any()


def test_entries_are_sorted_by_text_and_query():
    pairs = [[pair("amod", (3,), (1,)), pair("nsubj", (1,), (2, 3))], [pair("dobj", (2,), (1,))]]
    at = batch_sieves([text(3), text(2)], pairs, causal=False).entry_at
    assert (np.diff(at[:, 0] * 100 + at[:, 1]) >= 0).all()


def test_what_is_made_grows_with_the_text_and_not_with_its_square():
    of_text = text(400, 300)
    sieves = batch_sieves([of_text], [[pair("amod", (1,), (2,))]], causal=False)
    sizes = [np.size(value) for value in vars(sieves).values()]
    assert max(sizes) <= 30 * len(of_text.ids)
