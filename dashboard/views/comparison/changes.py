"""Which heads changed from one checkpoint to another, and tabs with further questions."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Bool

from attention_sieve.cache.inference import Inference
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.comparison.sizes import LEAST_DIFFERENCE, difference_sizes
from attention_sieve.core.comparison.transitions import (
    Transition,
    changes_per_layer,
    depths,
    role_change_table,
    role_changes,
    transition_table,
    transitions,
)
from attention_sieve.core.roles.hypotheses import CERTAIN, resamples, stability
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls, link, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.comparison.checkpoints import role_small_multiples
from attention_sieve.dashboard.figures.comparison.depths import overall_shares, roles_by_depth
from attention_sieve.dashboard.figures.comparison.flow import heads_by_mark, role_flow
from attention_sieve.dashboard.figures.comparison.shifts import (
    divergence_by_layer,
    roles_gained_and_lost,
    score_change_scatter,
    shift_by_layer,
)
from attention_sieve.dashboard.figures.comparison.steps import roles_over_steps, shift_over_steps
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.files.downloads import offer_page, table_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.saved_page.content import Content
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.charts import SMALL_NUMBER, chart
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.differences import FINER, differences, divergence, grids, which_heads
from attention_sieve.dashboard.views.comparison.numbers import (
    CheckpointFocus,
    all_heads_on,
    divergence_of_heads,
    has_scores,
    least_key,
    shift,
)
from attention_sieve.dashboard.views.descriptions.sentences import with_sentences
from attention_sieve.dashboard.views.pickers import from_list, halves, some_of, toggle
from attention_sieve.dashboard.views.saving import ScoredTexts, attention_in, content_of, first_that_fits, html_of

ROLE_WIDTH = 250
"""Width of the list of roles, in pixels."""
LEAST_WIDTH: Final = 170
"""Width of the least difference, in pixels."""
TRANSITION: Final = "transition"
"""Key and query parameter of the chosen transition, by the name of its mark."""
HEAD: Final = "transition head"


def changes(focus: CheckpointFocus, steps: Sequence[int] | None) -> None:
    """Which heads changed, and below it a tab for each further question.

    Args:
        focus: the selected checkpoint among the others.
        steps: of the reference and the others, if all are of one training run; None for other checkpoints.
    """
    st.subheader(wording.CHANGES)
    if focus.choice.corpus == controls.TYPED and focus.choice.criterion.method == "test":
        st.info(wording.TYPED)
    role = _controls(focus)
    st.markdown(wording.sizes(difference_sizes(focus.compared.tests, focus.least, focus.coarse)))
    which_heads(focus, role)
    views: dict[str, Callable[[], None]] = {
        wording.EACH: lambda: grids(focus),
        wording.DIFFERENCES: lambda: differences(focus, role),
        wording.LAYERS: lambda: _per_layer(focus, role),
        wording.DIVERGENCE: lambda: _divergence(focus),
        wording.TRANSITIONS: lambda: _transitions(focus),
        wording.SURE: lambda: _how_sure(focus),
        wording.TABLE: lambda: _table(focus),
    }
    if len(focus.pairs) > 1:
        over = wording.OVER_CHECKPOINTS if steps is None else wording.OVER_STEPS
        views = {over: lambda: _over_checkpoints(focus, steps, role), **views}
    frame.tabs("compare details", views)


def _controls(focus: CheckpointFocus) -> str:
    """The selected role, initially the one that changed most; the least difference, and a switch for the finer
    roles."""
    applies = dict(zip(focus.pair.roles, np.logical_or(*map(has_scores, focus.pair.tests))))
    roles = [role for role in (*focus.coarse, *focus.fine) if role == focus.role or applies[role]]
    labels = {LOOKS[role].label: role for role in roles}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        role = from_list(
            wording.ROLE,
            labels,
            key="compare role",
            start=LOOKS[focus.role].label,
            help=wording.ROLE_HELP,
            width=ROLE_WIDTH,
        )
        usual = LEAST_DIFFERENCE[focus.choice.scale]
        st.number_input(
            wording.LEAST,
            min_value=0.0,
            value=usual,
            step=usual,
            format="%g",
            key=least_key(focus.choice.scale),
            help=wording.LEAST_HELP,
            width=LEAST_WIDTH,
            bind="query-params",
            persist_state="session",
        )
        toggle(shared_wording.FINER, key=FINER)
    return role


def _over_checkpoints(focus: CheckpointFocus, steps: Sequence[int] | None, role: str) -> None:
    names = [focus.names[0], *(pair.name for pair in focus.pairs)]
    indices = [focus.pair.roles.index(role) for role in focus.coarse]
    reference = focus.pairs[0].tests[0]
    holds = np.stack([tests.holds[indices] for tests in (reference, *(pair.tests[1] for pair in focus.pairs))])
    marked = 1 + list(focus.pairs).index(focus.pair)
    left, right = halves()
    facts = without_command(focus.facts)
    with left:
        applies = np.stack(
            [has_scores(tests)[indices] for tests in (reference, *(pair.tests[1] for pair in focus.pairs))]
        )
        counts = np.where(applies, holds.sum(axis=(2, 3)), np.nan)
        chart("roles over checkpoints", roles_over_steps(names, steps, counts, focus.coarse, marked), facts)
    shifts = np.array([0.0, *(shift(pair, focus.choice, role).overall for pair in focus.pairs)])
    with right:
        figure = shift_over_steps(names, steps, shifts, role, marked, focus.choice.scale)
        chart("shift over checkpoints", figure, facts)
    chart("roles of each checkpoint", role_small_multiples(names, holds, focus.coarse), facts)


def _per_layer(focus: CheckpointFocus, role: str) -> None:
    indices = [focus.pair.roles.index(name) for name in focus.coarse]
    gained, lost = changes_per_layer(*(holds[indices] for holds in focus.compared.holds))
    role_shift = shift(focus.pair, focus.choice, role)
    left, right = halves()
    with left:
        figure = roles_gained_and_lost(gained, lost, focus.coarse, focus.pair.tests[0].mean.shape[2])
        chart("roles gained and lost", figure, focus.facts)
    with right:
        figure = shift_by_layer([role_shift], focus.choice.criterion.alpha, focus.choice.scale)
        chart("score change by layer", figure, focus.facts)


def _divergence(focus: CheckpointFocus) -> None:
    left, right = halves()
    with left:
        divergence(focus)
    per_text = focus.pair.scored.divergence
    if per_text is not None and divergence_of_heads(focus.pair) is not None:
        with right:
            figure = divergence_by_layer(per_text, focus.choice.criterion.alpha, focus.heads)
            chart("divergence by layer", figure, without_command(focus.facts), selects=True)


def _transitions(focus: CheckpointFocus) -> None:
    holds = focus.compared.holds
    st.markdown(wording.TRANSITIONS_SEE)
    between = transitions(*holds, focus.pair.roles, focus.coarse)
    _flow(focus, between)
    table = transition_table(between)
    st.dataframe(table, hide_index=True, column_config={"which": st.column_config.TextColumn(width="large")})
    table_downloads("transitions", table, focus.facts)
    st.markdown(wording.MCNEMAR)
    roles = {*focus.coarse, *focus.fine}
    counts = role_change_table([change for change in role_changes(*holds, focus.pair.roles) if change.role in roles])
    st.dataframe(counts, hide_index=True, column_config={"p": SMALL_NUMBER})
    table_downloads("role changes", counts, focus.facts)


def _flow(focus: CheckpointFocus, between: Sequence[Transition]) -> None:
    """The diagram, and the heads of the transition clicked in it or chosen in the list below."""
    marks = heads_by_mark(between)
    st.markdown(wording.FLOW_SEE)
    chart("role flow", role_flow(between, focus.names), focus.facts, on_click=partial(_take_mark, marks))
    if (linked_name := link.take(TRANSITION)) is not None:
        st.session_state[TRANSITION] = linked_name
        if linked_name not in marks:
            link.say(wording.no_such_transition(link.quoted(linked_name)))
    if st.session_state.get(TRANSITION) not in marks:
        st.session_state[TRANSITION] = None  # another tau, or another checkpoint, has other transitions
    mark = st.selectbox(
        wording.TRANSITION,
        list(marks),
        index=None,
        format_func=lambda name: f"{name}: {counted(len(marks[name]), 'head')}",
        key=TRANSITION,
        placeholder=wording.TRANSITION_NONE,
        help=wording.TRANSITION_HELP,
        persist_state="session",
    )
    # Not the label in the list: its number of heads changes with tau.
    link.put([TRANSITION], {} if mark is None else {TRANSITION: mark})
    if mark is not None:
        _heads(focus, marks[mark])


def _take_mark(marks: dict[str, tuple[Head, ...]], clicked: list[dict[str, Any]]) -> None:
    for point in clicked:
        if isinstance(mark := point.get("mark"), str) and mark in marks:
            st.session_state[TRANSITION] = mark


def _heads(focus: CheckpointFocus, heads: Sequence[Head]) -> None:
    by_name = {head_name(*head): head for head in heads}
    pressed = [name for name, head in by_name.items() if head in focus.heads]
    st.session_state[HEAD] = pressed[-1] if pressed else None
    st.pills(wording.HEADS_OF, list(by_name), key=HEAD, on_change=_choose, args=(by_name,), help=wording.HEADS_HELP)
    frame.link_to_inspect(focus.heads)


def _choose(by_name: dict[str, Head]) -> None:
    """Choose the head of the pressed button in every view; pressing it again changes nothing."""
    name = st.session_state[HEAD]
    if name is not None:
        state.push_heads([by_name[name]])


def _how_sure(focus: CheckpointFocus) -> None:
    st.markdown("\n".join(f"- {sentence}" for sentence in _certainty(focus)))
    figure = score_change_scatter(focus.compared.tests, focus.coarse, focus.choice.scale)
    chart("all scores", figure, focus.facts)


def _certainty(focus: CheckpointFocus) -> Iterator[str]:
    pair, criterion = focus.pair, focus.choice.criterion
    tests, indices = focus.compared.tests, [focus.pair.roles.index(role) for role in focus.coarse]
    effects = np.abs(tests.effect[indices])
    effects = effects[~np.isnan(effects)]
    yield wording.sizes(difference_sizes(tests, focus.least, focus.coarse))
    if effects.size:
        yield wording.tested(criterion.alpha, focus.choice.correction, float(np.median(effects)))
    (holds_a, holds_b), changed = focus.compared.holds, focus.compared.changed
    moved = (holds_a != holds_b)[indices]
    in_both = (_is_stable(focus, 0) & _is_stable(focus, 1))[indices]
    yield wording.n_stable(int((changed & (in_both | ~moved).all(axis=0)).sum()), int(changed.sum()), pair.n_texts)
    for role in (*focus.coarse, *(role for role in ("delimiter:sep",) if role in focus.fine)):
        role_shift = shift(pair, focus.choice, role)
        yield wording.shift(role, role_shift.overall, role_shift.p, role_shift.texts)
    divergence = divergence_of_heads(pair)
    if divergence is not None and divergence.max() > 0:
        per_layer = divergence.mean(axis=1)
        yield wording.moved(float(divergence.mean()), int(per_layer.argmax()))


def _is_stable(focus: CheckpointFocus, side: int) -> Bool[np.ndarray, "role layer head"]:
    """Whether each label of one checkpoint stays the same in nearly all resamples of the texts."""
    pair = focus.pair
    scores = pair.sides[side].counted
    return controls.memory().get_or_put(
        "stable in a comparison",
        (pair.scored.key, side, focus.choice.criterion),
        lambda: stability(pair.tests[side], resamples(scores.scores, scores.uniform)) >= CERTAIN,
    )


def _table(focus: CheckpointFocus) -> None:
    table = focus.compared.table
    with st.container(horizontal=True, vertical_alignment="bottom"):
        roles = some_of("Roles", list(map(role_title, focus.pair.roles)), key="compare roles", every="all roles")
        only_large = toggle(wording.ONLY_LARGE, key="compare significant")
    mask = table["role"].isin(roles)
    table = table[mask & table["large"] & focus.compared.tests.differs.ravel() if only_large else mask]
    small = dict.fromkeys(("p", "p_adjusted", "wilcoxon_p"), SMALL_NUMBER)
    score = {
        name: st.column_config.NumberColumn(format="%.3f") for name in ("mean_a", "mean_b", "difference", "t", "effect")
    }
    st.dataframe(table, hide_index=True, column_config={**small, **score})
    for sentences, letter in zip(focus.sentences, "ab"):
        table = with_sentences(table, sentences, f"mostly_{letter}")
    table_downloads("differences", table, focus.facts)


def unlike_shapes(focus: CheckpointFocus) -> None:
    """What can be compared if the number of layers or heads differs, and why not more."""
    tests_a, tests_b = focus.pair.tests
    st.info(wording.other_shape(tests_a.mean.shape[1:], tests_b.mean.shape[1:]))
    indices = [focus.pair.roles.index(role) for role in focus.coarse]
    holds = [tests.holds[indices] for tests in focus.pair.tests]
    st.markdown(wording.DEPTH)
    applies = [has_scores(tests)[indices] for tests in focus.pair.tests]
    shares = [np.where(known[:, None], side.mean(axis=2), np.nan) for known, side in zip(applies, holds)]
    by_depth = roles_by_depth(focus.names, shares, [depths(side.shape[1]) for side in holds], focus.coarse)
    chart("roles by depth", by_depth, focus.facts)
    overall = np.stack([np.where(known, side.mean(axis=(1, 2)), np.nan) for known, side in zip(applies, holds)])
    n_heads = [side[0].size for side in holds]
    chart("overall shares", overall_shares(focus.names, overall, n_heads, focus.coarse), focus.facts)


def save_comparison(inference: Inference, focus: CheckpointFocus, text: Text | None) -> None:
    """Offer both checkpoints, of one shape; without a text, the first of the corpus that fits is drawn."""
    choice, pair = focus.choice, focus.pair
    scored = ScoredTexts(
        focus.texts, pair.scored.n_tokens, pair.scored.sides, tuple(focus.heads), policy() == "truncate"
    )
    drawn = text or first_that_fits(scored)
    pass_settings, of_other = (all_heads_on(choice, engine) for engine in pair.engines)
    if drawn is None or pass_settings != of_other:
        return

    def content() -> Content:
        attentions = [attention_in(inference, engine, drawn, pass_settings) for engine in pair.engines]
        return content_of(choice, pair.engines, pass_settings, scored, (drawn, attentions))

    offer_page([engine.files.name for engine in pair.engines], partial(html_of, content))
