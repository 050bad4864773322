"""What long work is said to cost, before the click that begins it."""

import re

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
