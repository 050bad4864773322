import numpy as np
import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.measures import USUAL, ScoreSettings, TextMeasures, role_scores
from attention_sieve.core.roles.roles import ROLES

TEXTS, LAYERS, HEADS = 4, 2, 3
NAN = float("nan")


def numbered():
    """Measure m of text s is 100 s + m in the first head; heads and layers add less than 1."""
    text, measure, layer, head = np.ogrid[:TEXTS, : len(USUAL.measures), :LAYERS, :HEADS]
    return 100.0 * text + measure + 0.5 * layer + 0.1 * head


def scores_of(measures, settings):
    """Of texts with these measures; no share applies, and references count on from 500."""
    nothing = np.full((len(USUAL.shares), LAYERS, HEADS), NAN)
    references = 500.0 + np.arange(len(USUAL.references))[:, None] + 0.5 * np.arange(LAYERS)
    of_references = {"uniform": references, "greatest": references + 100}
    texts = [TextMeasures(measures=of_text, shares=nothing, **of_references) for of_text in measures]
    return role_scores(texts, settings).scores


def of_role(scores, role):
    return scores[:, ROLES.index(role)]


@pytest.mark.parametrize("direction", ["dependent-to-head", "head-to-dependent"])
@pytest.mark.parametrize("block", ["block", "block without entropy"])
def test_the_settings_choose_the_direction_of_syntactic_roles_and_the_weight_of_block_and_no_other(direction, block):
    measures = numbered()
    scores = scores_of(measures, ScoreSettings(direction=direction, block_entropy=block == "block"))
    assert scores.shape == (TEXTS, len(ROLES), LAYERS, HEADS)
    for role in ROLES:
        name = f"{role} {direction}" if role.startswith("syntactic") else block if role == "block" else role
        np.testing.assert_array_equal(of_role(scores, role), measures[:, USUAL.measures.index(name)])


def test_both_directions_are_averaged_and_one_alone_stands_for_itself():
    measures = numbered()
    one, other = (USUAL.measures.index(f"syntactic:dobj {way}") for way in ("dependent-to-head", "head-to-dependent"))
    measures[1, one] = NAN
    measures[2, other] = NAN
    measures[3, [one, other]] = NAN
    found = of_role(scores_of(measures, ScoreSettings(direction="both")), "syntactic:dobj")
    np.testing.assert_allclose(found[0], (measures[0, one] + measures[0, other]) / 2)
    np.testing.assert_array_equal(found[1], measures[1, other])
    np.testing.assert_array_equal(found[2], measures[2, one])
    assert np.isnan(found[3]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_choosing_scores_keeps_the_number_format_and_the_array_given(dtype):
    measures = numbered().astype(dtype)
    before = measures.copy()
    assert scores_of(measures, ScoreSettings(direction="both")).dtype == dtype
    np.testing.assert_array_equal(measures, before)


def test_an_unknown_direction_is_refused():
    refused = ScoreSettings()
    object.__setattr__(refused, "direction", "sideways")  # past the type checker of these tests
    with pytest.raises(
        AnalysisError, match=r"^'sideways' is not a direction\. Choose one of: dependent-to-head, head-to"
    ):
        refused.__post_init__()
