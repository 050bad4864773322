"""Roles that are scored only if asked for: their definition as a plain loop, and what asking for them leaves alone."""

import numpy as np
from made_texts import text
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
    np.testing.assert_allclose(alone.scores, together.scores, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(alone.greatest, together.greatest, rtol=1e-12, atol=1e-10)
    usual = role_scores(measured_of(checkpoint, texts), ScoreSettings())
    np.testing.assert_allclose(together.scores[:, : len(ROLES)], usual.scores, rtol=1e-12, atol=1e-10)


def test_further_roles_need_no_parser_and_have_keys_of_their_own():
    of_usual = SCORES.depends_on(TEXTS[0])
    assert set(of_usual) == {"text", "parser"}, "or results that were stored before are lost"
    of_further = [scores_question((role,)).depends_on(TEXTS[0]) for role in FURTHER_ROLES]
    assert [dict(depended_on["roles"]) for depended_on in of_further] == [
        {role: BY_NAME[role].version} for role in FURTHER_ROLES
    ]
    assert not any("parser" in depended_on for depended_on in of_further)
