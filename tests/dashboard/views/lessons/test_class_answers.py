"""What a class answered, in little space: every answer is drawn or counted."""

import re

from attention_sieve.dashboard.views.lessons.class_answers import HEIGHT, dot_plot, on_grid


def circles(svg):
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.-]+)" r="([\d.]+)"/>', svg)
    return [tuple(map(float, numbers)) for numbers in found]


def test_a_number_has_a_dot_for_each_who_said_it_above_its_place():
    svg = dot_plot([("7", 2), ("41", 1), ("72", 3)], answer=41, most=72)
    places = [x for x, _, _ in circles(svg)]
    assert len(places) == 6
    assert places == sorted(places)
    assert len(set(places)) == 3
    mark = float(re.search(r'd="M([\d.]+) 0V', svg)[1])
    assert mark == places[2]


def test_dots_stay_within_60_pixels_however_many_say_the_same():
    assert HEIGHT <= 60
    for n_same in (0, 1, 30, 400):
        drawn = circles(dot_plot([("3", n_same)] if n_same else [], answer=1, most=5))
        assert len(drawn) == n_same
        assert all(y - radius >= 0 for _, y, radius in drawn)


def test_heads_are_counted_on_the_grid_and_those_of_another_checkpoint_apart():
    assert on_grid([("L0 H2", 4), ("L1 H1", 1), ("L9 H0", 2), ("", 1)], (2, 3)) == ({(0, 2): 4, (1, 1): 1}, 3)
