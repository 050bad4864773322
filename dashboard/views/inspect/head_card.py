"""The card of one head: its roles on the text and over the corpus, its scores, and the heads most like it."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS
from attention_sieve.core.importance.effects import Effects
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import AblationSettings
from attention_sieve.core.roles.hypotheses import HeadTests, few_texts, tests_of
from attention_sieve.core.roles.measures import RoleScores, Scale
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.roles.roles import role_named, shown_roles, similar_heads
from attention_sieve.core.roles.uncertainty.anytime import as_odds, odds
from attention_sieve.core.similarity.distances import HeadDistances, nearest_heads
from attention_sieve.core.statistics.evidence import lower_bound
from attention_sieve.core.wording import p_number
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.figure import MOST_MARKS, counted
from attention_sieve.dashboard.figures.roles.distributions import HeadScores, head_scores
from attention_sieve.dashboard.files.downloads import figure_downloads, table_downloads
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views.asking import kept_finding
from attention_sieve.dashboard.views.corpus import Corpus, kept_matches
from attention_sieve.dashboard.views.descriptions.sentences import kept_descriptions
from attention_sieve.dashboard.views.descriptions.wording import does
from attention_sieve.dashboard.views.distances import kept_distances
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.inspect import wording
from attention_sieve.dashboard.views.inspect.knows import what_it_knows
from attention_sieve.dashboard.views.pickers import toggle
from attention_sieve.dashboard.views.role_grid.evidence import evidence_chart

ALIKE: Final = 5


def head_views(
    visit: Visit, passed: PassedText, tested: Corpus | None, head: Head | None
) -> dict[str, Callable[[], None]]:
    """Functions that draw the views of a head over the corpus, by title; the titles are always the same."""
    titles = (wording.ROLES, WORDS[visit.choice.scale].nouns.capitalize(), wording.SIMILAR)
    if tested is None or head is None:
        missing = wording.NO_HEAD if head is None else wording.NO_TESTS
        return dict.fromkeys(titles, lambda: _say(missing))
    coarse, fine = shown_roles(tested.tests.mean, tested.tests.roles)
    tests = tests_of(tested.with_intervals(), tuple(role for role in tested.tests.roles if role in coarse + fine))
    facts = corpora.facts(visit, tested)
    draw = (
        lambda: _roles(visit, passed, tested, tests, head, facts),
        lambda: _spread(visit, passed, tested, tests, head, facts),
        lambda: _similar(visit, tests, head),
    )
    return dict(zip(titles, draw, strict=True))


def _say(sentence: str) -> None:
    st.caption(sentence)


def _roles(
    visit: Visit, passed: PassedText, tested: Corpus, tests: HeadTests, head: Head, facts: dict[str, str]
) -> None:
    """A head's roles with the statistics that decide them, over the corpus and on the text on screen."""
    name, indices = head_name(*head), _role_indices(tested.tests.roles, tests)
    on_text = _role_indices(passed.scored.roles, tests)
    table, columns = _table(passed.scored, tests, on_text, head), _columns(visit.choice)
    if tested.bets is not None:
        table = _with_evidence(table, tests, tested.bets.scores[:, indices, *head], head)
        columns = _evidence_columns(visit.choice)
    st.dataframe(_shown(table), hide_index=True, column_config=columns, height="content", placeholder="n/a")
    described = kept_descriptions(visit, tested.tests)
    mostly = {} if described is None else {"mostly": f"{name} {does(described.heads[head])}"}
    table_downloads(f"head {name}", table, facts | mostly)
    coarse, fine = shown_roles(tested.tests.mean, tested.tests.roles)
    evidence_chart(tested, head, fine if st.session_state.get("finer") else coarse, facts)


def _spread(
    visit: Visit, passed: PassedText, tested: Corpus, tests: HeadTests, head: Head, facts: dict[str, str]
) -> None:
    """How a head's scores are spread over the corpus, with those of the text on screen."""
    scale, indices = visit.choice.scale, _role_indices(tested.tests.roles, tests)
    on_text = zip(tests.roles, passed.scores[_role_indices(passed.scored.roles, tests), *head])
    of_head = HeadScores(
        scores=tested.scores[:, indices, *head],
        tests=tests,
        head=head,
        uniform=tested.scored.mean_references()[0][indices, head[0]],
        here={role: float(score) for role, score in on_text if np.isfinite(score)},
        scale=scale,
    )
    _scores(of_head, f"{WORDS[scale].nouns.capitalize()} of {head_name(*head)}", facts)


def _similar(visit: Visit, tests: HeadTests, head: Head) -> None:
    """The heads most like one, by their attention and by their scores."""
    _attending_alike(kept_distances(visit), head)
    _alike(tests, head, visit.choice.scale)
    st.page_link(st.session_state["pages"]["similarity"], label=wording.TO_SIMILAR, icon=":material/scatter_plot:")


def _role_indices(roles: tuple[str, ...], tests: HeadTests) -> list[int]:
    """Indices of the roles of some tests among others: the text on screen may have roles that the corpus has not."""
    return [roles.index(role) for role in tests.roles]


def _in_grid(roles: tuple[str, ...], shown: tuple[tuple[str, ...], tuple[str, ...]]) -> Bool[np.ndarray, " role"]:
    """Which roles are in a grid of these coarse and finer roles."""
    coarse, fine = shown
    return np.array([role in coarse or (role in fine and role_named(role).part_of in coarse) for role in roles])


def head_summary(visit: Visit, passed: PassedText, tested: Corpus | None, head: Head) -> None:
    """A head's roles, of those in the grid, in two sentences; positional ones are marked if known without a pass."""
    choice = visit.choice
    tau = choice.criterion.tau
    roles = passed.scored.roles
    shown = shown_roles(passed.scores, roles)
    above = [
        role for role, held in zip(roles, _in_grid(roles, shown) & passed.roles(choice.criterion)[:, *head]) if held
    ]
    greatest = passed.scored.greatest[0, :, head[0]]
    short = {role: float(most) for role, most in zip(roles, greatest) if most < tau and role in shown[0]}
    lines = [f"**Head {head_name(*head)}**", wording.text_summary(above)]
    sharing = set(visit.engine.files.sharing(head)) - {head, *visit.removed}
    if sharing:
        lines.append(wording.shares([head_name(*other) for other in sorted(sharing)]))
    if short:
        lines.append(wording.too_short(short))
    if tested is not None:
        tests, matched = tested.tests, kept_matches(visit)
        marked = matched.positional(tests)[:, *head] if matched else np.zeros(len(tests.roles), dtype=bool)
        rests = tested.finding.rests_on_first
        resting = np.zeros_like(marked) if rests is None else rests[:, *head]
        names = [wording.marked(*of_role) for of_role in zip(tests.roles, marked, resting, strict=True)]
        held = _in_grid(tests.roles, shown) & tests.holds[:, *head]
        lines.append(_over_corpus(choice, tested, names, held, head))
        notes = (tested.finding.note, few_texts(len(tested.scores)) if tested.bets is None else None)
        lines += [note for note in notes if note is not None]
    if (changed := _kept_effects(visit)) is not None and np.isfinite(changed.delta[head]):
        lines.append(_without(changed.delta, head, len(visit.texts)))
    if knows := what_it_knows(visit, head):
        lines.append(knows)
    st.markdown("  \n".join(lines))


def _kept_effects(visit: Visit) -> Effects | None:
    """Effects of switching off each head on the text vector, if they need no pass; None otherwise."""
    if not visit.texts:
        return None
    settings = AblationSettings(correction=visit.choice.criterion.correction)
    found = kept_finding(visit, ABLATION_ANALYSIS, settings, tuple(map(LabelledText, visit.texts)))
    return None if found is None else found.finding.effects


def _without(changes: Float[np.ndarray, "layer head"], head: Head, n_texts: int) -> str:
    """How much a head matters for the vector of a text, with its rank among all heads."""
    n_more = int((changes > changes[head]).sum())
    return wording.without_head(float(changes[head]), n_more + 1, int(np.isfinite(changes).sum()), n_texts)


def _over_corpus(
    choice: Choice, tested: Corpus, names: Sequence[str], holds: Bool[np.ndarray, " role"], head: Head
) -> str:
    """A head's roles over the corpus in a sentence, with their evidence where that decides."""
    n_texts = len(tested.scores)
    if tested.tests.evidence is not None:
        by_role = zip(names, holds, tested.tests.evidence[:, *head].tolist())
        return evidence_wording.corpus_summary([(name, odds(log)) for name, held, log in by_role if held], n_texts)
    is_tested = choice.criterion.method == "mean" or n_texts > 1
    return wording.corpus_summary([name for name, held in zip(names, holds) if held], n_texts, is_tested)


def _scores(of_head: HeadScores, title: str, facts: dict[str, str]) -> None:
    """The scores of a head by role; of more texts than a page holds as elements, each only if the reader asks."""
    name, scale = f"scores of {head_name(*of_head.head)}", of_head.scale
    n_scores = int(np.isfinite(of_head.scores).sum())
    if n_scores > MOST_MARKS and toggle(
        wording.every_score(n_scores, scale), key="every score", help=wording.EVERY_SCORE_HELP
    ):
        # imports Plotly, for which nobody waits who has not asked
        from attention_sieve.dashboard.figures.roles.many_scores import every_head_score

        every = every_head_score(of_head)
        camera = {"format": "png", "filename": f"attention-sieve_{name.replace(' ', '-')}", "scale": 2}
        st.plotly_chart(
            every.chart,
            width="stretch",
            alt=every.still.description,
            key="every head score",
            config={"toImageButtonOptions": camera},
        )
        figure_downloads(name, every.still, facts)
        with st.expander(f"{WORDS[scale].nouns.capitalize()} of each text"):
            st.dataframe(every.data, hide_index=True, placeholder="n/a")
            table_downloads(name, every.data, facts)
        return
    figure = head_scores(of_head)
    st.vega_lite_chart(figure.marks(), figure.spec, width="stretch", alt=figure.description, key="head scores")
    figure_downloads(name, figure, facts, title)


def _table(on_text: RoleScores, tests: HeadTests, indices: Sequence[int], head: Head) -> pd.DataFrame:
    fields = ("mean", "low", "high", "p", "p_uniform", "p_role", "p_adjusted", "texts", "holds", "constant")
    columns = {name: getattr(tests, name)[:, *head] for name in fields}
    text_columns = {
        "this text": on_text.scores[0, indices, *head],
        "uniform": on_text.uniform[0, indices, head[0]],
        "greatest": on_text.greatest[0, indices, head[0]],
    }
    return pd.DataFrame(
        {"role": tests.roles, **{name: values.astype(float) for name, values in text_columns.items()}, **columns}
    )


def _with_evidence(
    table: pd.DataFrame, tests: HeadTests, bets: Float[np.ndarray, "text role"], head: Head
) -> pd.DataFrame:
    """The table where evidence decides: odds in place of p-values, and a lower bound in place of the interval."""
    if tests.evidence is None:
        return table
    without = table.drop(columns=["high", "p", "p_uniform", "p_role", "p_adjusted", "constant"])
    return without.assign(low=lower_bound(bets, tests.settings.alpha), evidence=as_odds(tests.evidence[:, *head]))


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table in a form that fits half a page: the mean with its interval or bound, and what decided."""
    held = np.where(table["holds"], "yes", "no")
    if "evidence" in table:
        decided = {
            "mean": [_mean_and_bound(*row) for row in table[["mean", "low"]].to_numpy()],
            "evidence": [odds(log) for log in np.log(table["evidence"]).tolist()],
            "texts": table["texts"],
            "holds": held,
        }
    else:
        decided = {
            "mean": [_mean_and_interval(*row) for row in table[["mean", "low", "high"]].to_numpy()],
            "p": [p_number(p) if np.isfinite(p) else "no test" for p in table["p_adjusted"]],
            "texts": table["texts"],
            "holds": held + np.where(table["constant"], " (mean)", ""),
        }
    text_scores = [_of_at_most(*row) for row in table[["this text", "greatest"]].to_numpy()]
    return pd.DataFrame({"role": table["role"], "this text": text_scores, **decided})


def _of_at_most(score: float, greatest: float) -> str | None:
    return f"{score:z.2f} of {greatest:.2f}" if np.isfinite(score) else None


def _mean_and_interval(mean: float, low: float, high: float) -> str | None:
    if not np.isfinite(mean):
        return None
    return f"{mean:z.2f} ({low:z.2f}, {high:z.2f})" if np.isfinite(low) else f"{mean:z.2f}"


def _mean_and_bound(mean: float, low: float) -> str | None:
    return f"{mean:z.2f} (≥ {low:z.2f})" if np.isfinite(mean) else None


def _columns(choice: Choice) -> dict[str, Any]:
    level, scale = f"{100 * (1 - choice.criterion.alpha):g}", choice.scale
    columns = st.column_config
    return {
        "role": columns.TextColumn(width=104),
        "this text": columns.TextColumn(width=90, help=wording.COLUMN_HERE[scale]),
        "mean": columns.TextColumn(f"mean ({level}%)", width=110, help=wording.column_mean(scale)),
        "p": columns.TextColumn("p adj.", width=58, help=wording.COLUMN_P),
        "texts": columns.NumberColumn(width=44, help=wording.COLUMN_TEXTS),
        "holds": columns.TextColumn(width=78, help=wording.COLUMN_CONSTANT),
    }


def _evidence_columns(choice: Choice) -> dict[str, Any]:
    level = f"{100 * (1 - choice.criterion.alpha):g}"
    columns = st.column_config
    return _columns(choice) | {
        "mean": columns.TextColumn(f"mean (≥, {level}%)", width=112, help=evidence_wording.COLUMN_MEAN),
        "evidence": columns.TextColumn(width=76, help=evidence_wording.COLUMN_EVIDENCE),
        "holds": columns.TextColumn(width=56),
    }


def _alike(tests: HeadTests, head: Head, scale: Scale) -> None:
    nearest = similar_heads(tests.mean, head, logarithmic=scale == "score")[:ALIKE]
    named = [(head_name(*other), distance) for other, distance in nearest]
    st.markdown(
        f"With similar {WORDS[scale].nouns}: {', '.join([name for name, _ in named])}",
        help=wording.alike_help(named, scale),
    )


def _attending_alike(distances: HeadDistances | None, head: Head) -> None:
    """The heads most like one by attention, if the distances are known; the linked page computes them."""
    if distances is None:
        return
    nearest = nearest_heads(distances.mean, head)[:ALIKE]
    named = [(head_name(*other), distance) for other, distance in nearest]
    unit = f"nats, mean over the rows of {counted(distances.n_texts, 'text')}"
    st.markdown(wording.nearest([name for name, _ in named]), help=wording.nearest_help(named, unit))
