import numpy as np
import pytest

from attention_sieve.core.surface.statistics import BEHAVIOURS, HeadStatistics, behaviours


def statistics(**of_first_head):
    """Statistics of two heads of one layer: what is given of the first, all else 0.3."""
    names = ("self", "previous", "next", "cls", "sep", "punctuation", "entropy")
    mean = np.full((len(names), 1, 2), 0.3)
    for name, value in of_first_head.items():
        mean[names.index(name), 0, 0] = value
    return HeadStatistics(names=names, mean=mean, low=mean, high=mean, n_texts=np.full(len(names), 5))


@pytest.mark.parametrize(
    ("of_head", "label"),
    [
        ({}, None),
        ({"next": 0.51}, "next"),
        ({"next": 0.5}, None),
        ({"previous": 0.51}, "previous"),
        ({"entropy": 3.81}, "broad"),
        ({"cls": 0.61}, "cls"),
        ({"cls": 0.55}, None),
        ({"sep": 0.61, "next": 0.9}, "sep"),
        ({"sep": 0.7, "punctuation": 0.61}, "punctuation"),
        ({"self": 0.99}, None),
        ({"next": 0.7, "sep": np.nan}, "next"),
    ],
)
def test_a_head_is_labelled_by_the_last_behaviour_it_shows(of_head, label):
    found = behaviours(statistics(**of_head))
    assert found.tolist() == [[-1 if label is None else BEHAVIOURS.index(label), -1]]
