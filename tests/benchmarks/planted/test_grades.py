from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from benchmarks.findings import planted as findings
from benchmarks.planted.grades.asked import DECODER, EVERYWHERE, Tokens, after_copies, measured, truth_of
from benchmarks.planted.grades.model import grade_all
from benchmarks.planted.grades.ranks import auroc, idle, is_nothing, is_opposite
from benchmarks.planted.grades.rates import mean_over, rate, rate_of
from benchmarks.planted.grades.records import MeasureValues, ModelGrades, Statement
from benchmarks.planted.grades.scores import Scored, by_measure, singly, together
from benchmarks.planted.grades.texts import RELATION, tree
from benchmarks.planted.models import made, save, spec_named
from benchmarks.planted.truth import Backup, Effects, HeadTruth, SetEffect, Task, Truth

LOOKS = (("previous", "ruler", "induction"), ("induction", "induction", "uniform"))
TRUTH = Truth(
    name="made",
    seed=0,
    host="gpt2",
    family="made",
    noise="none",
    heads=tuple(
        HeadTruth(layer, head, looks_at, {"previous": 1, "ruler": 17}.get(looks_at, 0), "token", False)
        for layer, row in enumerate(LOOKS)
        for head, looks_at in enumerate(row)
    ),
    task=Task("next token", ((0, 1),), ((0,),), ((1,),)),
    needed=((0, 0),),
    harmful=((0, 1),),
    redundant_sets=(((1, 0), (1, 1)),),
    backups=(),
    effects=Effects(0.1, ((2.0, -0.5, 0.0), (0.0, 0.0, 0.0)), (SetEffect(((1, 0), (1, 1)), 4.0),)),
)
INDUCTION = next(asked for asked in DECODER if asked.states == "induction" and not asked.decides_alone)
AT_A_PERIOD = next(asked for asked in DECODER if asked.states == "induction" and asked.decides_alone)


def stated(verdict, truth, about="claim"):
    return Statement(about, "induction", "probe texts", 0, 0, truth, verdict)


def graded(*statements, truth=TRUTH):
    return ModelGrades(truth, statements, (), (), (), None, 1.0)


@pytest.mark.parametrize(
    ("verdict", "truth", "outcome"),
    [
        ("yes", True, "right"),
        ("no", False, "right"),
        ("yes", False, "wrong"),
        ("no", True, "wrong"),
        ("not enough", True, "not enough"),
        ("yes", None, "not graded"),
    ],
)
def test_a_verdict_against_the_truth_is_wrong(verdict, truth, outcome):
    assert stated(verdict, truth).outcome == outcome


def test_false_statements_are_counted_of_graded_ones_alone():
    models = [graded(stated("yes", False), stated("yes", None), stated("yes", True)), graded(stated("no", False))]
    found = rate_of(models, lambda each: each.truth is not None, lambda each: each.outcome == "wrong")
    assert (found.found, found.of, found.models_with, found.models) == (1, 3, 1, 2)


def test_the_interval_of_a_rate_is_clopper_and_pearsons():
    found, exact = rate([(1, 10), (2, 20)]), binomtest(3, 30).proportion_ci(method="exact")
    assert (found.low, found.high) == (exact.low, exact.high)
    assert found.share == 0.1


def test_the_interval_over_models_is_wider_where_errors_stand_in_one_model():
    found = rate([(20, 20), *[(0, 20)] * 19])
    assert found.high_over_models - found.low_over_models > found.high - found.low


def test_the_rate_of_nothing_is_unknown():
    assert np.isnan([rate([(0, 0)]).share, rate([]).low, mean_over([np.nan]).value]).all()


def test_auroc_is_that_of_scikit_learn_with_ties():
    random = np.random.default_rng(0)
    values, labels = random.integers(5, size=40).tolist(), (random.random(40) < 0.4).tolist()
    assert auroc(values, labels) == pytest.approx(roc_auc_score(labels, values), abs=1e-12)
    assert np.isnan(auroc([1.0, 2.0], [True, True]))


def test_an_estimate_of_the_wrong_sign_is_opposite_and_a_tiny_one_says_nothing():
    values, exact = ((-1.0, 5.0), (0.01, -3.0)), np.array([[2.0, 1.0], [1.0, 0.0]])
    assert is_opposite(values, exact).tolist() == [[True, False], [False, False]]
    assert is_nothing(values).tolist() == [[False, False], [True, False]]
    assert is_nothing(((0.0, 1e-12),)).all()


def test_heads_of_redundant_sets_and_harmful_ones_are_not_idle():
    assert idle(TRUTH) == [(0, 2), (1, 2)]


def test_a_ruler_is_no_induction_head_though_it_looks_as_one():
    ruler = TRUTH.heads[1]
    assert truth_of(AT_A_PERIOD, ruler, TRUTH, True) is False
    assert truth_of(INDUCTION, ruler, TRUTH, True) is None
    assert truth_of(INDUCTION, ruler, TRUTH, False) is False


def test_a_backup_is_what_it_is_designed_for_only_without_its_main_head():
    heads = tuple(replace(head, looks_at="backup") if head.place == (1, 0) else head for head in TRUTH.heads)
    truth = replace(TRUTH, heads=heads, backups=(Backup((0, 2), (1, 0)),))
    backup = truth.heads[3]
    assert truth_of(INDUCTION, backup, truth, False) is False
    assert truth_of(INDUCTION, backup, truth, True) is None
    assert truth_of(INDUCTION, backup, truth, True, ((0, 2),)) is True


def test_attention_above_chance_is_measured_where_a_role_looks():
    ids = np.array([[0, 5, 6, 5, 7]])
    tokens = Tokens(ids, ids == 0, (("<s>", "a", "b", "a", "c"),), np.zeros_like(ids), is_causal=True)
    assert np.argwhere(after_copies(tokens)[0]).tolist() == [[3, 2]]
    attention = np.zeros((1, 1, 2, 5, 5))
    attention[0, 0, 0, 3, 2] = 1
    attention[0, 0, 1, 3, :4] = 0.25
    found = measured(attention, tokens, INDUCTION)
    assert found.share.tolist() == [[1, 0]]
    assert found.times.tolist() == [[4, 1]]


def test_the_previous_role_is_measured_over_tokens_that_have_one_before():
    ids = np.array([[0, 5, 6]])
    tokens = Tokens(ids, ids == 0, (("<s>", "a", "b"),), np.zeros_like(ids), is_causal=True)
    previous = next(asked for asked in EVERYWHERE if asked.states == "previous")
    attention = np.zeros((1, 1, 1, 3, 3))
    attention[..., [1, 2], [0, 1]] = 1
    assert measured(attention, tokens, previous).share == pytest.approx(1)


def test_an_auxiliary_depends_on_the_verb_of_its_class():
    heads = tree(("noun1", "verb3a", "verb5b", "noun2", "aux3", "verb3a"))
    assert heads == [(0, "root"), (1, "dep"), (1, "dep"), (1, "dep"), (2, RELATION), (1, "dep")]


def test_a_measure_is_graded_by_sign_and_on_sets():
    scored = [Scored(TRUTH, ((1.0, 1.0, 0.0), (0.0, 0.0, 0.0)), is_signed=True)]
    alone, sets = singly(scored), together(scored)
    assert (alone.opposite.found, alone.opposite.of) == (1, 2)
    assert (alone.missed.found, alone.missed.of) == (0, 1)
    assert (sets.told.found, sets.told.of, sets.redundant.value) == (0, 1, 0.5)
    assert np.isnan(alone.auroc.value)  # a model with a redundant set says nothing of heads alone


def test_a_measure_without_a_sign_is_not_graded_by_it():
    assert singly([Scored(TRUTH, ((1.0, 1.0, 0.0), (0.0, 0.0, 0.0)), is_signed=False)]).opposite.of == 0


def test_the_page_says_which_statements_are_wrong(capsys):
    values = MeasureValues("ablation", TRUTH.effects.single, is_signed=True)
    model = replace(graded(stated("yes", False), stated("no", True)), measures=(values,))
    findings.report_statements([model])
    findings.report_wrong([model])
    findings.report_importance([model])
    printed = capsys.readouterr().out
    assert "| 0 of 1: 0.0000 [0.0000, 0.9750] |" in printed
    assert "| low | claim | induction | probe texts | yes | previous | 1 | 1 | made L0 H0 |" in printed
    assert "| ablation | none | 0 | 0 of 1 (0%) | 0 of 2 (0%) | 0 of 2 (0%) |" in printed


def test_a_planted_model_is_graded_from_its_folder(tmp_path):
    name = "gpt2-previous-none-001"
    save(*made(spec_named(name)), tmp_path / "models" / name)
    grade_all([tmp_path / "models" / name], tmp_path / "grades")
    grades = ModelGrades.read(tmp_path / "grades" / f"{name}.json")
    claims = [statement for statement in grades.statements if statement.about == "claim"]
    assert len(claims) >= 8 * len(grades.truth.heads)
    assert {statement.outcome for statement in claims} <= {"right", "not graded"}
    assert any(statement.truth and statement.verdict == "yes" for statement in claims)
    (ablation,) = by_measure([grades])["ablation"]
    assert np.allclose(ablation.values, grades.truth.effects.single, atol=1e-3)
    assert grades.direct.greatest_difference < 1e-3 < grades.direct.greatest
