"""Which heads changed from one checkpoint to another, and tabs with further questions."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Bool

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.comparison.differences import PairedTests
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
from attention_sieve.core.roles.roles import role_title, shown_roles_of_all
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
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.charts import SMALL_NUMBER, chart
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.differences import FINER, difference_of, differences, divergence, grids
from attention_sieve.dashboard.views.comparison.numbers import (
    Compared,
    ComparedCheckpoint,
    Visits,
    divergence_of_heads,
    facts_of,
    has_scores,
    least_key,
    shift,
)
from attention_sieve.dashboard.views.comparison.summary import all_that_changed
from attention_sieve.dashboard.views.descriptions.sentences import with_sentences
from attention_sieve.dashboard.views.pickers import from_list, halves, some_of, toggle
from attention_sieve.dashboard.views.saving import ScoredTexts, attention_in, content_of, first_that_fits, html_of

ROLE_WIDTH = 250
"""Width of the list of roles, in pixels."""
LEAST_WIDTH: Final = 170
"""Width of the least difference, in pixels."""
Draw = Callable[[Compared, str], None]
"""Draws two checkpoints, of one role where it draws a single one."""
NO_TABS: Final[Mapping[str, Draw]] = {}
TRANSITION: Final = "transition"
"""Key and query parameter of the chosen transition, by the name of its mark."""
HEAD: Final = "transition head"


def changes(
    shown: Compared,
    remarks: Callable[[], None],
    first: Mapping[str, Draw] = NO_TABS,
    further: Mapping[str, Draw] = NO_TABS,
    certain: Callable[[Compared], Iterable[str]] = lambda _: (),
) -> None:
    """A tab for each question, the first of which is which heads changed.

    Args:
        remarks: says what limits the comparison.
        first, further: tabs that only texts have, by their titles; the former come first.
        certain: what texts say of how sure the differences are.
    """
    role = _controls(shown)
    views: dict[str, Draw] = {
        wording.CHANGES: partial(_which, remarks),
        **first,
        wording.EACH: lambda shown, _: grids(shown),
        wording.DIFFERENCES: lambda shown, _: differences(shown),
        **further,
        wording.TRANSITIONS: lambda shown, _: _transitions(shown),
        **({} if shown.paired is None else {wording.SURE: partial(_how_sure, shown.paired, certain)}),
        wording.TABLE: lambda shown, _: _table(shown),
    }
    frame.tabs("compare details", {title: partial(draw, shown, role) for title, draw in views.items()})


def _which(remarks: Callable[[], None], shown: Compared, role: str) -> None:
    difference_of(shown, role)
    st.markdown(all_that_changed(shown))
    remarks()


def _controls(shown: Compared) -> str:
    """The selected role, initially the one that changed most; the least difference, and a switch for the finer
    roles."""
    applies = dict(zip(shown.roles, np.logical_or(*map(has_scores, shown.tests))))
    roles = [role for role in itertools.chain(*shown.coarse_and_fine) if role == shown.role or applies[role]]
    labels = {LOOKS[role].label: role for role in roles}
    with st.popover(wording.WHAT_COUNTS, icon=":material/tune:", key="what counts"):
        role = from_list(
            wording.ROLE,
            labels,
            key="compare role",
            start=LOOKS[shown.role].label,
            help=wording.ROLE_HELP,
            width=ROLE_WIDTH,
        )
        usual = LEAST_DIFFERENCE[shown.scale]
        st.number_input(
            wording.LEAST,
            min_value=0.0,
            value=usual,
            step=usual,
            format="%g",
            key=least_key(shown.scale),
            help=wording.LEAST_HELP,
            width=LEAST_WIDTH,
            bind="query-params",
            persist_state="session",
        )
        toggle(shared_wording.FINER, key=FINER)
    return role


def over_checkpoints(
    choice: Choice,
    pair: ComparedCheckpoint,
    pairs: Sequence[ComparedCheckpoint],
    steps: Sequence[int] | None,
    shown: Compared,
    role: str,
) -> None:
    """Roles and scores of the reference and of all others.

    Args:
        pair: the one that is shown.
        steps: of all checkpoints, if they are of one training run; None for others.
    """
    names = [shown.names[0], *(other.name for other in pairs)]
    indices = [shown.roles.index(role) for role in shown.coarse]
    tests = (shown.tests[0], *(other.tests[1] for other in pairs))
    holds = np.stack([each.holds[indices] for each in tests])
    marked = 1 + list(pairs).index(pair)
    left, right = halves()
    facts = without_command(shown.facts)
    with left:
        counts = np.where(np.stack([has_scores(each)[indices] for each in tests]), holds.sum(axis=(2, 3)), np.nan)
        chart("roles over checkpoints", roles_over_steps(names, steps, counts, shown.coarse, marked), facts)
    shifts = np.array([0.0, *(shift(other, choice, role).overall for other in pairs)])
    with right:
        figure = shift_over_steps(names, steps, shifts, role, marked, shown.scale)
        chart("shift over checkpoints", figure, facts)
    chart("roles of each checkpoint", role_small_multiples(names, holds, shown.coarse), facts)


def per_layer(choice: Choice, pair: ComparedCheckpoint, shown: Compared, role: str) -> None:
    """Heads that gain and lose roles in each layer, and the change of one role's score."""
    indices = [shown.roles.index(name) for name in shown.coarse]
    gained, lost = changes_per_layer(*(holds[indices] for holds in shown.holds))
    left, right = halves()
    with left:
        figure = roles_gained_and_lost(gained, lost, shown.coarse, shown.tests[0].mean.shape[2])
        chart("roles gained and lost", figure, shown.facts)
    with right:
        figure = shift_by_layer([shift(pair, choice, role)], choice.criterion.alpha, shown.scale)
        chart("score change by layer", figure, shown.facts)


def how_far(
    choice: Choice, pair: ComparedCheckpoint, pairs: Sequence[ComparedCheckpoint], shown: Compared, _: str
) -> None:
    """How far the attention of each head is from that under the reference, and of each layer."""
    left, right = halves()
    with left:
        divergence(pair, pairs, shown)
    per_text = pair.scored.divergence
    if per_text is not None and divergence_of_heads(pair) is not None:
        with right:
            figure = divergence_by_layer(per_text, choice.criterion.alpha, shown.heads)
            chart("divergence by layer", figure, without_command(shown.facts), selects=True)


def _transitions(shown: Compared) -> None:
    st.markdown(wording.TRANSITIONS_SEE)
    between = transitions(*shown.holds, shown.roles, shown.coarse)
    _flow(shown, between)
    table = transition_table(between)
    st.dataframe(table, hide_index=True, column_config={"which": st.column_config.TextColumn(width="large")})
    table_downloads("transitions", table, shown.facts)
    st.markdown(wording.MCNEMAR)
    roles = set(itertools.chain(*shown.coarse_and_fine))
    counts = role_change_table([change for change in role_changes(*shown.holds, shown.roles) if change.role in roles])
    st.dataframe(counts, hide_index=True, column_config={"p": SMALL_NUMBER})
    table_downloads("role changes", counts, shown.facts)


def _flow(shown: Compared, between: Sequence[Transition]) -> None:
    """The diagram, and the heads of the transition clicked in it or chosen in the list below."""
    marks = heads_by_mark(between)
    st.markdown(wording.FLOW_SEE)
    chart("role flow", role_flow(between, shown.names), shown.facts, on_click=partial(_take_mark, marks))
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
        _heads(shown, marks[mark])


def _take_mark(marks: dict[str, tuple[Head, ...]], clicked: list[dict[str, Any]]) -> None:
    for point in clicked:
        if isinstance(mark := point.get("mark"), str) and mark in marks:
            st.session_state[TRANSITION] = mark


def _heads(shown: Compared, heads: Sequence[Head]) -> None:
    by_name = {head_name(*head): head for head in heads}
    pressed = [name for name, head in by_name.items() if head in shown.heads]
    st.session_state[HEAD] = pressed[-1] if pressed else None
    st.pills(wording.HEADS_OF, list(by_name), key=HEAD, on_change=_choose, args=(by_name,), help=wording.HEADS_HELP)
    if shown.on_inspect:
        frame.link_to_inspect(shown.heads)


def _choose(by_name: dict[str, Head]) -> None:
    """Choose the head of the pressed button in every view; pressing it again changes nothing."""
    name = st.session_state[HEAD]
    if name is not None:
        state.push_heads([by_name[name]])


def _how_sure(paired: PairedTests, certain: Callable[[Compared], Iterable[str]], shown: Compared, _: str) -> None:
    sentences = [wording.sizes(difference_sizes(paired, shown.least, shown.coarse))]
    effects = np.abs(paired.effect[[shown.roles.index(role) for role in shown.coarse]])
    effects = effects[~np.isnan(effects)]
    if effects.size:
        sentences.append(wording.tested(paired.alpha, shown.correction, float(np.median(effects))))
    st.markdown("\n".join(f"- {sentence}" for sentence in (*sentences, *certain(shown))))
    chart("all scores", score_change_scatter(paired, shown.coarse, shown.scale), shown.facts)


def how_certain(choice: Choice, pair: ComparedCheckpoint, shown: Compared) -> Iterator[str]:
    """How sure the differences are by the scores of single texts, in sentences."""
    indices = [shown.roles.index(role) for role in shown.coarse]
    changed, moved = shown.changed, (shown.holds[0] != shown.holds[1])[indices]
    in_both = (_is_stable(choice, pair, 0) & _is_stable(choice, pair, 1))[indices]
    yield wording.n_stable(int((changed & (in_both | ~moved).all(axis=0)).sum()), int(changed.sum()), pair.n_texts)
    for role in (*shown.coarse, *(role for role in ("delimiter:sep",) if role in shown.coarse_and_fine[1])):
        role_shift = shift(pair, choice, role)
        yield wording.shift(role, role_shift.overall, role_shift.p, role_shift.texts)
    divergence = divergence_of_heads(pair)
    if divergence is not None and divergence.max() > 0:
        per_layer = divergence.mean(axis=1)
        yield wording.moved(float(divergence.mean()), int(per_layer.argmax()))


def _is_stable(choice: Choice, pair: ComparedCheckpoint, side: int) -> Bool[np.ndarray, "role layer head"]:
    """Whether each label of one checkpoint stays the same in nearly all resamples of the texts."""
    scores = pair.sides[side].counted
    return controls.memory().get_or_put(
        "stable in a comparison",
        (pair.scored.key, side, choice.criterion),
        lambda: stability(pair.tests[side], resamples(scores.scores, scores.uniform)) >= CERTAIN,
    )


def _table(shown: Compared) -> None:
    table = shown.rows()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        roles = some_of("Roles", list(map(role_title, shown.roles)), key="compare roles", every="all roles")
        only_large = shown.large is not None and toggle(wording.ONLY_LARGE, key="compare significant")
    mask = table["role"].isin(roles)
    table = table[mask & shown.large.ravel() if shown.large is not None and only_large else mask]
    small = dict.fromkeys(("p", "p_adjusted", "wilcoxon_p"), SMALL_NUMBER)
    scores = ("mean_a", "mean_b", "difference", "low", "high", "t", "effect")
    score = {name: st.column_config.NumberColumn(format="%.3f") for name in scores}
    st.dataframe(table, hide_index=True, column_config={**small, **score})
    for sentences, letter in zip(shown.sentences, "ab"):
        table = with_sentences(table, sentences, f"mostly_{letter}")
    table_downloads("differences", table, shown.facts)


def unlike_shapes(choice: Choice, pair: ComparedCheckpoint, texts: tuple[Text, ...]) -> None:
    """What can be compared if the number of layers or heads differs, and why not more."""
    names, (tests_a, tests_b) = [engine.files.name for engine in pair.engines], pair.tests
    coarse, _ = shown_roles_of_all([tests.mean for tests in pair.tests], pair.roles)
    facts = facts_of(choice, pair, texts, {})
    st.info(wording.other_shape(tests_a.mean.shape[1:], tests_b.mean.shape[1:]))
    indices = [pair.roles.index(role) for role in coarse]
    holds = [tests.holds[indices] for tests in pair.tests]
    st.markdown(wording.DEPTH)
    applies = [has_scores(tests)[indices] for tests in pair.tests]
    shares = [np.where(known[:, None], side.mean(axis=2), np.nan) for known, side in zip(applies, holds)]
    by_depth = roles_by_depth(names, shares, [depths(side.shape[1]) for side in holds], coarse)
    chart("roles by depth", by_depth, facts)
    overall = np.stack([np.where(known, side.mean(axis=(1, 2)), np.nan) for known, side in zip(applies, holds)])
    n_heads = [side[0].size for side in holds]
    chart("overall shares", overall_shares(names, overall, n_heads, coarse), facts)


def save_comparison(
    visits: Visits, pair: ComparedCheckpoint, texts: tuple[Text, ...], heads: Sequence[Head], text: Text | None
) -> None:
    """Offer both checkpoints, of one shape; without a text, the first of the corpus that fits is drawn."""
    scored = ScoredTexts(texts, pair.scored.n_tokens, pair.scored.sides, tuple(heads), policy() == "truncate")
    drawn = text or first_that_fits(scored)
    settings, choice = visits[0].settings, visits[0].choice
    if drawn is None or settings != visits[1].settings or visits[1].engine.files.seed is not None:
        return  # a saved page names checkpoints that a reader can open

    def content() -> Content:
        attentions = [attention_in(visit.inference, visit.engine, drawn, settings) for visit in visits]
        return content_of(choice, pair.engines, settings, scored, (drawn, attentions))

    offer_page([engine.files.name for engine in pair.engines], partial(html_of, content))
