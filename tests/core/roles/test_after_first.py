"""Roles of decoders with the first token in no sieve: a plain loop over maps, and heads that rest on that token."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from passing import SELF, whole_map

from attention_sieve.__main__ import main
from attention_sieve.core.attention.settings import live_keys
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.roles.finding import role_finding
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import RoleScores, RoleSet
from attention_sieve.core.roles.question import scores_question, with_what_decides
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES
from attention_sieve.core.roles.scores import score_batch
from attention_sieve.core.roles.sieves import sieve_cells
from attention_sieve.core.texts.text import Text

NAMES = (*ROLES, *DECODER_ROLES)
LINES = ("the dog saw the dog that the cat saw", "a dog ran .", "the old cat saw the small dog")


def by_loop(attention, sieve, live):
    """Mean share above chance [head] of one layer, over the queries whose sieve holds a key, and not every key."""
    shares = []
    for query in range(attention.shape[1]):
        keys = [key for key in live[query] if sieve[query, key]]
        chance = len(keys) / len(live[query])
        if 0 < chance < 1:
            shares.append((attention[:, query, keys].sum(-1) - chance) / (1 - chance))
    return np.mean(shares, axis=0) if shares else np.nan


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma3"])
def test_shares_without_the_first_token_equal_a_loop_over_maps(family, loaded):
    checkpoint, roles = loaded(family, "float64"), RoleSet(NAMES)
    texts = [Text((line,)) for line in LINES]
    texts = with_what_decides(roles, [prepare(checkpoint, text, SELF) for text in texts], texts, True)
    measured = score_batch(checkpoint, texts, SELF, roles=roles, after_first=True).texts
    for text, of_text in zip(texts, measured, strict=True):
        maps = whole_map(checkpoint, text)
        for name in NAMES:
            sieve = sieve_cells(name, text, True)
            sieve[:, 0] = False
            share = name + " dependent-to-head" if name in roles.directed else name
            row = of_text.after_first.shares[roles.shares.index(share)]
            for layer, attention in enumerate(maps):
                n_tokens = len(text.queries.ids)
                bounds = live_keys(n_tokens, n_tokens, True, checkpoint.attentions["self"].reach(layer)).tolist()
                np.testing.assert_allclose(
                    row[layer], by_loop(attention, sieve, [range(*each) for each in bounds]), atol=2e-6, err_msg=name
                )


def test_the_scores_with_the_first_token_are_as_they_were(loaded):
    checkpoint, roles = loaded("gpt2", "float64"), RoleSet(NAMES)
    texts = [prepare(checkpoint, Text((line,)), SELF) for line in LINES]
    alone = score_batch(checkpoint, texts, SELF, roles=roles).texts
    beside = score_batch(checkpoint, texts, SELF, roles=roles, after_first=True).texts
    for one, other in zip(alone, beside, strict=True):
        assert one.after_first is None
        for name in ("measures", "shares", "uniform", "greatest"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert getattr(other.after_first, name).shape == getattr(one, name).shape


def test_what_is_stored_holds_both(loaded):
    checkpoint, question = loaded("gpt2", "float64"), scores_question(ROLES, parses=False)
    texts = [Text((line,)) for line in LINES]
    ((_, found), *_) = next(
        iter(question.compute(checkpoint, texts, [prepare(checkpoint, text, SELF) for text in texts], SELF))
    )
    again = question.unpack(question.pack(found))
    np.testing.assert_array_equal(again.after_first.shares, found.after_first.shares)
    encoder = loaded("bert", "float64")
    ((_, found), *_) = next(iter(question.compute(encoder, texts[:1], [prepare(encoder, texts[0], SELF)], SELF)))
    assert question.unpack(question.pack(found)).after_first is None


def made(values, after_first=None):
    """Scores [text role 1 head] around some means, over 40 texts."""
    noise = np.random.default_rng(1).normal(0, 0.1, (40, len(values), 1, len(values[0])))
    scores = np.array(values)[None, :, None] + noise
    at_chance = np.ones(scores.shape[:3])
    return RoleScores(
        roles=("local", "sink"), scores=scores, uniform=at_chance, greatest=9 * at_chance, after_first=after_first
    )


def test_a_head_is_marked_that_holds_a_role_with_the_first_token_only():
    scored = made([[5, 5, 1], [5, 5, 5]], made([[5, 1, 1], [np.nan] * 3]))
    for bets in (None, scored):
        found = role_finding(scored, Criterion(), bets)
        assert found.tests.holds[:, 0].tolist() == [[True, True, False], [True, True, True]]
        assert found.rests_on_first[:, 0].tolist() == [[False, True, False], [False, False, False]]
    assert role_finding(made([[5, 5, 1], [5, 5, 5]]), Criterion()).rests_on_first is None


def test_the_table_of_roles_says_it_of_a_decoder_and_nothing_of_an_encoder(folders, tmp_path):
    texts, table = tmp_path / "texts.txt", tmp_path / "roles.parquet"
    texts.write_text("\n".join(LINES))
    for family, is_known in (("gpt2", True), ("bert", False)):
        main(["roles", f"--checkpoint={folders(family)}", f"--texts={texts}", f"--output={table}"])
        assert pd.read_parquet(table)["rests_on_first"].notna().all() == is_known


def test_heads_of_a_hand_made_decoder_rest_on_the_first_token_where_they_were_made_to(shared, tmp_path):
    """L0 H3 always looks at the first token, which is one of the keys of a written role; L0 H0 at the previous one."""
    subprocess.run([sys.executable, shared / "planted" / "known.py", tmp_path], check=True, capture_output=True)
    texts, table, role = (tmp_path / name for name in ("texts.txt", "roles.parquet", "role.toml"))
    rng = np.random.default_rng(0)
    texts.write_text("\n".join(" ".join(f"w{n}" for n in rng.permutation(200)[:30] + 1) for _ in range(20)))
    role.write_text('role = 1\nname = "ends"\nletter = "E"\ncolour = "#0072B2"\nto.positions = [0, 1, 2]\n')
    main(["roles", f"--checkpoint={tmp_path}", f"--texts={texts}", f"--role={role}", f"--output={table}"])
    found = pd.read_parquet(table).set_index(["role", "layer", "head"])
    assert found["holds"]["ends", 0, 3]
    assert found["rests_on_first"]["ends", 0, 3]
    assert found["holds"]["previous", 0, 0]
    assert found["holds"]["sink", 0, 3], "which is no other role than the first token's"
    assert not found["rests_on_first"][["previous", "sink", "local"]].any()
