"""Importance: which heads a checkpoint needs, for what, and how many of them can go."""

from functools import partial
from pathlib import Path
from typing import Final

from attention_sieve.dashboard import state
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.importance import wording
from attention_sieve.dashboard.views.importance.ablation import each_head, headline
from attention_sieve.dashboard.views.importance.agreement import wording as agreement_wording
from attention_sieve.dashboard.views.importance.agreement.view import cheaper_measures
from attention_sieve.dashboard.views.importance.by_role import wording as by_role_wording
from attention_sieve.dashboard.views.importance.by_role.view import roles_of_important_heads
from attention_sieve.dashboard.views.importance.curves import wording as curves_wording
from attention_sieve.dashboard.views.importance.curves.view import how_many
from attention_sieve.dashboard.views.importance.gates import wording as gates_wording
from attention_sieve.dashboard.views.importance.gates.view import train_gates
from attention_sieve.dashboard.views.importance.material import material
from attention_sieve.dashboard.views.importance.numbers import Importance, facts_of
from attention_sieve.dashboard.views.importance.two_sets import wording as two_sets_wording
from attention_sieve.dashboard.views.importance.two_sets.view import two_sets_of_texts

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS, paper_title=wording.PAPER_TITLE)


def show() -> None:
    """Draw the page."""
    frame.page("Importance", wording.SEE, _importance, NOTES)


def _importance() -> None:
    inputs = material()
    if inputs is None:
        return
    corpus_finding = inputs.ablated
    if corpus_finding is None:
        return
    state.remember_off(inputs.visit.choice)
    ask_about_long_texts(corpus_finding.too_long)
    ablation = corpus_finding.finding
    n_layers, n_heads = ablation.damage.shape
    importance = Importance(
        material=inputs,
        found=corpus_finding,
        heads=state.chosen_heads(n_layers, n_heads, ablation.most_important),
        facts=facts_of(inputs, len(ablation.items)),
    )
    headline(importance)
    views = {
        wording.EACH: each_head,
        agreement_wording.TAB: cheaper_measures,
        by_role_wording.TAB: roles_of_important_heads,
        two_sets_wording.TAB: two_sets_of_texts,
        curves_wording.TAB: how_many,
    }
    if not is_public():
        views[gates_wording.TITLE] = train_gates
    frame.tabs("importance details", {title: partial(draw, importance) for title, draw in views.items()})
    state.put_in_link(importance.heads)
    frame.link_to_inspect(importance.heads)
