import numpy as np
import pytest
import torch
from passing import pass_texts

from attention_sieve.core.analysis import results
from attention_sieve.core.attention.observers import Tile
from attention_sieve.core.checkpoints.find import load_checkpoint, randomly_initialised
from attention_sieve.core.roles.controls import SEEDS, counts_of, shuffled_words
from attention_sieve.core.roles.finding import role_finding
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.permuted_keys import GOLDEN, PermutedKeys, _random
from attention_sieve.core.roles.question import SCORES, scores_question
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.samples import read_sample

TEXTS = [Text(("The black cat sat on the red mat.", "She ate it.")), Text(("Two dogs quickly ran.",)), Text(("Eat!",))]


class Kept:
    """Stands where the observer of scores would: keeps what the control shows it."""

    wants_entropy, wants_outputs = True, False

    def __init__(self, indicators):
        self.indicators, self.tiles = indicators, []

    def observe(self, tile):
        self.tiles.append(tile)


def permuted(checkpoint, texts, attention, seed=0):
    """One tile of the first layer, as the control shows it."""
    kept = Kept(torch.eye(attention.shape[-1], dtype=attention.dtype).repeat(len(texts), 1, 1))
    control = PermutedKeys(kept, texts, checkpoint.attentions["self"], seed)
    whole = slice(0, len(texts)), slice(0, attention.shape[2])
    control.observe(
        Tile(
            layer=0,
            texts=whole[0],
            queries=whole[1],
            probabilities=attention,
            row_sums=None,
            indicator_sums=None,
            entropy=torch.special.entr(attention).sum(-1),
            outputs=None,
        )
    )
    return kept.tiles[0]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_every_row_keeps_its_weights_and_its_entropy_among_the_keys_it_can_attend_to(family, loaded):
    checkpoint = loaded(family)
    texts = pass_texts(checkpoint, TEXTS)
    n_tokens = max(text.n_tokens for text in texts)
    attention = torch.zeros((3, 2, n_tokens, n_tokens), dtype=torch.float64)
    random = np.random.default_rng(1)
    for row, text in enumerate(texts):
        for query in range(text.n_tokens):
            n_live = query + 1 if checkpoint.attentions["self"].causal else text.n_tokens
            weights = random.dirichlet(np.full(n_live, 0.5), size=2)
            attention[row, :, query, :n_live] = torch.from_numpy(weights)
    tile = permuted(checkpoint, texts, attention)
    found = tile.probabilities
    assert (found != attention).any()
    torch.testing.assert_close(found.sort(-1).values, attention.sort(-1).values)
    assert (found[attention.sum(-1) == 0] == 0).all()
    for row, text in enumerate(texts):
        assert (found[row, :, :, text.n_tokens :] == 0).all()
        if checkpoint.attentions["self"].causal:
            assert (found[row].triu(1) == 0).all()
    torch.testing.assert_close(tile.entropy, torch.special.entr(attention).sum(-1))
    torch.testing.assert_close(tile.indicator_sums, found)
    assert (permuted(checkpoint, texts, attention, seed=1).probabilities != found).any()


def test_every_live_key_is_as_likely_to_get_the_largest_weight(loaded):
    checkpoint, random = loaded("bert"), np.random.default_rng(5)
    texts = pass_texts(checkpoint, [Text((" ".join(random.choice(WORDS, 4)),)) for _ in range(500)])
    attention = torch.zeros((500, 4, texts[0].n_tokens, texts[0].n_tokens))
    attention[..., 0] = 1
    counts = permuted(checkpoint, texts, attention).probabilities.sum((0, 1, 2))
    expected = 2000 * texts[0].n_tokens / texts[0].n_tokens
    assert (counts - expected).abs().max() < 5 * expected**0.5


def counts(measured, criterion):
    return counts_of(role_finding(role_scores(measured, ScoreSettings()), criterion).tests, "none")


def with_permuted_keys(checkpoint, texts):
    """What is measured of texts with permuted keys, in their order."""
    return results(checkpoint, scores_question(ROLES, seed=0), texts)


def test_the_random_numbers_are_those_of_split_mix():
    states = 1234567 + torch.arange(1, 4) * GOLDEN
    assert [number % 2**64 for number in _random(states).tolist()] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


@pytest.mark.parametrize("family", ["bert", "gpt2", "mistral"])
def test_the_orders_of_a_text_do_not_depend_on_the_texts_beside_it(family, loaded, small_tiles):
    checkpoint = loaded(family)
    alone = [with_permuted_keys(checkpoint, [text])[0] for text in TEXTS]
    together = with_permuted_keys(checkpoint, TEXTS)
    small_tiles(1, queries=2)
    in_small_tiles = with_permuted_keys(checkpoint, TEXTS[::-1])[::-1]
    for one, other, third in zip(alone, together, in_small_tiles, strict=True):
        np.testing.assert_allclose(one.measures, other.measures, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(one.measures, third.measures, rtol=1e-4, atol=1e-5)


WORDS = ("cat", "dog", "bird", "the", "sat", "on", "red", "mat", "ran", "it")


def test_shuffled_words_are_the_same_words_of_each_segment():
    text = Text(("The black cat sat on the red mat.", "She ate it."))
    one, other = shuffled_words(text, 0), shuffled_words(text, 1)
    assert one == shuffled_words(text, 0) != other != text
    for before, after in zip(text.segments, one.segments, strict=True):
        assert sorted(before.split()) == sorted(after.split())


RULES = ("role", "paper")
HALF = read_sample("both")[::2]
"""Of the samples: every other text and pair."""


def test_random_weights_hold_at_most_alpha_of_each_role(bundled):
    random = load_checkpoint(randomly_initialised(bundled.files, SEEDS[0]), device="cpu")
    measured = results(random, SCORES, HALF)
    for tau in (2.0, 3.0):
        counted = counts(measured, Criterion(tau=tau))
        assert (counted.heads <= 0.05 * counted.n_heads).all(), dict(zip(ROLES, counted.heads))
        as_in_paper = counts(measured, Criterion(tau=tau, rule="paper"))
        assert as_in_paper.heads[ROLES.index("block")] > 0.5 * counted.n_heads


def test_permuted_keys_hold_at_most_alpha_of_each_role_and_the_checkpoint_keeps_its_own(bundled):
    chance = with_permuted_keys(bundled, HALF)
    trained = results(bundled, SCORES, HALF)
    for tau in (2.0, 3.0):
        counted = counts(chance, Criterion(tau=tau))
        assert (counted.heads <= 0.05 * counted.n_heads).all(), dict(zip(ROLES, counted.heads))
        rules = [counts(trained, Criterion(tau=tau, rule=rule)) for rule in RULES]
        for role in COARSE_ROLES[:3]:
            place = ROLES.index(role)
            assert rules[0].heads[place] == rules[1].heads[place] > 0, role
