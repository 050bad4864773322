"""Roles of decoders: a plain loop over eager maps, heads that are built by hand, and what tells a copy from a place."""

import naive
import numpy as np
import pandas as pd
import pytest
import torch
from passing import SELF, of_source
from small_checkpoints import TOKENIZERS

from attention_sieve.__main__ import main
from attention_sieve.core.attention.observers import Tile
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.probe_texts.make import ProbeTextSettings, probe_texts
from attention_sieve.core.roles.measures import RoleSet
from attention_sieve.core.roles.record import after_earlier_copies, copied_from_needle
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES
from attention_sieve.core.roles.scores import ScoreObserver, score_batch
from attention_sieve.core.roles.sieves import batch_sieves
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import text_of_ids
from attention_sieve.core.texts.tokens import tokenize

BLOCK = (30, 31, 32, 33, 34)
GIVEN = GivenTokens(
    (0, *BLOCK, 50, 51, *BLOCK, 31, 31, 52, *BLOCK, 53, 32, 33),
    needle=(1, 6),
    answer=(len(BLOCK) + 18, len(BLOCK) + 19),
)
"""A block that is repeated after two and after three tokens, a token that follows itself, and a marked copy."""


def looked_at(role, ids, query):
    """Keys at which a head with the role looks from a query, special tokens left out; the first one begins the text."""
    copies = [key for key in range(1, query) if query and ids[key] == ids[query]]
    if role == "retrieval":
        copied = ids[query + 1] if query + 1 in range(*GIVEN.answer) else None
        return [key for key in range(*GIVEN.needle) if ids[key] == copied]
    return {
        "previous": [query - 1] if query else [],
        "duplicate": copies,
        "induction": [key + 1 for key in copies if key + 1 < query],
    }[role]


def by_loop(attention, role, live):
    """Score and share of a role, [head] each, of one layer's attention [head query key] in float64.

    Models' own eager paths take the softmax in float32, so these are exact to six digits."""
    scores, shares = [], []
    for query in range(attention.shape[1]):
        seen = live(query)
        keys = [key for key in looked_at(role, GIVEN.ids, query) if key in seen]
        if not keys:
            continue
        inside, uniform = attention[:, query, keys].sum(-1) / attention[:, query].sum(-1), len(keys) / len(seen)
        scores.append(inside / uniform)
        if uniform < 1:
            shares.append((inside - uniform) / (1 - uniform))
    return np.mean(scores, axis=0), np.mean(shares, axis=0)


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "gemma3", "gpt_oss"])
def test_scores_and_shares_equal_a_loop_over_eager_maps(family, loaded, folders):
    dtype = "float32" if family == "gpt_oss" else "float64"
    checkpoint = loaded(family, dtype)
    text = prepare(checkpoint, text_of_ids(GIVEN), SELF)
    assert text.source.ids.tolist() == list(GIVEN.ids)
    options = {"attn_implementation": "eager", "dtype": getattr(torch, dtype)}
    model = type(checkpoint.model).from_pretrained(folders(family), **options).eval()
    eager = naive.eager_maps(model, {"input_ids": torch.tensor([GIVEN.ids])})[1]["self"][:, 0].double().numpy()
    config, roles = checkpoint.model.config, RoleSet(DECODER_ROLES)
    (measured,) = score_batch(checkpoint, [text], SELF, roles=roles).texts
    for layer, attention in enumerate(eager):
        kinds = getattr(config, "layer_types", None)
        window = config.sliding_window if kinds and kinds[layer] == "sliding_attention" else len(GIVEN.ids)
        for role in DECODER_ROLES:
            live = lambda query, window=window: range(max(0, query - window + 1), query + 1)  # noqa: E731
            if role == "retrieval" and window < len(GIVEN.ids):
                continue  # the needle is out of sight
            score, share = by_loop(attention, role, live)
            np.testing.assert_allclose(
                measured.measures[roles.measures.index(role), layer], score, rtol=1e-5, atol=1e-6
            )
            np.testing.assert_allclose(measured.shares[roles.shares.index(role), layer], share, atol=1e-6)


def test_a_needle_out_of_sight_is_not_applicable(loaded):
    checkpoint = loaded("gemma3", "float64")
    text = prepare(checkpoint, text_of_ids(GIVEN), SELF)
    (measured,) = score_batch(checkpoint, [text], SELF, roles=RoleSet(("retrieval",))).texts
    assert np.isnan(measured.measures[0, 0]).all(), "layer 0 sees six tokens"
    assert np.isfinite(measured.measures[0, 1]).all()


def scored(text, keys_of, roles):
    """Score, share and greatest score of each role, of a head that puts all of its attention on one key."""
    n_tokens, sieves = len(text.source.ids), batch_sieves([text], causal=True, roles=RoleSet(roles))
    attention = torch.zeros(1, 1, n_tokens, n_tokens, dtype=torch.float64)
    for query in range(n_tokens):
        attention[0, 0, query, next(iter(keys_of(query)), 0)] = 1
    observer = ScoreObserver([sieves], 1, "cpu", torch.float64)
    every = slice(0, n_tokens)
    tile = {"indicator_sums": None, "entropy": None, "outputs": None, "row_sums": None}
    observer.observe(Tile(layer=0, texts=slice(0, 1), queries=every, probabilities=attention, **tile))
    scores, shares = observer.scores()
    return scores[0, :, 0, 0], shares[0, :, 0, 0], sieves.greatest[0]


def probes(kind, tokenizer):
    texts = probe_texts(tokenizer, ProbeTextSettings(kind=kind, block=8))
    return [of_source(tokenize(text, tokenizer, 1_000)) for text in texts]


def test_a_head_that_finds_the_last_follower_has_all_it_can_and_a_ruler_only_where_the_period_is_fixed():
    tokenizer, induction = TOKENIZERS["llama"](), ("induction",)
    for kind in ("repeats", "fixed-repeats"):
        shares = []
        for text in probes(kind, tokenizer):
            followers = {int(pair.dependent[0]): pair.head for pair in after_earlier_copies(text)}
            score, share, greatest = scored(text, lambda query, found=followers: found.get(query, [])[-1:], induction)
            np.testing.assert_allclose([score, share], [greatest, [1]])
            shares.append(scored(text, lambda query: [query - 7] if query > 6 else [], induction)[1])
        assert np.mean(shares) > 0.99 if kind == "fixed-repeats" else np.mean(shares) < 0.15


def test_a_head_that_copies_the_needle_has_all_it_can():
    for text in probes("needles", TOKENIZERS["gpt2"]()):
        copied = {int(pair.dependent[0]): pair.head for pair in copied_from_needle(text)}
        assert len(copied) == np.diff(text.source.given.answer)
        score, share, greatest = scored(text, lambda query, found=copied: found.get(query, []), ("retrieval",))
        np.testing.assert_allclose([score, share], [greatest, [1]])


@pytest.mark.parametrize("command", ["score", "roles"])
def test_commands_score_a_decoder_for_its_roles_unless_others_are_named(command, writing, guessing, tmp_path):
    (tmp_path / "texts.txt").write_text("The cat sat where the cat sat.\nA dog ran where a dog sat.")
    output = tmp_path / "scores.parquet"

    def roles_of(checkpoint, *options):
        of_texts = ["--texts", str(tmp_path / "texts.txt"), "--output", str(output)]
        assert main([command, "--checkpoint", str(checkpoint), "--device", "cpu", *of_texts, *options]) == 0
        return tuple(pd.read_parquet(output)["role"].unique())

    assert roles_of(writing) == (*ROLES, *DECODER_ROLES)
    assert roles_of(writing, "--roles", "induction") == ("induction",)
    assert roles_of(guessing) == ROLES
