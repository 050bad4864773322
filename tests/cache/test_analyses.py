"""Every analysis of core through the cache: what is kept is what core finds, and neither parser nor pass runs again."""

import numpy as np
import pandas as pd
import pytest
from parses import unparsed
from sessions import anew

from attention_sieve.cache.answers import Engine, FindingRequest
from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.copying.analysis import COPY_ANALYSIS
from attention_sieve.core.copying.finding import CopySettings
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.errors import AnalysisError, EveryTextTooLong
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS, IMPORTANCE_ANALYSIS, SINGLE_HEAD_ANALYSIS
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import AblationSettings, ImportanceSettings
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.settings import RelationSettings
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.sinks import SINK_ANALYSIS, SinkSettings
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.surface.analysis import GRADIENT_ANALYSIS, SURFACE_ANALYSIS
from attention_sieve.core.texts.text import Text, read_typed
from attention_sieve.core.word_links.analysis import WORD_LINK_ANALYSIS, WordLinkSettings
from attention_sieve.core.word_links.pattern import Pattern

TEXTS = (
    *read_typed("The black cat sat on the red mat.\nA dog ran where it sat ||| She eats red apples."),
    Text(("He saw her",), (("He", "saw", "her"),), ((2, 0, 2),), (("nsubj", "root", "obj"),), document="a"),
)
LONG = Text(("she ate apples " * 30,))
ALL_CASES = RelationSettings(least_cases=1)
MENTIONS = read_mentions(
    b"""{"words": ["Bo", "ate", ";", "he", "sat"], "clusters": [[[0, 1], [3, 4]]]}
{"words": ["the", "cat", "ran", "where", "it", "sat"], "clusters": [[[1, 2], [4, 5]]]}"""
)
WITHOUT_LABELS = tuple(map(LabelledText, TEXTS))
OF_LABELLED = (ABLATION_ANALYSIS, SINGLE_HEAD_ANALYSIS, BACKUP_ANALYSIS, IMPORTANCE_ANALYSIS)
"""Those whose inputs may have labels; small differences of outputs are rounded more than shares of attention."""
CASES = {
    ROLE_ANALYSIS: (TEXTS, ROLE_ANALYSIS.settings),
    SINK_ANALYSIS: (TEXTS, SinkSettings(tokens=8)),
    COPY_ANALYSIS: (TEXTS, CopySettings(resamples=500)),
    SURFACE_ANALYSIS: (TEXTS, SURFACE_ANALYSIS.settings),
    GRADIENT_ANALYSIS: (TEXTS, GRADIENT_ANALYSIS.settings),
    RELATION_ANALYSIS: (TEXTS, ALL_CASES),
    COREFERENCE_ANALYSIS: (MENTIONS, COREFERENCE_ANALYSIS.settings),
    SIMILARITY_ANALYSIS: (TEXTS, SIMILARITY_ANALYSIS.settings),
    WORD_LINK_ANALYSIS: (TEXTS, WORD_LINK_ANALYSIS.settings),
    ABLATION_ANALYSIS: (WITHOUT_LABELS, AblationSettings(replace="mean")),
    SINGLE_HEAD_ANALYSIS: (WITHOUT_LABELS, SINGLE_HEAD_ANALYSIS.settings),
    BACKUP_ANALYSIS: (WITHOUT_LABELS, BACKUP_ANALYSIS.settings),
    IMPORTANCE_ANALYSIS: (WITHOUT_LABELS, ImportanceSettings(normalise=True)),
}
"""Inputs of each analysis, and settings under which so few have a table."""
each_analysis = pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)


@pytest.fixture
def checkpoint_for(guessing, writing):
    """checkpoint_for(analysis) -> folder of one for which it makes sense."""
    return lambda analysis: str(writing if analysis in (SINK_ANALYSIS, COPY_ANALYSIS) else guessing)


@pytest.fixture
def request_of(checkpoint_for):
    def made(analysis, inputs=None, settings=None, pass_settings=None, folder=None):
        usual_inputs, usual_settings = CASES[analysis]
        engine = Engine(find_checkpoint(str(folder or checkpoint_for(analysis))), "cpu")
        return FindingRequest(
            engine, analysis, inputs or usual_inputs, settings or usual_settings, pass_settings or engine.settings(None)
        )

    return made


def rounding(analysis):
    return 1e-3 if analysis in (*OF_LABELLED, COPY_ANALYSIS) else 1e-4


@each_analysis
def test_what_is_kept_is_what_core_finds_and_another_session_neither_parses_nor_passes(
    analysis, request_of, checkpoint_for, inference
):
    inputs, settings = CASES[analysis]
    checkpoint = load_checkpoint(find_checkpoint(checkpoint_for(analysis)), device="cpu")
    request, expected = request_of(analysis), find(analysis, checkpoint, inputs, settings)
    assert inference.kept_finding(request) is None
    found = inference.find(request)
    pd.testing.assert_frame_equal(
        analysis.table(found.finding), analysis.table(expected), rtol=rounding(analysis), atol=1e-6
    )
    assert list(analysis.table(expected)) == list(analysis.columns)
    assert analysis.facts(found.finding, settings) == analysis.facts(expected, settings)
    assert (found.positions, found.too_long) == (tuple(range(len(inputs))), ())
    assert inference.kept_finding(request) is found
    assert inference.find(request) is found
    assert inference.kept_finding(request_of(analysis, pass_settings=PassSettings(off=((0, 1),)))) is None
    later = anew(inference)
    with unparsed(*(segment for text in TEXTS for segment in text.segments)):
        kept = later.kept_finding(request)
    pd.testing.assert_frame_equal(analysis.table(kept.finding), analysis.table(found.finding), rtol=0)
    assert later.n_passed == 0


def test_texts_that_are_too_long_are_left_out_and_counted(request_of, inference):
    found = inference.find(request_of(RELATION_ANALYSIS, (TEXTS[0], LONG, TEXTS[2])))
    assert found.positions == (0, 2)
    assert [place for place, _ in found.too_long] == [1]
    assert [item.text for item in found.finding.items] == [TEXTS[0], TEXTS[2]]
    assert found.finding.n_documents == 2
    with pytest.raises(EveryTextTooLong):
        inference.find(request_of(RELATION_ANALYSIS, (LONG,)))


def test_progress_says_which_texts_are_parsed_and_which_are_passed(request_of, inference):
    seen = []
    inference.find(request_of(RELATION_ANALYSIS), seen.append)
    parsing = [status for status in seen if status.is_parsing]
    assert [(status.done, status.total) for status in parsing] == [(3, 3)]  # the third brings its tree
    assert seen[: len(parsing)] == parsing
    assert [status.total for status in seen[len(parsing) :]] == [3] * (len(seen) - len(parsing))
    assert len(seen) > len(parsing)


def test_other_settings_of_the_judgement_pass_no_text_again(request_of, inference):
    usual = inference.find(request_of(RELATION_ANALYSIS))
    n_passed = inference.n_passed
    strict = inference.find(request_of(RELATION_ANALYSIS, settings=RelationSettings(least_cases=1, alpha=0.01)))
    assert inference.n_passed == n_passed == 3
    widths = [found.finding.accuracies[0].high - found.finding.accuracies[0].low for found in (usual, strict)]
    assert np.nanmean(widths[0]) < np.nanmean(widths[1])
    assert inference.kept_finding(request_of(RELATION_ANALYSIS, TEXTS[1:])).positions == (0, 1)
    assert inference.kept_finding(request_of(RELATION_ANALYSIS, (*TEXTS, LONG))) is None


def test_an_attention_without_trees_is_refused(request_of, inference, folders):
    request = request_of(RELATION_ANALYSIS, TEXTS[1:2], pass_settings=PassSettings("cross"), folder=folders("t5"))
    for work in (inference.find, inference.kept_finding):
        with pytest.raises(AnalysisError, match="Cross-attention is between two texts"):
            work(request)


def test_texts_without_an_item_are_not_asked_and_the_others_keep_their_places(request_of, inference):
    eats = WordLinkSettings(pattern=Pattern("she", "eats"))
    found = inference.find(request_of(WORD_LINK_ANALYSIS, (TEXTS[0], LONG, TEXTS[1]), eats))
    assert (found.positions, found.finding.links.n_texts, inference.n_passed) == ((2,), 1, 1)
    assert found.too_long == ()
    nowhere = request_of(WORD_LINK_ANALYSIS, settings=WordLinkSettings(pattern=Pattern("who", "eats")))
    for work in (inference.find, inference.kept_finding):
        with pytest.raises(AnalysisError, match="In no text with this pattern can the first word attend"):
            assert work(nowhere).finding.links
