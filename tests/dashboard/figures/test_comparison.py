import numpy as np
import pandas as pd
import pytest
from comparison_figures import (
    COUNTS,
    EMPTY,
    FULL,
    HEADS,
    HOLDS,
    HOSTILE,
    LAYERS,
    NAMES,
    STEPS,
    TEXTS,
    shares,
    some_divergence,
    some_progress,
    some_tests,
)
from drawn import drawn_texts, layers, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.dashboard.figures.comparison.checkpoints import COLUMNS, role_small_multiples
from attention_sieve.dashboard.figures.comparison.depths import roles_by_depth
from attention_sieve.dashboard.figures.comparison.shifts import roles_gained_and_lost
from attention_sieve.dashboard.figures.comparison.steps import APART, HEIGHT, LINE, roles_over_steps
from attention_sieve.dashboard.figures.figure import drawable
from attention_sieve.dashboard.figures.finetune import training_curve


def test_bars_go_up_for_gained_and_down_for_lost_on_one_scale():
    figure = roles_gained_and_lost(
        np.array([[2, 0], [0, 0], [5, 1], [0, 0]]), np.array([[0, 3], [0, 0], [0, 1], [0, 0]]), COARSE_ROLES, 8
    )
    bars = pd.concat([rows(figure, "gained"), rows(figure, "lost")])
    assert [tuple(row) for row in bars[["kind", "role", "layer", "heads", "label"]].values] == [
        ("gained", "local", 0, 2, "+2"),
        ("gained", "delimiter", 0, 5, "+5"),
        ("gained", "delimiter", 1, 1, "+1"),
        ("lost", "local", 1, 3, "−3"),
        ("lost", "delimiter", 1, 1, "−1"),
    ]
    lengths = (bars["end"] - bars["zero"]) / bars["heads"]
    unit = lengths.iloc[0]
    assert unit > 0
    assert np.allclose(lengths, [unit, unit, unit, -unit, -unit])
    scale = rows(figure, "scale")
    assert scale["label"].tolist() == ["5", "0", "5"] * 4
    assert bars["end"].iloc[1] == pytest.approx(scale["end"].iloc[6]), "the longest bar reaches its number"
    assert "16 heads in 2 layers" in figure.description
    assert "local gained by 2, lost by 3 (most changes in layer 1, 3)" in figure.description
    assert "syntactic gained by 0, lost by 0;" in figure.description
    full = np.full((4, LAYERS), HEADS)
    bars = rows(roles_gained_and_lost(full, full, COARSE_ROLES, HEADS), "gained")
    assert ((bars["end"] - bars["zero"]).abs() < 0.5).all(), "the longest bar stays in its lane"
    assert sorted(set(bars["zero"])) == [0.5, 1.5, 2.5, 3.5]


def test_the_mean_change_is_drawn_signed_with_its_interval():
    figure = FULL["shift"]
    points, intervals = rows(figure, "shift"), rows(figure, "interval")
    assert points["place"].tolist() == [0, 1, 2]
    assert points["mean"].tolist()[::2] == [-1.0, 0.25]
    assert np.isnan(points["mean"].iloc[1]), "a gap breaks the line"
    assert intervals[["layer", "low", "high"]].values.tolist() == [[0, -1.5, -0.5], [2, -0.25, 0.75]]
    assert rows(figure, "zero")["value"].tolist() == [0]
    assert "b − a" in figure.spec["title"]["text"]
    assert "delimiter: SEP: -0.8 overall over 5 texts, p = 0.0010" in figure.description
    assert "lowest -1 in layer 0, highest +0.25 in layer 2; 1 interval without 0" in figure.description
    assert "No value: layer 1." in figure.description
    side_by_side = rows(FULL["shifts"], "shift")
    assert (side_by_side["place"].round() == side_by_side["layer"]).all()
    assert not side_by_side.duplicated("place").any()


def test_divergence_is_averaged_over_the_texts_that_have_one():
    divergence = some_divergence()
    figure = FULL["divergence"]
    heads = rows(figure, "dot").set_index(["layer", "head"])
    there = np.delete(divergence, 1, axis=0)
    assert len(heads) == LAYERS * HEADS - 1
    for place, row in heads.iterrows():
        of_head = there[:, *map(int, place)]
        assert row["value"] == pytest.approx(of_head.mean())
        interval = stats.t.interval(0.95, TEXTS - 2, of_head.mean(), stats.sem(of_head))
        assert (row["low"], row["high"]) == pytest.approx(interval)
        assert row["texts"] == TEXTS - 1
    means = rows(figure, "mean").set_index("layer")["value"]
    assert means[0] == pytest.approx(there[:, 0].mean())
    assert means[2] == pytest.approx(there[:, 2, :3].mean())
    assert f"{there[~np.isnan(there)].mean():.3g} on average" in figure.description
    assert "1 head without a value left out. 1 text without one left out." in figure.description
    for one in layers(figure.spec):
        if "scale" in (y := one["encoding"].get("y", {})):
            assert y["scale"]["domain"][0] == 0
            assert "ln 2 = 0.693" in y["title"]


def test_every_head_with_both_means_is_a_point_and_those_that_differ_lie_on_top():
    tests = some_tests()
    figure = FULL["scatter"]
    points = rows(figure, "head")
    assert len(points) == 4 * LAYERS * HEADS - 1
    for row in points.itertuples():
        place = ROLES.index(row.role), *(int(part[1:]) for part in row.name.split())
        numbers = (row.mean_a, row.mean_b, row.difference, row.p_adjusted, row.differs)
        names = ("mean_a", "mean_b", "difference", "p_adjusted", "differs")
        assert numbers == tuple(getattr(tests, name)[place] for name in names)
    assert points["differs"].is_monotonic_increasing
    assert 0 < points["differs"].sum() < len(points)
    block = tests.differs[3] & ~np.isnan(tests.difference[3])
    up, down = (block & (tests.difference[3] > 0)).sum(), (block & (tests.difference[3] < 0)).sum()
    assert f"block {up} higher, {down} lower of {LAYERS * HEADS - 1}" in figure.description
    assert "1 mean without a score left out" in figure.description
    diagonal = rows(figure, "diagonal")
    assert (diagonal["mean_a"] == diagonal["mean_b"]).all()
    assert diagonal["mean_a"].tolist() == [0, points[["mean_a", "mean_b"]].max(axis=None)]


def test_small_multiples_tell_held_gained_and_lost():
    data = FULL["multiples"].data
    cells = data[data["layer"].notna()]
    found = {(row.checkpoint, row.role, int(row.layer), int(row.head)): row.kind for row in cells.itertuples()}
    assert len(found) == len(cells)
    for number, name in enumerate(NAMES):
        for role, layer, head in np.ndindex(*HOLDS.shape[1:]):
            before, now = HOLDS[0, role, layer, head], HOLDS[number, role, layer, head]
            expected = {(True, True): "held", (False, True): "gained", (True, False): "lost"}.get((before, now))
            assert found.get((drawable(name), COARSE_ROLES[role], layer, head)) == expected
    assert set(cells["kind"]) == {"held", "gained", "lost"}
    up, down = (HOLDS[1] & ~HOLDS[0]).sum(axis=(1, 2)), (HOLDS[0] & ~HOLDS[1]).sum(axis=(1, 2))
    assert f"local {COUNTS[1, 0]} (+{up[0]} −{down[0]})" in FULL["multiples"].description
    assert f"pre-trained: local {COUNTS[0, 0]}, syntactic" in FULL["multiples"].description
    frames = rows(FULL["multiples"], "frame").set_index(["number", "role"])
    assert frames.loc[(1, "local"), "label"] == f"{COUNTS[1, 0]} (+{up[0]} −{down[0]})"


@pytest.mark.parametrize(("n_checkpoints", "shape"), [(2, (1, 1)), (4, (6, 12)), (5, (6, 12)), (12, (32, 32))])
def test_every_cell_lies_in_its_grid_and_no_grid_on_another(n_checkpoints, shape):
    holds = np.ones((n_checkpoints, 4, *shape), dtype=bool)
    figure = role_small_multiples([str(number) for number in range(n_checkpoints)], holds, COARSE_ROLES)
    frames, cells = rows(figure, "frame"), rows(figure, "held")
    of_grid = cells.groupby(["checkpoint", "role"])
    frames = frames.set_index(["checkpoint", "role"]).sort_index()
    assert (of_grid["left"].min() > frames["left"]).all()
    assert (of_grid["right"].max() < frames["right"]).all()
    assert (of_grid["top"].min() > frames["top"]).all()
    assert (of_grid["bottom"].max() < frames["bottom"]).all()
    assert frames["right"].max() <= COLUMNS
    assert frames["bottom"].max() <= figure.spec["height"]
    boxes = frames[["left", "right", "top", "bottom"]].to_numpy()
    apart = [
        (boxes[:, None, low] >= boxes[None, :, high]) | (boxes[None, :, low] >= boxes[:, None, high])
        for low, high in ((0, 1), (2, 3))
    ]
    assert (apart[0] | apart[1] | np.eye(len(boxes), dtype=bool)).all()


def test_lines_over_steps_stand_at_their_steps():
    points = rows(FULL["steps"], "point")
    for number, place in np.ndindex(COUNTS.shape):
        row = points.iloc[number * 4 + place]
        assert (row["at"], row["role"], row["heads"]) == (STEPS[number], COARSE_ROLES[place], COUNTS[number, place])
    first, last = COUNTS[0, 0], COUNTS[-1, 0]
    assert f"local {first} at first, {last} at last" in FULL["steps"].description
    assert "5 checkpoints from step 0 to 400" in FULL["steps"].description


def test_a_line_joins_the_steps_of_a_run_and_no_other_checkpoints():
    for name, joined in (("steps", True), ("shift over steps", True), ("places", False), ("shift over places", False)):
        marks = [layer["mark"]["type"] for layer in layers(FULL[name].spec)]
        assert ("line" in marks, "point" in marks) == (joined, True), name
    in_words = f"pre-trained: local {COUNTS[0, 0]}, syntactic {COUNTS[0, 1]}"
    assert in_words in FULL["places"].description
    assert "in order" not in FULL["places"].description + FULL["shift over places"].description
    assert "the last" not in FULL["shift over places"].description


def test_points_of_one_checkpoint_stand_side_by_side_around_its_place():
    points = rows(FULL["places"], "point")
    at = points["at"].to_numpy().reshape(COUNTS.shape)
    np.testing.assert_allclose(at.mean(axis=1), range(5))
    np.testing.assert_allclose(np.diff(at, axis=1), APART)
    assert points["heads"].tolist() == COUNTS.ravel().tolist()
    names = {"pre-trained", drawable(HOSTILE[1], 16), "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"}
    assert names <= set(drawn_texts(FULL["places"])), "below the axis"


@pytest.mark.parametrize("steps", [STEPS, None])
def test_a_role_that_does_not_apply_to_a_checkpoint_has_no_point_there_rather_than_one_at_0(steps):
    counts = COUNTS.astype(float)
    counts[-1, 1] = np.nan
    figure = roles_over_steps(NAMES, steps, counts, COARSE_ROLES)
    drawn = rows(figure, "point")
    assert len(drawn) == counts.size - 1
    assert drawn.groupby("role").size()[COARSE_ROLES[1]] == len(NAMES) - 1
    assert COARSE_ROLES[1] not in rows(figure, "end")["role"].tolist()
    assert "syntactic not applicable" in figure.description or "not applicable at last" in figure.description


def test_the_checkpoint_in_focus_moves_the_data_and_not_the_spec():
    figures = [roles_over_steps(NAMES, STEPS, COUNTS, COARSE_ROLES, marked) for marked in (None, 0, 4)]
    assert figures[0].spec is figures[1].spec is figures[2].spec
    assert [rows(figure, "marked")["at"].tolist() for figure in figures] == [[], [0], [400]]
    assert rows(figures[1], "right")["label"].tolist() == ["pre-trained"], "it has room on its right only"
    assert len(rows(figures[2], "left")) == 1


@settings(max_examples=15)
@given(st.lists(st.integers(0, 30), min_size=4, max_size=4))
def test_names_of_lines_do_not_cover_each_other(last):
    figure = roles_over_steps(("a", "b"), (0, 1), np.array([[0] * 4, last]), COARSE_ROLES)
    ends = rows(figure, "end")
    top = max(1, *last)
    heights = np.sort(ends["heads"].to_numpy(dtype=float)) * HEIGHT / top
    assert (np.diff(heights) > LINE - 1e-6).all()
    assert heights[0] > -1e-6
    assert heights[-1] < HEIGHT + 1e-6
    order = ends.sort_values("heads")["role"].map(dict(zip(COARSE_ROLES, last, strict=True)))
    assert order.is_monotonic_increasing


def test_the_shift_over_steps_keeps_its_sign_and_counts_what_it_lacks():
    figure = FULL["shift over steps"]
    points = rows(figure, "point")
    assert points["at"].tolist() == list(STEPS)
    assert points["change"].tolist()[3:] == [-1, -2]
    assert "lowest -2" in figure.description
    assert "highest +0.5" in figure.description
    assert "1 checkpoint without a change left out" in figure.description
    assert "b − a" in figure.spec["title"]["text"]


def test_shares_of_other_shapes_stand_at_their_depths():
    points = rows(FULL["depth"], "share")
    deep = points[(points["series"] == 0) & (points["role"] == "delimiter")]
    assert deep["depth"].tolist() == [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]
    assert deep["share"].tolist() == shares(6)[2].tolist()
    assert ((points["place"] - points["place"].round(9).astype(int)) < 0.9).all()
    assert points[points["series"] == 1]["depth"].tolist() == [0.5] * 4
    assert f"pre-trained, 6 layers: local {shares(6)[0].mean():.0%}" in FULL["depth"].description


def test_checkpoints_of_other_shapes_differ_in_more_than_colour():
    names = [str(number) for number in range(12)]
    figure = roles_by_depth(names, [shares(2)] * 12, [np.array([0.0, 1.0])] * 12, COARSE_ROLES)
    ranges = {
        channel: one["encoding"][channel]["scale"]["range"]
        for one in layers(figure.spec)
        for channel in ("strokeDash", "shape")
        if channel in one["encoding"]
    }
    looks = list(zip(map(tuple, ranges["strokeDash"]), ranges["shape"], strict=True))
    assert len(set(looks)) == 12


def test_overall_shares_name_each_checkpoint_and_what_is_not_applicable():
    figure = FULL["shares"]
    bars = rows(figure, "bar")
    assert len(bars) == 7
    assert bars[bars["role"] == "delimiter"][["checkpoint", "share", "heads", "of"]].values.tolist() == [
        ["pre-trained", 0, 0, 12],
        [HOSTILE[0], 0.3, 22, 72],
    ]
    assert rows(figure, "none")["role"].tolist() == ["syntactic"]
    assert "1 share not applicable and left out" in figure.description
    drawn = drawn_texts(figure)
    assert drawn.count("pre-trained") == 4
    assert {"local (L)", "block (B)", "not applicable"} <= set(drawn)


def test_training_draws_what_is_finite_and_counts_the_rest():
    figure = FULL["training"]
    assert rows(figure, "loss")[["step", "value"]].values.tolist() == [[10, 0.7], [30, 0.4]]
    assert rows(figure, "measure")["value"].tolist() == [0.5, 0.75, 0.7]
    assert rows(figure, "validation loss")["value"].tolist() == [0.69, 0.6, 0.61]
    assert rows(figure, "saved")["step"].tolist() == [10, 20]
    assert rows(figure, "chance")[["value", "label"]].values.tolist() == [[0.55, "most frequent class: 0.55"]]
    low, high = stats.binomtest(14, 20).proportion_ci(method="wilson")
    np.testing.assert_allclose(rows(figure, "interval")[["step", "value", "high"]], [[30, low, high]])
    assert (
        f"95% interval {low:.3f} to {high:.3f}, 20 texts; the most frequent class alone: 0.550." in figure.description
    )
    assert rows(figure, "span")[["step", "end"]].values.tolist() == [[0, 90]]
    assert "at step 30 of 90" in figure.description
    assert "Training loss 0.7 at step 10, 0.4 at step 30." in figure.description
    assert "Validation accuracy 0.7 at step 30, best 0.75 at step 20." in figure.description
    assert "2 checkpoints saved. 1 value that cannot be drawn left out." in figure.description
    older = training_curve(some_progress())
    assert rows(older, "chance").empty
    assert rows(older, "interval").empty
    assert "interval" not in older.description


def test_a_regression_shows_the_correlation_from_minus_one():
    figure = FULL["regression"]
    assert rows(figure, "measure")["value"].tolist() == [-0.25]
    assert rows(figure, "validation loss")["value"].tolist() == [2.0]
    assert rows(figure, "chance")["value"].tolist() == [0]
    assert rows(figure, "loss of one answer")["label"].tolist() == ["always the mean: 2.5"]
    assert rows(figure, "interval").empty, "the last correlation is not defined"
    domains = [one["encoding"]["y"].get("scale", {}).get("domain") for one in layers(figure.spec)]
    assert [-1, 1] in domains
    assert [0, 1] not in domains
    assert "Validation correlation -0.25 at step 10" in figure.description
    assert "3 values that cannot be drawn left out" in figure.description


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_to_draw_is_a_sentence(name):
    assert any(text.startswith(("No ", "Not applicable")) for text in drawn_texts(EMPTY[name]))
    assert EMPTY["training"].description.startswith("No steps yet.")


def test_of_a_long_name_the_end_is_kept():
    assert drawable("runs/mrpc/checkpoint-1000", 12) == "…kpoint-1000"
    assert drawable("twelve signs", 12) == "twelve signs"
