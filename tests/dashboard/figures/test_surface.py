import numpy as np
import pytest
from colours import contrast
from drawn import rows, texts_of
from surface_figures import DOES, EMPTY, FIGURES, HEADS, LAYERS, NAMES, ORDER, TEXTS, some_statistics

from attention_sieve.dashboard.figures.sheet import figure_svg
from attention_sieve.dashboard.figures.surface.function_grid import FUNCTIONS, USUAL, Function, function_grid
from attention_sieve.dashboard.figures.surface.head_dots import NOTHING
from attention_sieve.dashboard.figures.surface.scatter import LABELS, PANELS, entropy_panel, panels_of, share_scatter


@pytest.mark.parametrize("name", PANELS)
def test_every_head_has_a_dot_for_each_share_at_its_mean(name):
    statistics, panel = some_statistics(), PANELS[name]
    dots = rows(FIGURES[name], "dot")
    assert len(dots) == len(panel.shares) * LAYERS * HEADS
    for row in dots.itertuples():
        place = NAMES.index(panel.shares[int(row.series)])
        assert row.label == LABELS[NAMES[place]]
        assert row.value == statistics.mean[place, int(row.layer), int(row.head)]
        assert row.low == statistics.low[place, int(row.layer), int(row.head)]
        assert row.texts == TEXTS + place
        assert abs(row.place - row.layer) < 0.5


def test_layer_means_are_drawn_where_the_paper_has_them():
    means = rows(FIGURES["separator"], "mean")
    expected = some_statistics().mean[[NAMES.index(name) for name in PANELS["separator"].shares]].mean(axis=2)
    np.testing.assert_allclose(means.sort_values(["series", "layer"])["value"], expected.ravel())
    assert not len(rows(FIGURES["neighbours"], "mean"))


def test_dots_far_above_most_of_their_series_are_named_and_each_mean_stands_amid_its_dots():
    statistics = some_statistics()
    share = statistics.mean[NAMES.index("self")]
    share[:] = np.linspace(0.1, 0.2, share.size).reshape(share.shape)
    share[1, 2] = 0.9
    figure = share_scatter(statistics, PANELS["neighbours"], [])
    outliers = rows(figure, "outlier")
    assert outliers.loc[outliers["label"] == "the token itself", "name"].tolist() == ["L1 H2"]
    figure = FIGURES["separator"]
    dots = rows(figure, "dot").groupby(["series", "layer"])["place"].mean()
    means = rows(figure, "mean").set_index(["series", "layer"])["place"]
    np.testing.assert_allclose(means.sort_index().astype(float), dots.sort_index().astype(float))


def test_a_share_that_does_not_apply_is_said_and_leaves_the_others():
    figure = share_scatter(some_statistics(("cls", "sep")), PANELS["special tokens"], [])
    assert "[CLS]: not applicable." in figure.description
    assert set(rows(figure, "dot")["label"]) == {"first token", "punctuation"}
    assert not len(rows(figure, "note"))


def test_panels_hold_only_what_the_texts_have():
    decoder = panels_of(some_statistics(("cls", "sep", "sep from sep", "sep from others", "next")))
    assert {name: panel.shares for name, panel in decoder.items()} == {
        "special tokens": ("first", "punctuation"),
        "neighbours": ("previous", "self"),
    }
    assert decoder["special tokens"].title == "To the first token and punctuation"
    encoder = panels_of(some_statistics(("first",)))
    assert encoder["special tokens"].shares == ("cls", "sep", "punctuation")
    assert encoder["special tokens"].title == "To special tokens and punctuation"
    assert list(encoder) == list(PANELS)


def test_the_description_names_the_highest_head():
    random = some_statistics().mean[NAMES.index("self")]
    at = np.unravel_index(random.argmax(), random.shape)
    assert f"the token itself: {100 * random.mean():.3g}% on average" in FIGURES["neighbours"].description
    assert f"highest {100 * random.max():.3g}% for L{at[0]} H{at[1]}" in FIGURES["neighbours"].description


def test_the_line_of_uniform_attention_is_drawn_where_it_is_known():
    level = rows(FIGURES["entropy"], "level")
    assert level["value"].tolist() == [2.75, 2.75, 2.75, 2.75, 1.5, 1.5]
    assert level["place"].tolist() == [-0.5, 0.5, 0.5, 1.5, 1.5, 2.5]
    assert rows(FIGURES["entropy"], "level name")["label"].tolist() == ["uniform attention"]
    assert "Uniform attention: 1.5 to 2.75 nats." in FIGURES["entropy"].description
    same = entropy_panel(some_statistics(), "entropy", np.full(LAYERS, 2.0), 3.0, [])
    assert "Uniform attention: 2 nats." in same.description
    assert not len(rows(FIGURES["cls entropy"], "level"))


def test_panels_of_entropy_share_their_scale():
    ends = [FIGURES[name].spec["layer"][1]["encoding"]["y"]["scale"]["domain"] for name in ("entropy", "cls entropy")]
    assert ends == [[0, 3.24]] * 2


def test_gradients_keep_each_layer_and_name_the_ends():
    points = rows(FIGURES["gradients"], "point")
    assert points[points["label"] == "[SEP]"]["value"].tolist() == [3e-4, 2e-4, 1e-5]
    assert "[SEP]: highest 0.0003 in layer 0, lowest 1e-05 in layer 2." in FIGURES["gradients"].description


def test_heads_of_a_layer_stand_in_order_and_those_without_a_number_last():
    cells = rows(FIGURES["functions"], "cell").sort_values(["layer", "left"])
    found = cells.groupby("layer")["head"].apply(list)
    assert found.tolist() == [[1, 2, 0, 3], [0, 1, 2, 3], [2, 0, 1, 3]]


def test_each_head_keeps_its_column_unless_another_order_is_asked_for():
    figure = function_grid(DOES, ORDER, "confidence")
    cells = rows(figure, "cell")
    assert np.floor(cells["left"]).tolist() == cells["head"].tolist()
    drawn = texts_of(figure_svg(figure, title="t", caption=[]))
    assert {"heads of the layer", "0", "1", "2", "3"} <= set(drawn)
    assert "H3" not in drawn, "the column says it"


def test_a_head_with_several_functions_is_split_and_its_parts_fill_its_cell():
    parts = rows(FIGURES["functions"], "part")
    split = parts[parts["name"] == "L1 H3"]
    assert split["label"].tolist() == ["S nsubj", "R"]
    cell = rows(FIGURES["functions"], "cell").set_index("name").loc["L1 H3"]
    assert split["left"].iloc[0] == cell["left"]
    assert split["left"].iloc[1] == split["right"].iloc[0]
    assert split["right"].iloc[1] == pytest.approx(cell["right"])
    assert cell["does"] == "syntactic nsubj: by the sieve; rare tokens: 66% of texts"
    assert parts[parts["name"] == "L0 H1"]["label"].tolist() == ["P −1"]


def test_functions_are_counted_and_named():
    said = FIGURES["functions"].description
    assert "Of 12 heads 2 have a function." in said
    assert "positional (P) 1: L0 H1 (−1)" in said
    assert "rare tokens (R) 1: L1 H3." in said
    assert "Of 12 heads 0 have a function. positional (P) 0;" in FIGURES["no functions"].description


def test_only_the_kinds_that_were_looked_for_are_named():
    by_rule = {(2, 1): [Function("argmax", "dobj", "78%")]}
    asked = function_grid(by_rule, ORDER, "confidence", kinds=tuple(FUNCTIONS))
    assert "syntactic by argmax (D) 1: L2 H1 (dobj)" in asked.description
    assert "argmax" not in FIGURES["functions"].description
    domains = [
        figure.spec["layer"][1]["encoding"]["fill"]["scale"]["domain"] for figure in (asked, FIGURES["functions"])
    ]
    assert domains == [list(FUNCTIONS), list(USUAL)]


def test_every_function_has_its_own_letter_and_readable_ink():
    assert len({look.letter for look in FUNCTIONS.values()}) == len(FUNCTIONS)
    for look in FUNCTIONS.values():
        assert contrast(look.color, look.ink) >= 4.5


def test_nothing_to_draw_is_a_sentence_in_the_picture():
    for name in ("separator", "entropy"):
        assert NOTHING in texts_of(figure_svg(EMPTY[f"{name}, not applicable"], title="t", caption=[]))
    assert NOTHING in texts_of(figure_svg(FIGURES["no agreement"], title="t", caption=[]))


def test_letters_and_numbers_of_heads_are_written_where_they_fit():
    drawn = texts_of(figure_svg(FIGURES["functions"], title="t", caption=[]))
    assert {"P −1", "S nsubj", "R", "H3"} <= set(drawn)
    crowded = function_grid({(0, 5): DOES[0, 1]}, np.zeros((20, 24)), "confidence")
    drawn = texts_of(figure_svg(crowded, title="t", caption=[]))
    assert "P" in drawn
    assert not {"P −1", "H5"} & set(drawn)
