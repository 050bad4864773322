"""The flow of heads from their roles under one checkpoint to those under another: what it shows, by hand."""

import numpy as np
from comparison_figures import BETWEEN, EMPTY, FULL, HOSTILE, NAMES
from drawn import drawn_texts, layers, rows

from attention_sieve.core.comparison.transitions import transitions
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.comparison.flow import NOTHING, SEVERAL, heads_by_mark, role_flow
from attention_sieve.dashboard.figures.figure import CHOICE, GREY


def thickness(bands):
    """Of each band, the same along its whole length."""
    found = (bands["bottom"] - bands["top"]).groupby(bands["mark"], sort=False).agg(["min", "max"])
    np.testing.assert_allclose(found["min"], found["max"])
    return found["min"]


def test_the_flow_is_as_wide_as_its_transitions_have_heads():
    bands, figure = rows(FULL["flow"], "band"), FULL["flow"]
    bars = [rows(figure, f"bar {side}") for side in "ab"]
    assert [bar["label"].tolist() for bar in bars] == [["local", "no role"], ["local", "local + delimiter", "no role"]]
    assert bars[0]["color"].tolist() == [LOOKS["local"].color, GREY]
    assert bars[1]["color"].tolist() == [LOOKS["local"].color, SEVERAL, GREY]
    per_head = [(bar["bottom"] - bar["top"]).sum() / 6 for bar in bars]
    np.testing.assert_allclose(thickness(bands) / per_head[0], [2, 1, 2, 1])
    np.testing.assert_allclose(*per_head)
    first = bands[bands["x"] == 0].set_index("mark")
    assert first.loc["local → no role", ["heads", "which"]].tolist() == [2, "L0 H2, L1 H0"]
    assert first["opacity"].tolist() == [0.6, 0.6, 0.25, 0.25]
    assert first.sort_values("top").index.tolist() == [
        "local → local",
        "local → no role",
        "no role → local + delimiter",
        "no role → no role",
    ]
    assert figure.description == (
        "Flow of 6 heads from the roles they hold under a to those they hold under b. "
        "3 change: local → no role 2; no role → local + delimiter 1."
    )


def test_every_mark_of_the_flow_sends_a_name_that_lists_its_heads():
    marks, data = heads_by_mark(BETWEEN), FULL["flow"].data
    assert set(data["mark"].dropna()) == set(marks)
    assert marks["local → no role"] == ((0, 2), (1, 0))
    assert marks["local under a"] == ((0, 2), (1, 0), (1, 1))
    assert marks["no role under b"] == ((0, 0), (0, 1), (0, 2), (1, 0))
    assert list(marks)[:4] == ["local → no role", "no role → local + delimiter", "no role → no role", "local → local"]
    (choice,) = (parameter for parameter in FULL["flow"].spec["params"] if parameter["name"] == CHOICE)
    assert choice["select"] == {"type": "point", "fields": ["mark"]}


def test_a_flow_of_many_roles_holds_every_head_once_on_each_side():
    random = np.random.default_rng(1)
    before = random.random((len(ROLES), 5, 7)) < 0.3
    after = before ^ (random.random(before.shape) < 0.2)
    between = transitions(before, after, ROLES, COARSE_ROLES)
    figure, marks = role_flow(between, NAMES[:2]), heads_by_mark(between)
    for side in ("a", "b"):
        assert rows(figure, f"bar {side}")["heads"].sum() == 35
        heads = [head for name, some in marks.items() if name.endswith(f"under {side}") for head in some]
        assert sorted(heads) == [(layer, head) for layer in range(5) for head in range(7)]


def test_a_flow_without_heads_and_one_without_changes_say_so():
    assert EMPTY["flow"].description == NOTHING
    assert NOTHING in drawn_texts(EMPTY["flow"])
    assert heads_by_mark(()) == {}
    assert role_flow(BETWEEN[2:], NAMES[:2]).description.endswith("No head changes its roles.")


def test_hostile_names_stay_text():
    names = rows(FULL["flow"], "name b")["label"].tolist()
    assert names == ["(b) " + "…" + HOSTILE[0][-23:]]
    assert names[0] in drawn_texts(FULL["flow"])
    assert any(
        layer["encoding"]["text"] == {"field": "label", "type": "nominal"}
        for layer in layers(FULL["flow"].spec)
        if "text" in layer["encoding"]
    )
