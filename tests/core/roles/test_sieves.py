import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_texts import pair, text
from passing import of_source

from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.measures import USUAL
from attention_sieve.core.roles.record import LOCAL_RADIUS, Band
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.sieves import batch_sieves, sieve_cells

LOCAL = Band(-LOCAL_RADIUS, LOCAL_RADIUS)
ROLES_WITHOUT_PAIRS = ("local", "delimiter", "delimiter:cls", "delimiter:sep", "sink", "block")


def as_rows(cells):
    return ["".join(".#"[int(cell)] for cell in row) for row in cells]


# Only numbers are drawn: the type checker picks items at random, which Hypothesis forbids while it draws.
SIZES = st.tuples(st.integers(1, 5), st.integers(0, 4), st.booleans())


def made(sizes):
    n_first, n_second, marks = sizes
    return text(n_first, n_second, marks=marks)


def uniform_attention(n_tokens, causal):
    visible = np.arange(1, n_tokens + 1) if causal else np.full(n_tokens, n_tokens)
    return np.tril(np.ones((n_tokens, n_tokens)) / visible[:, None], n_tokens * (not causal))


@given(sizes=SIZES, causal=st.booleans(), seed=st.integers(0, 99))
def test_weights_give_the_score_of_the_drawn_sieve(sizes, causal, seed):
    """As the observer has it, for one text and whole maps: weights times the sums over band and indicators."""
    of_text = made(sizes)
    n_tokens = len(of_text.ids)
    attention = np.random.default_rng(seed).random((n_tokens, n_tokens)) * (uniform_attention(n_tokens, causal) > 0)
    attention /= attention.sum(1, keepdims=True)
    visible = (uniform_attention(n_tokens, causal) > 0).sum(1)
    sieves = batch_sieves([of_source(of_text)], causal)
    in_band = [attention[query, start:end].sum() for query, (start, end) in enumerate(LOCAL.keys(n_tokens, causal))]
    columns = np.column_stack([in_band, attention @ sieves.indicators[0, :n_tokens]])
    found = np.einsum("qc,qcm->m", columns, sieves.row_weights[0, :n_tokens])
    for score, role in zip(found[: len(USUAL.row_measures)], ROLES_WITHOUT_PAIRS, strict=True):
        cells = sieve_cells(role, of_source(of_text), causal)
        taking_part = cells.any(1)
        if taking_part.any():
            inside = np.where(cells, attention, 0).sum(1)[taking_part] / cells.sum(1)[taking_part]
            assert score == pytest.approx((inside * visible[taking_part]).mean())
        else:
            assert score == 0


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_not_applicable_is_marked_and_padding_has_no_weight(causal):
    amod = pair("amod", (1,), (2,))
    texts = [of_source(text(2), [amod]), of_source(text(2, 2)), of_source(text(3, 1, marks=False))]
    sieves = batch_sieves(texts, causal)
    by_name = dict(zip(USUAL.measures, sieves.applicable.T.tolist(), strict=True))
    assert by_name["local"] == [True, True, True]
    assert by_name["sink"] == [causal] * 3
    assert by_name["delimiter"] == by_name["delimiter:cls"] == by_name["delimiter:sep"] == [True, True, False]
    assert by_name["block"] == by_name["block without entropy"] == [False, True, True]
    assert by_name["syntactic dependent-to-head"] == [not causal, False, False]
    assert by_name["syntactic:amod head-to-dependent"] == [True, False, False]
    assert by_name["syntactic:nsubj dependent-to-head"] == [False, False, False]
    assert sieves.row_weights.shape == (3, 7, len(sieves.columns), 2 * len(USUAL.rows))
    assert not sieves.row_weights[0, 4:].any()
    assert not sieves.indicators[0, 4:].any()


def test_what_is_made_grows_with_the_text_and_not_with_its_square():
    of_text = of_source(text(400, 300), [pair("amod", (1,), (2,))])
    sieves = batch_sieves([of_text], causal=False)
    sizes = [value.size for value in vars(sieves).values() if isinstance(value, np.ndarray)]
    assert max(sizes) <= 80 * of_text.n_tokens


def crossing(source, target, kind="cross"):
    return PassText(kind=kind, source=source, target=target)


def test_cross_attention_has_delimiters_of_the_source_and_nothing_else():
    both = crossing(text(2, 1), text(1, marks=False))
    assert as_rows(sieve_cells("delimiter", both, causal=False)) == ["#..#.#"]
    longer = crossing(text(1), text(3, marks=False))
    assert as_rows(sieve_cells("delimiter:cls", longer, causal=False)) == ["#.."] * 3
    assert as_rows(sieve_cells("delimiter:sep", longer, causal=False)) == ["..#"] * 3
    for role in set(ROLES) - {"delimiter", "delimiter:cls", "delimiter:sep"}:
        assert sieve_cells(role, both, causal=False).shape == (1, 6)
        assert not sieve_cells(role, both, causal=False).any()
    applicable = dict(zip(USUAL.measures, batch_sieves([both, longer], causal=False).applicable.T.tolist()))
    assert {name for name, is_so in applicable.items() if any(is_so)} == {"delimiter", "delimiter:cls", "delimiter:sep"}
    assert applicable["delimiter:sep"] == [True, True]


@given(source=SIZES, n_queries=st.integers(1, 9), seed=st.integers(0, 99))
def test_cross_attention_is_scored_over_the_tokens_of_the_source(source, n_queries, seed):
    """Queries and keys are padded to different lengths by the second text."""
    source, target = made(source), text(n_queries, marks=False)
    sieves = batch_sieves([crossing(source, target), crossing(text(9), text(8))], causal=False)
    assert sieves.indicators.shape[1] == max(len(source.ids), 11)
    assert sieves.row_weights.shape[1] == max(n_queries, 10)
    attention = np.random.default_rng(seed).dirichlet(np.ones(len(source.ids)), size=n_queries)
    columns = np.column_stack([np.zeros(n_queries), attention @ sieves.indicators[0, : len(source.ids)]])
    found = np.einsum("qc,qcm->m", columns, sieves.row_weights[0, :n_queries])
    marked = np.flatnonzero(source.is_cls | source.is_sep)
    expected = np.mean([row[marked].mean() / row.mean() for row in attention]) if len(marked) else 0
    assert found[USUAL.row_measures.index("delimiter")] == pytest.approx(expected)
    assert found[USUAL.row_measures.index("local")] == found[USUAL.row_measures.index("sink")] == 0


def test_a_decoder_is_scored_like_any_causal_model():
    target = text(4, marks=False)
    seen = crossing(text(2), target, kind="decoder")
    alone = batch_sieves([of_source(target)], causal=True)
    for name, made_of in vars(batch_sieves([seen], causal=True)).items():
        if name != "columns":
            np.testing.assert_array_equal(made_of, getattr(alone, name))
    encoder = batch_sieves([crossing(text(2), target, kind="encoder")], causal=False)
    np.testing.assert_array_equal(encoder.row_weights, batch_sieves([of_source(text(2))], causal=False).row_weights)
