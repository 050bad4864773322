"""Roles that are scored only if asked for: their definition as a plain loop, and what asking for them leaves alone."""

import naive
import numpy as np
import pytest
from made_texts import text
from naive import Layout
from passing import SELF, measured_of, of_source, pass_texts

from attention_sieve.core.roles.measures import RoleSet, ScoreSettings, joined, role_scores
from attention_sieve.core.roles.question import SCORES, each_alone, scores_question
from attention_sieve.core.roles.roles import BY_NAME, FURTHER_ROLES, ROLES
from attention_sieve.core.roles.scores import score_batch
from attention_sieve.core.roles.sieves import batch_sieves
from attention_sieve.core.texts.text import Text

TEXTS = (
    Text(("the cat saw the dog that saw the cat",)),
    Text(("Who sat on the mat?", "The dog sat on the mat.")),
    Text(("Eat!",)),
)


def earlier_copies(source):
    """Query -> earlier positions of the same token; special tokens are left out."""
    ids, segments = source.ids.tolist(), source.segments.tolist()
    return [
        [key for key in range(query) if ids[key] == ids[query] and segments[query] >= 0 and segments[key] >= 0]
        for query in range(len(ids))
    ]


DEFINITIONS = {
    "previous": lambda source: [[query - 1] if query else [] for query in range(len(source.ids))],
    "duplicate": earlier_copies,
}


def shares_by_loop(attention, sieve_of):
    """Mean over the queries that have a choice of (s - u) / (1 - u), in float64."""
    of_queries = []
    for query, keys in enumerate(sieve_of):
        if 0 < len(keys) < len(sieve_of):
            by_chance = len(keys) / len(sieve_of)
            of_queries.append((attention[:, :, query, keys].sum(-1) - by_chance) / (1 - by_chance))
    return np.mean(of_queries, axis=0) if of_queries else np.full(attention.shape[:2], np.nan)


@pytest.mark.parametrize("role", DEFINITIONS)
def test_scores_shares_and_references_equal_a_plain_loop(role, loaded, folders):
    checkpoint = loaded("bert", "float64")
    texts = pass_texts(checkpoint, TEXTS)
    scored = score_batch(checkpoint, texts, SELF, roles=RoleSet((role,)))
    n_with_scores = 0
    for of_text, measured in zip(texts, scored.texts, strict=True):
        source = of_text.source
        type_ids = source.type_ids if checkpoint.takes_type_ids else None
        attention = naive.eager_attention(type(checkpoint.model), folders("bert"), source.ids, type_ids)
        sieve_of = DEFINITIONS[role](source)
        layout = Layout(len(source.ids), (), (), (), ())
        expected = naive.by_query(attention, layout, sieve_of.__getitem__)
        np.testing.assert_allclose(measured.measures[0], expected, rtol=1e-10)
        np.testing.assert_allclose(measured.shares[0], shares_by_loop(attention, sieve_of), atol=1e-10)
        taking_part = [(query, keys) for query, keys in enumerate(sieve_of) if keys]
        n_with_scores += bool(taking_part)
        if taking_part:
            greatest = np.mean([len(layout.live(query)) / len(keys) for query, keys in taking_part])
            np.testing.assert_allclose(measured.greatest[0], greatest)
            np.testing.assert_array_equal(measured.uniform[0], 1)
    assert n_with_scores >= 2


def test_uniform_attention_over_a_repeat_scores_one_and_perfect_attention_the_greatest():
    source = text(4)
    made = of_source(type(source)(**{**vars(source), "ids": np.array([90, 1, 2, 1, 1, 91])}))
    sieves = batch_sieves([made], causal=False, roles=RoleSet(("duplicate",)))
    # Token 3 has one earlier copy, token 4 two: 6 / 1 and 6 / 2 times uniform attention, on average 4.5.
    np.testing.assert_allclose(sieves.greatest, [[4.5]])
    scored = sieves.entry_measure == 0
    assert sieves.entry_at[scored].tolist() == [[0, 3, 1], [0, 4, 1], [0, 4, 3]]
    np.testing.assert_allclose(sieves.entry_weight[scored], [3, 1.5, 1.5])


def test_roles_score_the_same_alone_and_together(loaded):
    checkpoint = loaded("bert", "float64")
    texts = pass_texts(checkpoint, TEXTS)
    names = tuple(BY_NAME)
    together = role_scores(score_batch(checkpoint, texts, SELF, roles=RoleSet(names)).texts, ScoreSettings())
    parts = [score_batch(checkpoint, texts, SELF, roles=RoleSet(of_set)).texts for of_set in each_alone(names)]
    alone = role_scores([joined(of_text) for of_text in zip(*parts, strict=True)], ScoreSettings())
    assert together.roles == alone.roles == names
    np.testing.assert_allclose(alone.scores, together.scores, rtol=1e-12)
    np.testing.assert_allclose(alone.greatest, together.greatest, rtol=1e-12)
    usual = role_scores(measured_of(checkpoint, texts), ScoreSettings())
    np.testing.assert_allclose(together.scores[:, : len(ROLES)], usual.scores, rtol=1e-12)


def test_further_roles_need_no_parser_and_have_keys_of_their_own():
    of_usual = SCORES.depends_on(TEXTS[0])
    assert set(of_usual) == {"text", "parser"}, "or results that were stored before are lost"
    of_further = [scores_question((role,)).depends_on(TEXTS[0]) for role in FURTHER_ROLES]
    assert [dict(depended_on["roles"]) for depended_on in of_further] == [{role: 1} for role in FURTHER_ROLES]
    assert not any("parser" in depended_on for depended_on in of_further)
