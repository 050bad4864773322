import itertools

import numpy as np

from attention_sieve.core.importance.pruning.curves import kept_functions

ORDER = np.array([[0, 1], [1, 2], [0, 0], [1, 0], [0, 2], [1, 1]])
EVERY = np.ones((2, 3), bool)


def with_heads(*heads):
    has = np.zeros((2, 3), bool)
    for head in heads:
        has[head] = True
    return has


def test_kept_heads_of_a_function_are_counted_down_the_order():
    functions = {"first": with_heads((0, 1), (1, 1)), "none": with_heads(), "all": EVERY}
    first, every = kept_functions(functions, ORDER, [0, 1, 3, 6], EVERY)
    assert (first.name, every.name) == ("first", "all"), "a function of no head is left out"
    assert first.kept.tolist() == [2, 1, 1, 0]
    assert every.kept.tolist() == every.expected.tolist() == [6, 5, 3, 0]
    assert every.low.tolist() == every.high.tolist() == every.kept.tolist()


def test_random_removal_is_that_of_all_draws():
    has = with_heads((0, 0), (0, 1), (1, 2))
    (kept,) = kept_functions({"some": has}, ORDER, [3], EVERY)
    counts = sorted(sum(has.ravel()[list(stay)]) for stay in itertools.combinations(range(6), 3))
    assert kept.expected[0] == np.mean(counts)
    assert (kept.low[0], kept.high[0]) == (counts[0], counts[-1]), "1 of 20 draws keeps none, 1 of 20 keeps all"


def test_heads_that_were_gone_before_count_nowhere():
    is_there = ~with_heads((0, 0))
    (kept,) = kept_functions({"some": with_heads((0, 0), (0, 1))}, ORDER[[0, 1, 3]], [0, 1], is_there)
    assert kept.kept.tolist() == [1, 0]
    assert kept.expected.tolist() == [1, 0.8]
