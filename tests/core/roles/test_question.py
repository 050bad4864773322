import naive
import numpy as np
import pytest
from transformers import BertModel

from attention_sieve.core.analysis import results
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES, pass_text
from attention_sieve.core.texts.text import text_of

SELF = PassSettings()


def test_a_text_as_it_is_shown_has_the_scores_of_the_question_and_the_attention_of_the_eager_path(loaded, folders):
    checkpoint = loaded("bert")
    text = text_of(["The black cat quickly chased two birds.", "She ran."], "a text")
    prepared = prepare(checkpoint, text, SELF)
    passed = pass_text(checkpoint, text, prepared, SELF, ScoreSettings())
    expected = role_scores(results(checkpoint, SCORES, [text]), ScoreSettings())
    np.testing.assert_allclose(passed.scores, expected.scores[0], rtol=1e-5, atol=1e-6)
    assert passed.text_attention.text.pairs, "grammatical relations are known"
    eager = naive.eager_attention(BertModel, folders("bert"), prepared.source.ids, prepared.source.type_ids)
    np.testing.assert_allclose(passed.text_attention.attention, np.asarray(eager), atol=1e-5)


@pytest.mark.parametrize("parses", [True, False])
def test_a_text_is_parsed_only_where_that_is_asked_for(parses, loaded):
    checkpoint = loaded("bert")
    text = text_of(["The black cat chased two birds."], "a text")
    passed = pass_text(checkpoint, text, prepare(checkpoint, text, SELF), SELF, ScoreSettings(parses=parses))
    assert bool(passed.text_attention.text.pairs) is parses
