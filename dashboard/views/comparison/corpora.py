"""Two checkpoints on the same corpus of any size, compared by their statistics."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import pandas as pd
import streamlit as st

from attention_sieve.core.comparison.sizes import difference_sizes, is_large
from attention_sieve.core.corpus.paired import check_same_texts, read_differences
from attention_sieve.core.corpus.results import Results
from attention_sieve.core.corpus.statistics import EVERYTHING
from attention_sieve.core.roles.hypotheses import few_texts
from attention_sieve.core.roles.tables import by_head
from attention_sieve.dashboard import controls, link, state
from attention_sieve.dashboard.files.provenance import COMPARED, DIFFERENCES
from attention_sieve.dashboard.offers import offered_results, open_offered_results
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.comparison import wording as compare_wording
from attention_sieve.dashboard.views.comparison.changes import changes
from attention_sieve.dashboard.views.comparison.differences import grid_between, how_far_between
from attention_sieve.dashboard.views.comparison.numbers import Compared, chosen_least
from attention_sieve.dashboard.views.comparison.summary import head_shown, say_what_changed
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.results import wording
from attention_sieve.dashboard.views.results.chosen import (
    Opened,
    commands_of,
    opened_results,
    part_of,
    say_both,
    say_what,
)

TESTED = ("texts", "mean_a", "mean_b", "difference", "low", "high", "t", "p", "p_adjusted", "effect", "differs")


IN_EARLIER_LINKS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "results compare": (
        "compare details",
        {"Which heads": compare_wording.CHANGES, "Grids": compare_wording.EACH, "Table": compare_wording.TABLE},
    ),
    "results compare role": ("compare role", {}),
}
"""Names that the tabs and the role of results folders had in links, with those of today, and the tabs' titles."""


def over_corpora(results: Results) -> None:
    for earlier, (name, values) in IN_EARLIER_LINKS.items():
        if (value := link.take(earlier)) is not None:
            st.session_state[name] = st.query_params[name] = values.get(value, value)
            link.put([earlier], {})
    places = frame.places()
    with places.controls:
        a = opened_results(results)
        other = _other(a)
        far = how_far_between()
    if other is None:
        with places.finding:
            say_what(a)
            st.info(wording.NO_OTHER)
        return
    check_same_texts(a.results, other)
    b = replace(a, results=other, part=part_of(other, a.part.stratum))
    if a.shape != b.shape:
        st.info(
            plain(f"{a.results.checkpoint} and {other.checkpoint} do not have the same number of layers and heads.")
        )
        return
    shown = _compared(a, b)
    with places.finding:
        say_what_changed(shown)
    with places.picture:
        grid_between(shown, far)
        head_shown(shown)
    with places.sections:
        say_both(a, b)
        changes(shown, partial(_remarks, a, b, shown), certain=_over_all_roles)
    state.put_in_link(shown.heads)


def _other(a: Opened) -> Results | None:
    names = [name for name, folder in offered_results().items() if folder != a.results.folder.resolve()]
    name = st.selectbox(
        wording.COMPARED,
        names,
        index=None,
        key="other results",
        accept_new_options=not controls.public.is_public(),
        help=wording.COMPARED_HELP,
        bind="query-params",
        persist_state="session",
    )
    return open_offered_results(str(name)) if name else None


def _compared(a: Opened, b: Opened) -> Compared:
    choice, scale, is_whole = a.choice, a.results.settings.scale, a.part.stratum == EVERYTHING
    tests = a.part.tests(choice.criterion), b.part.tests(choice.criterion)
    paired = read_differences(a.results, b.results, choice.criterion) if is_whole else None
    least = chosen_least(scale)

    def rows() -> pd.DataFrame:
        columns = {f"holds_{letter}": side.holds for letter, side in zip("ab", tests)}
        if paired is not None:
            tested = {name: getattr(paired, name) for name in TESTED}
            return by_head(paired.roles, {**tested, "large": is_large(paired, least), **columns})
        means = {f"mean_{letter}": side.mean for letter, side in zip("ab", tests)}
        return by_head(tests[0].roles, {"difference": tests[1].mean - tests[0].mean, **means, **columns})

    return Compared(
        names=(a.results.checkpoint, b.results.checkpoint),
        fingerprints=(a.results.fingerprint, b.results.fingerprint),
        tests=tests,
        references=(a.part.references(), b.part.references()),
        paired=paired,
        all_tests=[tests],
        scale=scale,
        correction=choice.correction,
        least=least,
        facts={
            **a.facts,
            COMPARED: b.results.checkpoint,
            "its fingerprint": b.results.fingerprint,
            "differences": DIFFERENCES,
            "least difference": f"{least:g}",
            "command": commands_of(a, b),
        },
        rows=rows,
        note=few_texts(a.part.n_texts),
        on_inspect=False,
    )


def _over_all_roles(shown: Compared) -> list[str]:
    if shown.paired is None:
        return []
    return [wording.differing(difference_sizes(shown.paired, shown.least), shown.paired.alpha)]


def _remarks(a: Opened, b: Opened, shown: Compared) -> None:
    """Why roles were not tested, and how differences can be."""
    reasons = a.part.untested(shown.tests[0])
    if reasons := {role: reason for role, reason in reasons.items() if role in shown.coarse}:
        st.markdown(evidence_wording.untested(reasons))
    if a.part.stratum != EVERYTHING:
        st.info(wording.PAIRED_OVER_ALL)
    elif shown.paired is None and controls.public.is_public():
        st.info(wording.NOT_PAIRED_HERE)
    elif shown.paired is None:
        st.info(wording.NOT_PAIRED)
        folders = [str(side.results.folder.resolve()) for side in (a, b)]
        st.code(shlex.join(["python", "-m", "attention_sieve", "corpus", "compare", *folders]), language=None)
