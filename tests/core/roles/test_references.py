import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_texts import pair, text
from passing import measured_of, of_source, pass_texts

from attention_sieve.core.attention.settings import Reach
from attention_sieve.core.passes.texts import with_relations
from attention_sieve.core.roles.measures import USUAL, ScoreSettings, role_scores
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.sieves import batch_sieves, greatest_weighted_ratio, sieve_cells
from attention_sieve.core.texts.text import Text

WAYS = ("dependent-to-head", "head-to-dependent")
PAIRS = [pair("nsubj", (2, 3), (1,)), pair("amod", (4,), (6, 7)), pair("dobj", (6,), (2,))]
SMALL = st.integers(2, 40)


def of_reference(sieves, name, number=0):
    return sieves.uniform[number, USUAL.references.index(name)], sieves.greatest[number, USUAL.references.index(name)]


def test_references_worked_by_hand():
    """[CLS] a a a [SEP] b [SEP]: 7 tokens, of which bands hold 3, 4, 5, 5, 5, 4 and 3."""
    sieves = batch_sieves([of_source(text(3, 1), [pair("nsubj", (1, 2), (3,))])], causal=False)
    assert of_reference(sieves, "local") == (
        1,
        pytest.approx(np.mean([7 / 3, 7 / 4, 7 / 5, 7 / 5, 7 / 5, 7 / 4, 7 / 3])),
    )
    assert of_reference(sieves, "delimiter") == (1, pytest.approx(7 / 3))
    assert of_reference(sieves, "delimiter:cls") == (1, pytest.approx(7))
    assert of_reference(sieves, "block without entropy") == (1, pytest.approx((4 * 7 / 3 + 3 * 7) / 7))
    assert of_reference(sieves, "block")[0] == pytest.approx(np.log(7))
    assert of_reference(sieves, "syntactic:nsubj dependent-to-head") == (1, pytest.approx(7))
    # The head can attend to one of two pieces alone, which is then 7 times uniform; the pair counts 2 / 7 as uniform.
    assert of_reference(sieves, "syntactic:nsubj head-to-dependent") == (1, pytest.approx(7 / 2))
    assert np.isnan(of_reference(sieves, "sink")).all()


def test_uniform_attention_scores_the_mean_logarithm_of_live_keys_on_a_weighted_block():
    causal = batch_sieves([of_source(text(4, 3, marks=False))], causal=True)
    assert of_reference(causal, "block")[0] == pytest.approx(np.log(np.arange(1, 8)).mean())


@given(st.lists(st.tuples(SMALL, st.integers(1, 40)), min_size=1, max_size=5), st.integers(0, 99))
def test_no_distribution_scores_more_than_the_greatest_weighted_ratio(sizes, seed):
    n_keys = np.array([float(n) for n, _ in sizes])
    size = np.array([float(min(n, m)) for n, m in sizes])
    greatest = greatest_weighted_ratio(n_keys, size)
    random = np.random.default_rng(seed)
    for place, (n, m) in enumerate(zip(n_keys.astype(int), size.astype(int))):
        rows = random.dirichlet(np.full(n, random.choice([0.1, 1, 10])), size=200)
        # The best rows are uniform inside the block and outside; a grid of them reaches the maximum.
        share = np.linspace(1 / 2000, 1, 2000)[:, None]
        best = np.where(np.arange(n) < m, share / m, (1 - share) / max(1, n - m))
        for of_rows in (rows, best / best.sum(1, keepdims=True)):
            entropy = -np.sum(np.where(of_rows > 0, of_rows * np.log(np.where(of_rows > 0, of_rows, 1)), 0), axis=1)
            scores = of_rows[:, :m].sum(1) * n / m * entropy
            assert scores.max() <= greatest[place] * (1 + 1e-12)
        assert scores.max() == pytest.approx(greatest[place], rel=1e-4)


def scored_by(sieves, attention):
    """Row measures and row shares, then syntactic ones, of a hand-made map, as the observer adds them up."""
    n_tokens = len(attention)
    band = np.abs(np.subtract.outer(np.arange(n_tokens), np.arange(n_tokens))) <= 2
    columns = np.column_stack([(attention * band).sum(1), attention @ sieves.indicators[0, :n_tokens]])
    rows = np.einsum("qc,qcm->m", columns, sieves.row_weights[0, :n_tokens])
    n_syntactic = len(USUAL.references) - len(USUAL.measures)
    entries = np.zeros(2 * n_syntactic + 3 * n_syntactic)
    for (_, query, key), measure, weight in zip(sieves.entry_at, sieves.entry_measure, sieves.entry_weight):
        entries[measure] += weight * attention[query, key]
    shares = np.concatenate([rows[6:], entries[2 * n_syntactic :]]) - sieves.at_chance[0]
    return dict(zip(USUAL.measures, [*rows[:6], np.nan, *entries[: 2 * n_syntactic]])), dict(zip(USUAL.shares, shares))


ROLE_OF = {"block without entropy": "block"}


@pytest.mark.parametrize("name", [name for name in USUAL.measures if name not in ("block", "sink")])
def test_all_attention_inside_the_sieve_scores_the_greatest_and_share_one(name):
    of_text = of_source(text(7, 3), PAIRS)
    sieves = batch_sieves([of_text], causal=False)
    role, _, way = name.partition(" ") if name.startswith("syntactic") else (ROLE_OF.get(name, name), "", "")
    cells = sieve_cells(role, of_text, False, (way,) if way else WAYS[:1])
    inside = cells & (np.cumsum(cells, axis=1) == 1)  # each query attends to the first key of its sieve alone
    scores, shares = scored_by(sieves, inside.astype(float))
    if not cells.any():
        assert np.isnan([*of_reference(sieves, name), shares[ROLE_OF.get(name, name)]]).all()
        return
    assert shares[ROLE_OF.get(name, name)] == pytest.approx(1)
    assert scores[name] == pytest.approx(of_reference(sieves, name)[1])


@given(st.integers(5, 60), st.floats(0, 1))
def test_a_share_is_what_a_head_puts_inside_above_chance_whatever_the_length(n_tokens, part):
    """A head that mixes uniform attention with all attention inside has that share at any length."""
    of_text = of_source(text(n_tokens))
    sieves = batch_sieves([of_text], causal=False)
    cells = sieve_cells("local", of_text, False)
    attention = part * cells / cells.sum(1, keepdims=True) + (1 - part) / len(cells)
    _, shares = scored_by(sieves, attention)
    assert shares["local"] == pytest.approx(part)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("reach", [Reach(), Reach(back=3), Reach(back=3, ahead=2)])
def test_uniform_attention_has_share_zero_and_scores_its_reference(causal, reach):
    from attention_sieve.core.attention.settings import live_keys

    of_text = of_source(text(7, 3), PAIRS)
    sieves = batch_sieves([of_text], causal, reach)
    live = live_keys(of_text.n_tokens, of_text.n_tokens, causal, reach)
    key = np.arange(of_text.n_tokens)
    attention = (live[:, :1] <= key) & (key < live[:, 1:])
    scores, shares = scored_by(sieves, attention / attention.sum(1, keepdims=True))
    for name, share in shares.items():
        assert np.isnan(share) or share == pytest.approx(0, abs=1e-12), name
    for name, score in scores.items():
        uniform, greatest = of_reference(sieves, name)
        assert name == "block" or np.isnan(uniform) or score == pytest.approx(uniform), name
        assert np.isnan(greatest) or greatest >= uniform * (1 - 1e-12), name


def test_both_directions_have_a_greatest_score_of_their_own():
    """The first word can attend to the second alone, as dependent of one pair and head of the other."""
    pairs = [pair("amod", (1,), (2,)), pair("amod", (2,), (3,))]
    sieves = batch_sieves([of_source(text(4), pairs)], causal=False)
    for way in WAYS:
        assert of_reference(sieves, f"syntactic:amod {way}")[1] == pytest.approx(6)
    # Of the second word's attention, either pair can have all: 6 / 4 from each of the three words.
    assert of_reference(sieves, "syntactic:amod both")[1] == pytest.approx(3 * 6 / 4)


SCALES = [ScoreSettings(), ScoreSettings(direction="both", block_entropy=False), ScoreSettings(scale="share")]


@pytest.mark.parametrize("settings", SCALES)
def test_no_head_scores_more_than_the_greatest_and_each_applicable_score_has_references(loaded, settings):
    checkpoint = loaded("bert")
    given_texts = [Text(("The black cat sat on the red mat.", "She ate it.")), Text(("Two dogs ran.",))]
    texts = with_relations(pass_texts(checkpoint, given_texts), given_texts)
    scored = role_scores(measured_of(checkpoint, texts), settings)
    applies = ~np.isnan(scored.scores)
    np.testing.assert_array_equal(applies.any(axis=3), ~np.isnan(scored.uniform))
    np.testing.assert_array_equal(np.isnan(scored.uniform), np.isnan(scored.greatest))
    room = np.broadcast_to(scored.greatest[..., None], scored.scores.shape)
    assert (scored.scores <= room * (1 + 1e-5))[applies].all()


def test_shares_are_chosen_by_direction_and_have_the_references_of_shares(loaded):
    checkpoint = loaded("bert")
    given_texts = [Text(("The black cat sat on the red mat.",))]
    (measured,) = measured_of(checkpoint, with_relations(pass_texts(checkpoint, given_texts), given_texts))
    for direction in (*WAYS, "both"):
        scored = role_scores([measured], ScoreSettings(direction=direction, scale="share"))
        for role in ("syntactic", "syntactic:amod"):
            of_role = measured.shares[USUAL.shares.index(f"{role} {direction}")]
            np.testing.assert_array_equal(scored.scores[0, ROLES.index(role)], of_role)
        local = ROLES.index("local")
        assert (scored.uniform[0, local].max(), scored.greatest[0, local].min()) == (0, 1)
        assert np.isnan(scored.scores[0, ROLES.index("block")]).all()
