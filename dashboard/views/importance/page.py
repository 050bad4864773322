"""Importance: which heads a checkpoint needs, for what, and how many of them can go."""

from functools import partial
from pathlib import Path
from typing import Final

from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS
from attention_sieve.dashboard import state
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import analysed
from attention_sieve.dashboard.views.importance import agreement, backups, by_role, two_sets, wording
from attention_sieve.dashboard.views.importance.ablation import damage_without_layers, each_head, headline, picture
from attention_sieve.dashboard.views.importance.curves import wording as curves_wording
from attention_sieve.dashboard.views.importance.curves.view import how_many
from attention_sieve.dashboard.views.importance.gates import wording as gates_wording
from attention_sieve.dashboard.views.importance.gates.view import train_gates
from attention_sieve.dashboard.views.importance.material import Importance, material

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS, paper_title=wording.PAPER_TITLE)


def show() -> None:
    frame.page("Importance", wording.SEE, _importance, NOTES)


def _importance() -> None:
    places = frame.places()
    inputs = material(places)
    if inputs is None:
        return
    with places.finding:
        found = analysed(inputs.visit, ABLATION_ANALYSIS, inputs.settings, inputs.source)
        if found is None:
            return
        n_layers, n_heads = found.finding.damage.shape
        heads = state.chosen_heads(n_layers, n_heads, found.finding.most_important)
        layers = damage_without_layers(inputs, found.finding)
        importance = Importance(material=inputs, analysed=found, heads=heads, without_layers=layers)
        headline(importance)
    with places.picture:
        picture(importance)
    views = {
        wording.EACH: each_head,
        agreement.TAB: agreement.cheaper_measures,
        backups.TAB: backups.backups,
        by_role.TAB: by_role.roles_of_important_heads,
        two_sets.TAB: two_sets.two_sets_of_texts,
        curves_wording.TAB: how_many,
    }
    if not is_public():
        views[gates_wording.TITLE] = train_gates
    with places.sections:
        frame.tabs("importance details", {title: partial(draw, importance) for title, draw in views.items()})
        frame.link_to_inspect(importance.heads)
    state.put_in_link(importance.heads)
