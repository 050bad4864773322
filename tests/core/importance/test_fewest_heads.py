"""The greedy search for a small set of heads without which a model says another word, on models that are one rule."""

import itertools

import pytest

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.importance.fewest_heads import MOST_HEADS, N_DRAWN, drawn_at_random, fewest_heads
from attention_sieve.core.passes.outputs import next_tokens, token_leads
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

SHAPE = (3, 4)
ALL = list(itertools.product(range(SHAPE[0]), range(SHAPE[1])))


def model(needs):
    """The lead falls by one for each head that is needed and off, to below 0 without all of them."""
    return lambda sets: [len(needs) - 0.5 - len(needs & set(heads)) for heads in sets]


@pytest.mark.parametrize("needs", [{(1, 2)}, {(0, 3), (2, 1)}, set(ALL[:MOST_HEADS])])
def test_the_heads_that_are_needed_are_found(needs):
    found = fewest_heads(SHAPE, model(needs))
    assert set(found.heads) == needs
    assert found.heads == tuple(sorted(found.heads))


def test_where_more_heads_are_needed_than_are_tried_none_are_named():
    found = fewest_heads(SHAPE, model(set(ALL[: MOST_HEADS + 1])))
    assert found.heads == ()


def test_each_head_is_tried_alone_no_set_twice_and_sets_that_are_measured_together_share_a_layer():
    asked, reports = [], []
    needs = {(0, 3), (2, 1), (2, 2)}

    def measure(sets):
        asked.append(sets)
        return model(needs)(sets)

    found = fewest_heads(SHAPE, measure, lambda *how_far: reports.append(how_far))
    tried = [heads for sets in asked for heads in sets]
    assert {(head,) for head in ALL} <= set(tried)
    assert len(set(tried)) == len(tried) == found.n_tried
    assert all(len({heads[0][0] for heads in sets}) == 1 for sets in asked)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert max(done for done, _ in reports) <= reports[0][1]


def test_sets_at_random_are_as_large_as_asked_for_differ_and_are_the_same_again():
    drawn = drawn_at_random(2, SHAPE)
    assert len(drawn) == N_DRAWN
    assert all(len(set(heads)) == 2 and set(heads) <= set(ALL) for heads in drawn)
    assert len(set(drawn)) > 1
    assert drawn == drawn_at_random(2, SHAPE)


def test_the_lead_of_a_token_is_that_of_its_log_probability(tmp_path_factory):
    from small_checkpoints import save_with_head

    folder = save_with_head("llama", tmp_path_factory.mktemp("llama"), "CausalLM", seed=0)
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    text = prepare(checkpoint, Text(("the dog sat on the red mat.",)), PassSettings())
    first = next_tokens(checkpoint, text, PassSettings())
    sets = [(), ((0, 1),), ((0, 1), (1, 0), (1, 2))]
    for heads, lead in zip(sets, token_leads(checkpoint, text, "self", sets, first.ids[0]), strict=True):
        expected = next_tokens(checkpoint, text, PassSettings(off=heads))
        after = dict(zip(expected.ids, expected.log_probabilities[1], strict=True))
        others = max(value for token, value in after.items() if token != first.ids[0])
        assert lead == pytest.approx(after[first.ids[0]] - others, abs=1e-5)
