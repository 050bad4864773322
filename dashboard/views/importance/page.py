"""Importance: which heads a checkpoint needs, for what, and how many of them can go."""

from pathlib import Path
from typing import Final

from dashboard import state
from dashboard.views import frame
from dashboard.views.asking import ask_about_long_texts
from dashboard.views.importance import wording
from dashboard.views.importance.ablation import each_head, headline
from dashboard.views.importance.gates import wording as gates_wording
from dashboard.views.importance.gates.view import train_gates
from dashboard.views.importance.curves import wording as curves_wording
from dashboard.views.importance.curves.view import how_many
from dashboard.views.importance.material import ablated, material
from dashboard.views.importance.numbers import Importance, facts_of, measured, most_important

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS, paper_title=wording.PAPER_TITLE)


def show() -> None:
    """Draw the page."""
    frame.page("Importance", wording.SEE, _importance, NOTES)


def _importance() -> None:
    asked = material()
    if asked is None:
        return
    answers = ablated(asked)
    if answers is None:
        return
    state.remember_off(asked.visit.chosen)
    ask_about_long_texts(answers.too_long)
    changed = measured(asked, answers)
    n_layers, n_heads = changed.delta.shape
    importance = Importance(
        material=asked,
        ablated=answers,
        effects=changed,
        heads=state.chosen_heads(n_layers, n_heads, most_important(changed, asked.sign)),
        facts=facts_of(asked, len(answers.results)),
    )
    headline(importance)
    frame.tabs(
        "importance details",
        {
            wording.EACH: lambda: each_head(importance),
            curves_wording.TAB: lambda: how_many(importance),
            gates_wording.TITLE: lambda: train_gates(importance),
        },
    )
    state.put_in_link(importance.heads)
    frame.link_to_inspect(importance.heads)
