"""A model written by hand, in which the function of every head is exact, gets the verdicts that its file states."""

import runpy

import numpy as np
import pytest

from attention_sieve.core.analysis import results
from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.copying.analysis import COPY_ANALYSIS
from attention_sieve.core.copying.finding import CopySettings
from attention_sieve.core.copying.published import second_copies
from attention_sieve.core.importance.analysis import IMPORTANCE_ANALYSIS
from attention_sieve.core.importance.passes.direct_path import logit_attribution
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import ablation_question
from attention_sieve.core.importance.settings import ImportanceSettings, MetricSettings
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.probe_texts.make import ProbeTextSettings, probe_texts
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import scores_question

BLOCK, N_TEXTS = 18, 10
"""Of tokens that are repeated: with gaps, four copies fit into the 128 positions."""
ROLES = ("previous", "duplicate", "induction", "sink")
LOOKS = {
    "previous": {(0, 0), (0, 5)},
    "duplicate": {(0, 2), (1, 4)},
    "induction": {(1, 0), (1, 1), (1, 3)},
    "sink": {(0, 3)},
}
"""The rulers L0 H1 and L1 H2, and the uniform heads L0 H4 and L1 H5, have none of these roles."""
COPIES, SUPPRESSES, FEEDS = (1, 0), (1, 3), (0, 0)


@pytest.fixture(scope="module")
def known(shared, tmp_path_factory):
    """The model, and texts of repeats with drawn gaps."""
    folder, written = tmp_path_factory.mktemp("known"), runpy.run_path(str(shared / "planted" / "known.py"))
    for part in (written["known"](), written["tokenizer"]()):
        part.save_pretrained(folder)
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    return checkpoint, probe_texts(checkpoint.tokenizer, ProbeTextSettings(number=N_TEXTS, block=BLOCK))


@pytest.fixture(scope="module")
def copied(known):
    return find(COPY_ANALYSIS, *known, CopySettings(resamples=200))


def heads_of(holds):
    return set(map(tuple, np.argwhere(holds).tolist()))


def test_heads_have_the_roles_that_were_written_into_them(known):
    checkpoint, texts = known
    found = role_scores(
        tuple(results(checkpoint, scores_question(ROLES), texts)), ScoreSettings(roles=ROLES, scale="share")
    )
    means = np.nanmean(found.scores, axis=0)
    assert {role: heads_of(of_role > 0.5) for role, of_role in zip(ROLES, means)} == LOOKS


def test_one_head_copies_one_suppresses_and_nothing_is_said_of_the_others(copied):
    assert heads_of(copied.columns["looks"]) == LOOKS["induction"]
    assert heads_of(copied.columns["writes"]) == {COPIES}
    signs = copied.answers.signs
    assert heads_of(np.isfinite(signs)) == {COPIES, SUPPRESSES}
    assert (signs[COPIES], signs[SUPPRESSES]) == (pytest.approx(1), pytest.approx(-1))
    assert heads_of(np.isfinite(copied.writes)) == {COPIES, SUPPRESSES}


def test_two_heads_matter(copied):
    assert heads_of(copied.columns["matters"]) == {FEEDS, COPIES}
    assert heads_of(np.abs(copied.effects.delta) > 1e-3) == {FEEDS, COPIES}


def test_the_copying_head_speaks_for_the_token_and_the_suppressing_one_against_it(known):
    checkpoint, texts = known
    settings = PassSettings("self")
    text = prepare(checkpoint, texts[0], settings)
    position = int(second_copies(text.queries.ids)[3])
    token = int(text.queries.ids[position + 1])
    parts = logit_attribution(checkpoint, text, settings, position, token).adds
    assert heads_of(parts.heads > 0.1) == {COPIES}
    assert heads_of(parts.heads < -0.1) == {SUPPRESSES}
    assert parts.heads[SUPPRESSES] == pytest.approx(-0.3 * parts.heads[COPIES], rel=1e-3)


@pytest.mark.parametrize("no_ablation", [False, True])
def test_slopes_are_marked_as_unreliable_where_softmax_and_prediction_are_saturated(known, no_ablation):
    checkpoint, texts = known
    settings = ImportanceSettings(metric_settings=MetricSettings(metric="lm"), resamples=200, no_ablation=no_ablation)
    finding = find(IMPORTANCE_ANALYSIS, checkpoint, tuple(map(LabelledText, texts[:2])), settings)
    unreliable = finding.unreliable["attribution against zero"]
    assert unreliable[FEEDS]
    assert not unreliable[[0, 0, 1], [1, 3, 2]].any(), "heads that write nothing matter to neither"
    assert "attribution against mean" not in finding.unreliable, "heads are replaced by zero"
    table = IMPORTANCE_ANALYSIS.table(finding)
    assert table["unreliable"].isna().sum() == (~table["measure"].isin(list(finding.unreliable))).sum()
    assert (table["exact"].notna() == table["unreliable"].fillna(False)).all()
    rows = table[(table["measure"] == "attribution against zero") & table["unreliable"].fillna(False)]
    exact = results(checkpoint, ablation_question("lm"), [texts[index] for index in finding.compared])
    rises = np.mean([outcome.without - outcome.full for outcome in exact], axis=0)[..., 0]
    assert rows["exact"].to_numpy() == pytest.approx(rises[unreliable], abs=1e-6)
