"""The roles over a corpus, or over a control of it, as a grid; for the pages Roles and Inspect."""

from dashboard import wording as shared_wording
from dashboard.figures.roles.grid import RoleGrid
from dashboard.views.corpus import Corpus
from dashboard.views.evidence import wording as evidence_wording
from dashboard.views.frame import Visit


def grid_over(visit: Visit, tested: Corpus, label: str, shown: tuple[str, ...]) -> RoleGrid:
    """The mean scores over a corpus, what they are compared with, and the roles that they give.

    Args:
        visit: the reader's settings.
        tested: the corpus.
        label: what the grid shows.
        shown: roles that get a corner of each cell.
    """
    chosen, tests = visit.chosen, tested.tests
    uniform, greatest = tested.scored.mean_references()
    return RoleGrid(
        label=label,
        scores=tests.mean,
        holds=tests.holds,
        tau=chosen.criterion.tau,
        shown=shown,
        off=chosen.off,
        before=shared_wording.AGAINST,
        filled=tested.filled,
        scale=chosen.scale,
        uniform=uniform,
        greatest=greatest,
        p_values=tested.strength,
        p_name=f"p ({visit.chosen.correction})" if tested.bets is None else evidence_wording.NAME,
        odds=tested.bets is not None,
        stability=tested.stability(),
    )
