"""What long work is said to cost, before the click that begins it."""

import re

import pytest

from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import costs


def seconds(written):
    """The number of a cost, in seconds."""
    number, unit = re.fullmatch(r"about (\d+) (s|min) on a processor", written).groups()
    return int(number) * {"s": 1, "min": 60}[unit]


def test_a_cost_is_in_minutes_and_grows_with_passes_texts_and_weights(small):
    files, tiny = find_checkpoint("bundled"), find_checkpoint(small("bert"))
    few, many = (seconds(costs.of_passes(files, n_passes, 100)) for n_passes in (2_000, 200_000))
    assert many > 20 * few, "100 times as many, but for the rounding"
    assert "min" in costs.of_passes(files, 200_000, 100)
    assert seconds(costs.of_passes(files, 20_000, 1_000)) > seconds(costs.of_passes(files, 20_000, 10))
    assert seconds(costs.of_passes(tiny, 20_000, 1_000)) < seconds(costs.of_passes(files, 20_000, 1_000))


def test_the_mean_length_counts_all_segments_of_a_text():
    assert costs.mean_characters(read_typed("four\nab ||| cdef")) == 5


def test_work_that_is_soon_done_is_not_spoken_of_and_the_rest_in_one_sentence():
    files, texts = find_checkpoint("bundled"), read_typed("\n".join(["a word " * 20] * 4))
    assert costs.takes(files, 1, texts) is None
    assert costs.takes(files, 1, texts, further=600) == "Takes about 10 min on a processor."
    assert costs.takes(files, 200_000, texts) == f"Takes {costs.of_passes(files, 200_000, 139)}."
    assert costs.takes(files, 200_000, 139) == costs.takes(files, 200_000, texts)
    assert costs.takes(files, 0, ()) is None


def test_a_tree_probe_takes_longer_with_more_words_epochs_and_vectors():
    files = find_checkpoint("bundled")
    usual = costs.of_tree_probe(files, 100, 1_500, 30, words=False)
    assert usual < costs.of_tree_probe(files, 100, 4_000, 30, words=False)
    assert usual < costs.of_tree_probe(files, 100, 1_500, 30, words=True)
    assert costs.of_tree_probe(files, 100, 1_500, 60, words=False) == 2 * usual


def captions(at):
    return [each.value for each in at.caption]


NINE = "\n".join(["The dog ran."] * 9)
PLACES = {
    "chance": ("roles", {}, lambda at: [at.button(key="count chance").help]),
    "descriptions": ("inspect", {"head": "1-1", "checkpoint": "bundled"}, captions),
    "tree probes": ("grammar", {"grammar section": "Probes", "corpus_text": NINE}, captions),
    "elsewhere": ("claims", {"claim": "L1 H1 is an amod head"}, lambda at: [each.help for each in at.button]),
}


@pytest.mark.parametrize("place", PLACES)
def test_work_says_before_its_click_what_it_costs_unless_that_is_little(app, small, monkeypatch, place):
    page, link, said = PLACES[place]
    for quiet, is_said in ((1e9, False), (0, True)):
        monkeypatch.setattr(costs, "QUIET", quiet)
        at = app(page, **({"checkpoint": small("bert")} | link))
        assert any("Takes about" in (each or "") for each in said(at)) == is_said
