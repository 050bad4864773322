"""Heads that are switched off, on the pages."""

import numpy as np
import pytest
from reading import button, choose_heads, scores_in, sent

from attention_sieve.core.roles.roles import ROLES
from attention_sieve.dashboard import controls, wording
from attention_sieve.dashboard.views.heads_off import role_changes

TEXT = "the black cat quickly chased two birds"


@pytest.fixture
def bert(app, small):
    """bert(page, **link) -> the app on a BERT of 2 layers and 3 heads with a head for masked tokens."""

    def opened(page="inspect", **link):
        return app(page, checkpoint=small("bert", "MaskedLM"), text=TEXT, **link)

    return opened


def off(at):
    return sent(at, "Heads of")["off"]


def test_several_chosen_heads_are_switched_off_and_on_at_once(bert):
    at = bert()
    assert wording.what_changes(1) not in [each.value for each in at.subheader]
    choose_heads(at, (1, 2), (0, 1))
    button(at, "Switch L1 H2, L0 H1 off").click().run()
    assert off(at) == [[0, 1], [1, 2]]
    assert any("Switched off: L0 H1, L1 H2." in each.value for each in at.markdown)
    choose_heads(at, (1, 2), (0, 0))
    assert {each.label for each in at.button} >= {"Switch L0 H0 off", "Switch L1 H2 on"}
    button(at, wording.ALL_ON).click().run()
    assert off(at) == []
    assert at.query_params.get("off") is None
    button(at, "Switch L0 H1, L1 H2 off again").click().run()
    assert off(at) == [[0, 1], [1, 2]]
    assert at.query_params["off"] == "0-1,1-2"
    choose_heads(at, (1, 2))
    button(at, "Switch L1 H2 on").click().run()
    assert off(at) == [[0, 1]]


def test_a_head_that_is_off_changes_later_layers_only_whose_arcs_are_shown_without_it_and_with_all_on(bert):
    links = ({"off": "0-1"}, {"off": "0-1", "arcs of": "with all heads on"}, {})
    pages = [bert(head="1-2", **link) for link in links]
    without, with_all, on = (sent(at, "Attention of L1 H2")["attention"] for at in pages)
    assert without != with_all == on
    without, _, on = (scores_in(sent(at, "Heads of")).reshape(len(ROLES), 2, 3) for at in pages)
    np.testing.assert_allclose(on[:, 0], without[:, 0], rtol=1e-5, atol=1e-6)
    assert not np.array_equal(on[:, 1], without[:, 1], equal_nan=True)


def test_a_head_that_the_checkpoint_lacks_is_named_and_all_can_be_switched_on_from_there(bert):
    at = bert(off="9-9,0-1")
    assert "The link switches off head L9 H9; this checkpoint has 2 layers of 3 heads." in at.warning[0].value
    assert off(at) == [[0, 1]]
    button(at, wording.ALL_ON).click().run()
    assert not at.error
    assert off(at) == []
    assert button(at, "Switch L0 H1 off again")


def test_another_checkpoint_begins_with_all_heads_on_and_the_first_remembers(bert, small):
    at = bert(off="0-1")
    at.selectbox(key="checkpoint").set_value("bundled").run()
    assert off(at) == []
    assert not [each for each in at.button if each.label.endswith("again")]
    at.selectbox(key="checkpoint").set_value(small("bert", "MaskedLM")).run()
    assert off(at) == []
    button(at, "Switch L0 H1 off again").click().run()
    assert off(at) == [[0, 1]]


def test_roles_are_tested_without_them_and_compared_where_both_are_kept(bert):
    corpus = "the cat sat on the mat\na dog ran\ntwo birds eat red apples"
    at = bert("roles", off="0-1", corpus_text=corpus)
    grid = sent(at, "Roles of the heads")
    assert (grid["off"], grid["compared"]) == ([[0, 1]], False)
    at.toggle(key="compare").set_value(True).run()
    assert sent(at, "Roles of the heads")["compared"]
    assert any(each.value.startswith("Compared with all heads on: ") for each in at.markdown)
    before = controls.inference().n_passed
    at = bert("roles", off="0-1", corpus_text=corpus)
    assert sent(at, "Roles of the heads")["compared"]
    assert wording.COMPARE not in [each.label for each in at.toggle]
    assert controls.inference().n_passed == before


def test_with_all_heads_on_nothing_is_compared(bert):
    at = bert("roles")
    assert not sent(at, "Roles of the heads")["compared"]
    assert wording.COMPARE not in [each.label for each in at.toggle]


@pytest.mark.parametrize(
    ("head", "column", "n_rows"), [("MaskedLM", "token", None), ("SequenceClassification", "class", 2)]
)
def test_what_changes_names_tokens_or_classes(app, small, head, column, n_rows):
    at = app(checkpoint=small("bert", head), text=TEXT, off="0-1")
    assert wording.what_changes(1) in [each.value for each in at.subheader]
    assert 0 < float(at.metric[0].value) < 1
    table = next(each.value for each in at.dataframe if column in each.value)
    assert len(table) == n_rows if n_rows else len(table) >= 5
    assert not np.allclose(table["all heads on"], table["without"])


def test_a_checkpoint_without_a_head_says_so(app, small):
    at = app(checkpoint=small("bert"), text=TEXT, off="0-1")
    assert wording.EMBEDS_ONLY in [each.value for each in at.markdown]


def test_role_changes_are_those_that_cross_tau_the_largest_first():
    before = np.full((len(ROLES), 2, 3), 1.0)
    after = before.copy()
    local, block = ROLES.index("local"), ROLES.index("block")
    before[local, 1, 2], after[local, 1, 2] = 4.0, 2.0
    before[block, 1, 0], after[block, 1, 0] = 2.9, 9.0
    after[local, 0, 0] = 2.9
    table = role_changes(ROLES, (before, after), (before > 3, after > 3))
    assert table[["name", "role", "change"]].to_numpy().tolist() == [
        ["L1 H0", "block", "gained"],
        ["L1 H2", "local", "lost"],
    ]
