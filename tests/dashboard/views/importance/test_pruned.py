"""A checkpoint from which heads were removed, on every page."""

import numpy as np
import pytest
from reading import sent

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.importance.removal.remove import remove
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.dashboard.figures.roles.grid import RoleGrid, grid_svg

GONE = ((0, 1), (1, 0), (1, 1), (1, 2))


@pytest.fixture(scope="module")
def pruned(small, tmp_path_factory):
    """BERT of 2 layers x 3 heads without head 1 of layer 0, and without any of layer 1."""
    folder = tmp_path_factory.mktemp("pruned") / "bert"
    remove(find_checkpoint(small("bert", "MaskedLM", max_position_embeddings=400)), GONE, folder)
    return str(folder)


SIX = "A cat sat.\nA dog ran.\nThe bird sang.\nShe eats apples.\nTwo dogs ran.\nWho sat there?"


VISITS = {
    "inspect": ("inspect", {}),
    "roles": ("roles", {}),
    "surface": ("surface", {}),
    "relations": ("grammar", {"grammar section": "Relations"}),
    "coreference": ("grammar", {"grammar section": "Coreference"}),
    "probes": ("grammar", {"grammar section": "Probes", "corpus_text": SIX}),
    "similarity": ("similarity", {}),
    "compare": ("compare", {"text": "The cat sat."}),
    "importance": ("importance", {"keep one": "true"}),
    "fine-tune": ("fine-tune", {}),
}


@pytest.mark.parametrize("visit", VISITS)
def test_every_page_draws_a_pruned_checkpoint(visit, app, small, pruned):
    where, link = VISITS[visit]
    if visit == "compare":
        link = {**link, "with": small("bert", "MaskedLM", max_position_embeddings=400)}
    at = app(where, checkpoint=pruned, **link)
    assert [each.value for each in at.error] == []
    section = link.get("grammar section")  # the only page that stands wholly in tabs below its head
    drawn = next(tab for tab in at.tabs if tab.label == section) if section else at.main
    assert len(drawn) > 3


def test_the_grid_has_holes_where_heads_were_removed_and_no_count_of_heads_includes_them(app, pruned):
    at = app("roles", checkpoint=pruned)
    assert sorted(map(tuple, sent(at, "Roles of the heads")["removed"])) == list(GONE)
    assert any("of 2 heads** hold a role" in each.value for each in at.markdown)
    assert sent(at, "Heads by the roles they hold")["heads"] == 2
    assert any("of 2 heads** " in each.value for each in app("surface", checkpoint=pruned).markdown)


def test_a_removed_head_that_a_link_names_is_said_to_be_removed(app, pruned):
    at = app("inspect", checkpoint=pruned, head="0-1")
    said = [each.value for each in at.info]
    assert f"{head_name(0, 1)} is not in this checkpoint, so there is no attention to draw." in said
    assert not any(each.value.startswith("Head L0 H1") for each in at.subheader)


def test_the_file_of_the_grid_has_a_hole_too():
    scores = np.ones((len(ROLES), 2, 3))
    scores[:, 0, 1] = np.nan
    scores[0, 1] = np.nan  # a role that does not apply is no hole
    grid = RoleGrid(label="Roles", scores=scores, holds=scores > 3, tau=3.0)
    assert np.argwhere(grid.removed).tolist() == [[0, 1]]
    drawn = grid_svg(grid)
    assert drawn.count("<title>not in this checkpoint</title>") == 2, "one in the grid, one in the legend"
    assert drawn.count("stroke-dasharray") == 2
