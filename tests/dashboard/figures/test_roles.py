import io
import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from drawn import drawn_texts, rows, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pyarrow import parquet
from role_figures import COUNTED, FIGURES, HEADS, LAYERS, NOTHING, SCORED, SCORES, TEXTS, UNIFORM, one_head, verdicts
from scipy import stats

from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.roles.uncertainty.sensitivity import counts_by_tau, counts_by_texts
from attention_sieve.core.statistics.series import SCORE_BINS, counts_of
from attention_sieve.dashboard.figures.figure import MOST_MARKS
from attention_sieve.dashboard.figures.roles.chance import OWN, chance_strip
from attention_sieve.dashboard.figures.roles.densities import HALF_WIDTH, density, outline, places_of
from attention_sieve.dashboard.figures.roles.distributions import Violins, head_scores, score_violins
from attention_sieve.dashboard.figures.roles.evidence import evidence_by_texts
from attention_sieve.dashboard.figures.roles.from_counts import density_violins
from attention_sieve.dashboard.figures.roles.layers import SEVERAL, heads_per_layer
from attention_sieve.dashboard.figures.roles.p_values import p_value_against_score, p_value_scatter
from attention_sieve.dashboard.figures.roles.parts import scores_by_part
from attention_sieve.dashboard.figures.roles.sensitivity import heads_by_tau, heads_by_texts
from attention_sieve.dashboard.figures.sheet import figure_svg, svg_png, table_csv, table_parquet

HOSTILE = ("<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "a\x00b & \"c\" 'd'", "=1+1")


def of_role(table: pd.DataFrame, role: str) -> pd.DataFrame:
    return table[table["role"] == role]


def test_bars_count_the_heads_that_hold_each_role():
    tests = verdicts()
    counts = {(row.role, row.layer): row.heads for row in heads_per_layer(tests, COARSE_ROLES).data.itertuples()}
    for role in COARSE_ROLES:
        for layer in range(LAYERS):
            heads = [head for head in range(HEADS) if tests.holds[ROLES.index(role), layer, head]]
            assert counts[role, layer] == len(heads)
    for layer in range(LAYERS):
        held = [sum(tests.holds[:4, layer, head]) for head in range(HEADS)]
        assert counts[SEVERAL, layer] == sum(number >= 2 for number in held)
    assert any(counts.values())


def test_a_full_layer_stays_below_the_next_row_of_bars():
    full = verdicts(np.full_like(SCORES, 5.0))
    bars = heads_per_layer(full, COARSE_ROLES).data
    assert set(bars["heads"]) == {HEADS}
    assert (bars["top"] < bars["base"] + 1).all()
    assert sorted(set(bars["base"])) == [0, 1, 2, 3, 4]


def test_finer_roles_do_not_make_a_head_multi_functional():
    scores = np.full_like(SCORES, 0.5)
    scores[:, [ROLES.index("delimiter"), ROLES.index("delimiter:cls")]] = 5.0
    figure = heads_per_layer(verdicts(scores), ROLES)
    bars = figure.data.set_index("role")["heads"]
    assert bars["delimiter"].sum() == bars["delimiter:cls"].sum() == LAYERS * HEADS
    assert bars[SEVERAL].sum() == 0


def test_the_strip_draws_every_count_and_the_mean_and_range_over_seeds():
    figure = chance_strip(COUNTED, LAYERS * HEADS)
    drawn = figure.data.drop_duplicates(["role", "control"]).set_index(["role", "control"])
    for role, counts in COUNTED.items():
        for control, heads in counts.items():
            row = drawn.loc[(role, control)]
            assert (row["heads"], row["low"], row["high"]) == (np.mean(heads), min(heads), max(heads))
    assert set(rows(figure, "own")["control"]) == {OWN}
    assert "local 3 (this checkpoint), 0 (permuted keys), 4 (shuffled words), 1.0 (0 to 2)" in figure.description
    assert "delimiter 12 (this checkpoint), 0 (permuted keys), 12 (shuffled words), 1 (random" in figure.description


def test_the_heads_that_hold_rare_roles_are_named_first_and_no_two_names_overlap():
    tests = verdicts(correction="none")
    names = rows(p_value_against_score(tests, COARSE_ROLES), "name")
    counts = {role: int(tests.holds[ROLES.index(role)].sum()) for role in COARSE_ROLES}
    assert names["holds"].all()
    assert names["role"].iloc[0] == min((role for role in counts if counts[role]), key=counts.get)
    places = np.column_stack([np.log1p(names["mean"]) / np.log1p(names["mean"].max()), names["evidence"] / 16])
    apart = np.abs(places[:, None] - places).astype(float)
    overlapping = (apart < (0.05, 0.04)).all(axis=2)
    assert overlapping.sum() == len(names), "each with itself alone"


@pytest.mark.parametrize("draw", [p_value_scatter, p_value_against_score])
def test_every_test_with_a_p_value_is_a_point(draw):
    tests = verdicts()
    figure = draw(tests, COARSE_ROLES)
    points = rows(figure, "test")
    assert len(points) == 4 * LAYERS * HEADS - 1  # one score is constant
    for row in points.itertuples():
        layer, head = (int(part[1:]) for part in row.name.split())
        place = ROLES.index(row.role), layer, head
        assert (row.p, row.p_adjusted, row.mean, row.holds) == (
            tests.p[place],
            tests.p_adjusted[place],
            tests.mean[place],
            tests.holds[place],
        )
    assert "47 p-values" in figure.description
    assert "1 test without a p-value left out" in figure.description


def test_points_stand_in_the_order_of_the_heads():
    points = rows(p_value_scatter(verdicts(), COARSE_ROLES), "test")
    layer_head = points["name"].str.extract(r"L(\d+) H(\d+)").astype(int)
    assert (points["number"].round().astype(int) == layer_head[0] * HEADS + layer_head[1]).all()
    assert points["number"].is_monotonic_increasing


def test_the_histogram_counts_every_point_once_and_alpha_is_drawn():
    tests = verdicts(alpha=0.1)
    figure = p_value_scatter(tests, COARSE_ROLES)
    assert rows(figure, "alpha")[["value", "label"]].values.tolist() == [[0.1, "alpha 0.1"]]
    bars, p = rows(figure, "bin"), tests.p[:4]
    assert f"{(p < 0.1).sum()} below alpha 0.1, {(p > 0.9).sum()} above 0.9" in figure.description
    for role, number in bars.groupby("role")["tests"].sum().items():
        assert number == np.isfinite(p[ROLES.index(role)]).sum()
    expected = Counter(min(int(value * 20), 19) for value in p[np.isfinite(p)])
    totals = {round(row.p_middle * 20 - 0.5): row.total for row in rows(figure, "total").itertuples()}
    assert totals == expected
    unit = (bars["right"] - bars["left"]) / bars["tests"]
    assert unit.iloc[0] > 0
    assert np.allclose(unit, unit.iloc[0])
    for row in rows(figure, "total").itertuples():
        assert row.left == pytest.approx(bars["left"].min() + unit.iloc[0] * row.total)
    assert bars["left"].min() > LAYERS * HEADS - 0.5


def test_evidence_is_minus_log10_p_up_to_16():
    scores = SCORES.copy()
    scores[:, 0, 1, 1] = 500 + np.arange(TEXTS)
    tests = verdicts(scores)
    figure = p_value_against_score(tests, COARSE_ROLES)
    points = rows(figure, "test")
    assert tests.p[0, 1, 1] < 1e-16
    assert points["evidence"].max() == 16
    below = points[points["evidence"] < 16]
    assert np.allclose(10.0 ** -below["evidence"].to_numpy(dtype=float), below["p"].to_numpy(dtype=float))
    capped = (points["p"] <= 1e-16).sum()
    assert f"{capped} p-value" in figure.description
    assert "of 1e-16 or less drawn at 16" in figure.description
    assert rows(figure, "alpha")["value"].item() == pytest.approx(1.30103, abs=1e-5)


def test_density_of_two_scores_by_hand():
    # log(1 + score) is 2 and 4: standard deviation sqrt(2), Scott's factor 2 ** -0.2.
    places, heights = density(np.expm1([2.0, 4.0]))
    width = 2**0.5 * 2**-0.2
    middle = np.exp(-0.5 * (1 / width) ** 2) / (width * (2 * np.pi) ** 0.5)
    folded = np.exp(-0.5 * (5 / width) ** 2) / (width * (2 * np.pi) ** 0.5) / 2
    folded += np.exp(-0.5 * (7 / width) ** 2) / (width * (2 * np.pi) ** 0.5) / 2
    assert np.interp(3.0, places, heights) == pytest.approx(middle + folded, rel=0.01)


@given(st.sampled_from(["score", "share"]), st.lists(st.floats(0, 1), min_size=2, max_size=40))
@settings(max_examples=60)
def test_density_has_area_one_and_ends_where_scores_do(scale, parts):
    values = np.array(parts) * 1000 if scale == "score" else np.array(parts) * 5 - 4
    found = density(values, scale)
    if found is None:
        assert places_of(values, scale).std() <= 1e-6
    else:
        places, heights = found
        assert places[0] >= 0 if scale == "score" else places[-1] <= 1
        assert np.trapezoid(heights, places) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("scale", ["score", "share"])
def test_density_is_scipys_away_from_the_end_of_the_scale(scale):
    random = np.random.default_rng(3)
    values = random.gamma(20, 2, 500) if scale == "score" else random.normal(-0.2, 0.1, 500)
    places, heights = density(values, scale)
    expected = stats.gaussian_kde(places_of(values, scale))(places)
    assert np.allclose(heights, expected, atol=0.003 * expected.max())


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 3.0], [3.0, 3.0 + 1e-9], [0.0, 0.0]])
def test_what_does_not_vary_has_no_density(values):
    assert density(np.array(values)) is None
    assert len(outline(np.array(values))[0]) == 0


def test_a_shape_ends_at_the_outermost_scores_and_fits_its_place():
    values = np.array([0.0, 0.5, 2.0, 2.5, 40.0])
    scores, reach = outline(values)
    assert scores[0] == 0
    assert 35 < scores[-1] <= 40
    assert reach.max() == HALF_WIDTH
    assert reach.min() > 0


def violins_of(scores, role, tau, layer=None):
    index = ROLES.index(role)
    return score_violins(scores[:, index], Violins(role, layer), tau, UNIFORM[index])


def test_violins_hold_every_score_of_their_layer():
    figure = violins_of(SCORES, "syntactic", 3.0)
    middles = rows(figure, "middle").set_index("place")
    for layer in range(LAYERS):
        values = SCORES[3:, ROLES.index("syntactic"), layer].ravel()
        assert middles.loc[layer, "scores"] == values.size == 12 * HEADS
        assert middles.loc[layer, "median"] == np.median(values)
        assert middles.loc[layer, "low"] == np.percentile(values, 25)
        assert middles.loc[layer, "high"] == np.percentile(values, 75)
    medians = middles["median"]
    assert f"highest median is {medians.max():.3g} in layer {int(medians.idxmax())}" in figure.description
    above = 100 * np.mean(SCORES[3:, 1] > 3)
    assert f"{above:.0f}% of the scores are above tau 3" in figure.description
    assert f"{12 * LAYERS * HEADS} scores" in figure.description


def test_violins_of_one_layer_stand_by_head():
    figure = violins_of(SCORES, "local", 3.0, layer=0)
    middles = rows(figure, "middle").set_index("place")
    assert list(middles.index) == list(range(HEADS))
    assert middles.loc[2, "median"] == np.median(SCORES[:, 0, 0, 2])
    assert set(rows(figure, "shape")["place"]) == {0, 2, 3}, "a constant score is a dot"
    assert middles.loc[1, ["low", "median", "high"]].tolist() == [5, 5, 5]


def test_a_layer_without_scores_is_named():
    scores = SCORES.copy()
    scores[:, 0, 1] = np.nan
    figure = violins_of(scores, "local", 3.0)
    assert "Without scores: layer 1." in figure.description
    assert set(rows(figure, "middle")["place"]) == {0, 2}


@pytest.mark.parametrize(
    ("tau", "labels"),
    [
        (3.0, {"upper": ["tau 3"], "lower": ["uniform 1"]}),
        (0.5, {"upper": ["uniform 1"], "lower": ["tau 0.5"]}),
        (1.0, {"upper": ["tau 1, uniform"], "lower": []}),
    ],
)
def test_tau_and_uniform_are_labelled_apart(tau, labels):
    figure = violins_of(SCORES, "local", tau)
    assert {side: rows(figure, side)["label"].tolist() for side in labels} == labels
    assert rows(figure, "tau")["value"].item() == tau
    assert rows(figure, "uniform")["value"].item() == 1


def test_block_weighted_with_entropy_has_a_line_of_uniform_attention_of_its_own():
    figure = violins_of(SCORES, "block", 3.0)
    assert rows(figure, "uniform")["value"].item() == 3.25
    assert rows(figure, "upper")["label"].tolist() == ["uniform 3.25"]
    assert "(uniform attention: 3.25)" in figure.description
    of_head = head_scores(one_head(SCORES, verdicts(), 2, 3, UNIFORM[:, 2]))
    lines = rows(of_head, "uniform").set_index("role")["value"].to_dict()
    assert lines == {role: 3.25 if role == "block" else 1.0 for role in ROLES}


def test_one_head_shows_each_text_its_mean_its_interval_and_this_text():
    tests = verdicts()
    figure = head_scores(one_head(SCORES, tests, 2, 3, UNIFORM[:, 2], here={"local": 2.5, "block": float("nan")}))
    for place, role in enumerate(ROLES):
        there = SCORES[:, place, 2, 3]
        dots = of_role(rows(figure, "dot"), role)["score"]
        assert dots.tolist() == there[~np.isnan(there)].tolist()
        mean = of_role(rows(figure, "interval"), role).iloc[0]
        assert (mean["mean"], mean["low"], mean["high"]) == (
            tests.mean[place, 2, 3],
            tests.low[place, 2, 3],
            tests.high[place, 2, 3],
        )
    assert rows(figure, "here")[["role", "score"]].values.tolist() == [["local", 2.5]]
    assert f"local {tests.mean[0, 2, 3]:.3g} (this text 2.5)" in figure.description
    assert "95% intervals" in figure.description


def test_many_texts_are_shapes_without_dots_and_description_and_legend_say_so():
    of_few = one_head(SCORES, verdicts(), 2, 3, UNIFORM[:, 2], here={"local": 2.5})
    many = np.tile(SCORES, (20, 1, 1, 1, 1)).reshape(-1, *SCORES.shape[1:])
    few, figure = head_scores(of_few), head_scores(one_head(many, verdicts(many), 2, 3, UNIFORM[:, 2]))
    assert rows(figure, "dot").empty
    assert not rows(figure, "shape").empty
    assert "not drawn, because there are more than 2,000" in figure.description
    assert {"how often a score occurs", "a text", "mean", "interval of the mean", "this text"} <= set(drawn_texts(few))
    assert {"a text", "this text"}.isdisjoint(drawn_texts(figure))


def test_a_role_without_texts_says_so_instead_of_a_shape():
    scores = SCORES.copy()
    scores[:, 3] = np.nan
    figure = head_scores(one_head(scores, verdicts(scores), 0, 0, UNIFORM[:, 0]))
    assert rows(figure, "none")["role"].tolist() == ["block"]
    assert "Not applicable here: block." in figure.description


@pytest.mark.parametrize("name", FIGURES[", nothing scored"])
def test_nothing_scored_is_a_sentence(name):
    figure = FIGURES[", nothing scored"][name]
    drawn = texts_of(figure_svg(figure, title="t", caption=[]))
    assert figure.description.endswith(".")
    if not {"bar", "count"} & set(figure.data["kind"]):  # these show that no head holds a role
        assert any(re.search("not apply to any text|applies to no text|^no te", text, re.I) for text in drawn)


def test_hostile_words_stay_words():
    figure = FIGURES[""]["layers"]
    svg = figure_svg(figure, title=HOSTILE[0], caption=HOSTILE[1:])
    drawn = texts_of(svg)
    assert HOSTILE[0] in drawn
    assert HOSTILE[1] in drawn
    assert "a�b & \"c\" 'd'" in drawn
    assert "<img" not in svg
    assert "<script" not in svg


def test_a_png_is_white_and_has_the_size_asked_for():
    figure = FIGURES[""]["scores by layer"]
    image = Image.open(
        io.BytesIO(svg_png(figure_svg(figure, title="t", caption=[]), "Rôles", {"tau": "3", "rule": "role"}))
    )
    assert image.text == {"Title": "Rôles", "Description": "tau: 3\nrule: role"}
    assert image.width == pytest.approx(6.9 * 300, abs=2)
    assert image.convert("RGBA").getpixel((1, 1)) == (255, 255, 255, 255)


TABLE = pd.DataFrame(
    {
        "text": ["plain", "=SUM(A1)", "+1", "-1", "@x", 'say "so", then\nleave', "\tx"],
        "score": [-1.5, 0.1 + 0.2, np.nan, 1e-300, 2.0, 3.0, 4.0],
        "head": [-1, 0, 1, 2, 3, 4, 5],
    }
)
FACTS = {"checkpoint": "bundled", "tau": "3", "note": "=cmd()"}


def test_csv_keeps_numbers_and_defuses_formulas():
    back = pd.read_csv(io.BytesIO(table_csv(TABLE, FACTS)))
    assert list(back.columns) == [*TABLE.columns, *FACTS]
    assert back["score"].tolist()[:2] == [-1.5, 0.1 + 0.2]
    assert back["head"].tolist() == TABLE["head"].tolist()
    assert back["text"].tolist() == ["plain", "'=SUM(A1)", "'+1", "'-1", "'@x", 'say "so", then\nleave', "'\tx"]
    assert set(back["note"]) == {"'=cmd()"}
    assert set(back["checkpoint"]) == {"bundled"}
    assert table_csv(TABLE[:0], FACTS) == b"text,score,head,checkpoint,tau,note\n"


def test_csv_refuses_provenance_that_hides_a_column():
    with pytest.raises(ValueError, match="both have a column 'score'"):
        table_csv(TABLE, {"score": "3"})


def test_parquet_keeps_the_table_and_carries_the_provenance():
    file = table_parquet(TABLE, FACTS)
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(file)), TABLE)
    metadata = parquet.read_schema(io.BytesIO(file)).metadata
    assert json.loads(metadata[b"provenance"]) == FACTS


def test_counts_by_tau_mark_the_readers_and_say_the_counts_there():
    counts = counts_by_tau(SCORED, COARSE_ROLES, Criterion(tau=2.2))
    figure = heads_by_tau(counts, COARSE_ROLES, 2.2, LAYERS * HEADS)
    drawn = rows(figure, "count")
    assert len(drawn) == len(counts.taus) * len(COARSE_ROLES)
    at = drawn[drawn["tau"] == 2.2].set_index("role")["heads"].to_dict()
    assert at == dict(zip(COARSE_ROLES, counts.heads[counts.taus.index(2.2)].tolist()))
    assert rows(figure, "tau")["label"].tolist() == ["tau 2.2"]
    assert f"At tau 2.2: local {at['local']:g}, syntactic {at['syntactic']:g}" in figure.description


def test_counts_by_texts_are_a_line_and_a_band_for_each_role():
    counts = counts_by_texts(SCORED, COARSE_ROLES, Criterion())
    figure = heads_by_texts(counts, COARSE_ROLES, LAYERS * HEADS)
    drawn = rows(figure, "count")
    assert drawn["texts"].unique().tolist() == list(counts.sizes) == [5, 10, TEXTS]
    for name in ("low", "median", "high"):
        np.testing.assert_array_equal(drawn[name].to_numpy().reshape(-1, len(COARSE_ROLES)), getattr(counts, name))
    assert f"over {TEXTS} texts local {counts.low[-1, 0]:g} to {counts.high[-1, 0]:g}" in figure.description


def test_evidence_by_texts_starts_at_even_odds_and_follows_the_path_on_a_scale_of_tens():
    path = np.log([[2.0, np.nan, 0.5], [34.0, np.nan, 1.0]])
    figure = evidence_by_texts(path, ("local", "block", "delimiter"), (np.log(20), np.log(240)), 0.05, "L1 H2")
    drawn = rows(figure, "evidence")
    assert set(drawn["role"]) == {"local", "delimiter"}, "no text takes part in block"
    local = drawn[drawn["role"] == "local"]
    assert local["texts"].tolist() == [0, 1, 2]
    np.testing.assert_allclose(local["value"].astype(float), np.log10([1, 2, 34]), atol=1e-12)
    assert local["odds"].tolist() == ["1 : 1", "2 : 1", "34 : 1"]
    needed = rows(figure, "needed")
    np.testing.assert_allclose(needed["value"].astype(float), np.log10([20, 240]))
    assert needed["label"].tolist() == ["20 : 1 (1 / alpha, 0.05)", "240 : 1 (always enough)"]
    assert "Now: local 34 : 1, delimiter 1 : 1." in figure.description
    single = evidence_by_texts(path, ("local", "block", "delimiter"), (np.log(20), np.log(20)), 0.05, "L1 H2")
    assert len(rows(single, "needed")) == 1
    many = evidence_by_texts(np.zeros((MOST_MARKS, 1)), ("local",), (np.log(20), np.log(240)), 0.05, "L1 H2")
    assert rows(many, "point").empty
    assert len(rows(many, "evidence")) == MOST_MARKS + 1


def test_densities_from_histograms_stand_where_those_of_the_scores_do():
    counts = counts_of(SCORES, SCORE_BINS)[ROLES.index("delimiter")]
    whole = violins_of(SCORES, "delimiter", 3.0).data
    binned = density_violins(counts, SCORE_BINS, Violins("delimiter"), 3.0, np.ones(LAYERS)).data
    for name in ("low", "median", "high"):
        one, other = (data.loc[data["kind"] == "middle", name].to_numpy(float) for data in (whole, binned))
        np.testing.assert_allclose(one, other, rtol=0.06, atol=0.05)
    assert binned.loc[binned["kind"] == "middle", "scores"].tolist() == [TEXTS * HEADS] * LAYERS
    shape = binned[binned["kind"] == "shape"]
    assert (shape["right"] - shape["place"]).max() == pytest.approx(0.42)


def test_parts_stand_one_above_the_other_with_their_intervals():
    tests = verdicts()
    figure = scores_by_part({"all texts": tests, "length 1 to 8": verdicts(SCORES[:5])}, "local", (0, 1), "score")
    means = rows(figure, "mean")
    assert means["part"].tolist() == ["all texts", "length 1 to 8"]
    assert means["mean"].tolist() == [5.0, 5.0]
    assert "all texts 5 (15 texts)" in figure.description
    nothing = scores_by_part({"all texts": verdicts(NOTHING)}, "local", (0, 1), "score")
    assert nothing.description == "This role does not apply to any text."
