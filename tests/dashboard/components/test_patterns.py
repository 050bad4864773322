"""What is sent of every head's pattern: all weights of a short text, of a long one its cells and strongest links."""

import numpy as np
import pytest
from reading import numbers

from attention_sieve.dashboard.components.grid import pack_patterns

WEIGHTS = np.random.default_rng(0).dirichlet(np.full(7, 0.3), size=(2, 3, 5)).astype(np.float32)
"""2 layers, 3 heads, 5 queries, 7 keys."""


def test_a_short_text_is_sent_whole():
    patterns = pack_patterns(WEIGHTS, is_part=False)
    assert (patterns.cells / 255.0) ** 2 == pytest.approx(WEIGHTS, abs=0.005)
    data = patterns.data()
    assert numbers(data["cells"]).tolist() == patterns.cells.ravel().tolist()
    assert (data["shape"], data["queries"], data["keys"], data["links"]) == ([5, 7], 5, 7, None)


def test_a_cell_of_many_tokens_holds_the_largest_of_their_weights():
    attention = np.zeros((1, 1, 100, 100), dtype=np.float32)
    attention[0, 0, 37, 99] = 1  # a mean over the cell would hide a single link
    patterns = pack_patterns(attention, is_part=True, most_weights=200)
    assert patterns.cells.shape == (1, 1, 10, 10)
    assert np.argwhere(patterns.cells).tolist() == [[0, 0, 3, 9]]
    assert patterns.cells.max() == 255


def test_a_long_text_is_sent_as_the_strongest_links_of_each_query():
    patterns = pack_patterns(WEIGHTS, is_part=True, most_weights=3 * 2 * 30)  # two links of each of 30 queries
    order = np.argsort(-WEIGHTS, axis=-1, kind="stable")[..., :2]
    assert patterns.keys.tolist() == order.tolist()
    assert (patterns.weights / 255.0) ** 2 == pytest.approx(np.take_along_axis(WEIGHTS, order, axis=-1), abs=0.005)
    links = patterns.data()["links"]
    assert links["each"] == 2
    assert numbers(links["keys"], "<u2").tolist() == order.ravel().tolist()


@pytest.mark.parametrize("shape", [(12, 12, 256, 256), (32, 32, 100, 100), (2, 4, 40, 700)])
def test_patterns_of_many_heads_and_tokens_stay_small(shape):
    attention = np.full(shape, 1 / shape[-1], dtype=np.float32)
    assert sum(len(str(part)) for part in pack_patterns(attention, is_part=True).data().values()) < 1_200_000
