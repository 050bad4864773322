"""The chosen results folder, and the chosen part of its texts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import streamlit as st

from attention_sieve import __version__
from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.command_lines import command_line, given_options
from attention_sieve.core.corpus.manifest import STATISTICS
from attention_sieve.core.corpus.results import CorpusPart, Results
from attention_sieve.core.corpus.statistics import EVERYTHING, Stratum
from attention_sieve.core.roles.hypotheses import Criterion, HeadTests
from attention_sieve.core.roles.measures import USUAL_TAU
from attention_sieve.dashboard import controls, runs, state
from attention_sieve.dashboard.files.provenance import THEN
from attention_sieve.dashboard.offers import open_offered_results, results_folder
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER, KINDS
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views.pickers import from_list
from attention_sieve.dashboard.views.results import wording

MAX_CACHED: Final = 16
"""Number of parts of corpora whose statistics are cached in memory, for all readers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    choice: Choice
    results: Results
    part: CorpusPart
    facts: dict[str, str]

    @property
    def reset(self) -> tuple[object, ...]:
        """Changes whenever the components have to take over the chosen heads."""
        return self.results.folder, self.results.fingerprint, state.n_pushed()

    def heads(self, otherwise: Head) -> list[Head]:
        n_layers, n_heads = self.shape
        return state.chosen_heads(n_layers, n_heads, otherwise)

    @property
    def shape(self) -> tuple[int, int]:
        return next(iter(sums.n.shape[-2:] for sums in self.part.statistics.sums.values() if sums.n.ndim > 3))


def texts_or_results(on_texts: Callable[[], None], on_results: Callable[[Results], None]) -> Callable[[], None]:
    """The body of a page on the corpus of the sidebar: on its texts, or where that is a results folder on this."""
    return partial(_on_results, on_results) if st.session_state.get("corpus") == A_RESULTS_FOLDER else on_texts


def _on_results(draw: Callable[[Results], None]) -> None:
    """Draw the chosen results folder, below the panel of its run while that is on.

    Raises: AnalysisError if the folder holds no results.
    """
    name = st.session_state.get("results")
    if not name:
        st.info(controls.wording.WAIT_RESULTS)
        return
    folder = results_folder(str(name))
    if (progress := runs.look(folder)) is not None and progress.state == "running":
        say = partial(wording.running, folder.name)
        if is_public():
            st.info(plain(say(progress)))
        else:
            runs.panel(folder, "corpus run", say, kind=KINDS["corpus"], changes=lambda _: None)
        if not (folder / STATISTICS).is_file():
            return
    draw(open_offered_results(str(name)))


def opened_results(results: Results, question: Literal["roles", "surface"] = "roles") -> Opened:
    choice, scale = state.choice(), results.settings.scale
    if scale != choice.scale:  # tau of the test settings belongs to another scale
        choice = replace(choice, criterion=replace(choice.criterion, tau=USUAL_TAU[scale]))
    stratum = _stratum(results)
    showing = _show(choice, results, stratum, f"--question={question}")
    return Opened(
        choice=choice,
        results=results,
        part=part_of(results, stratum),
        facts=_facts(choice, results, stratum) | {"command": showing},
    )


def commands_of(a: Opened, b: Opened) -> str:
    """Lines that write the tests of two results, and where they are of all texts, test their differences."""
    stratum, folders = a.part.stratum, [side.results.folder.name for side in (a, b)]
    lines = [
        _show(side.choice, side.results, stratum, "--question=roles", output=f"{letter}.parquet")
        for letter, side in zip("ab", (a, b), strict=True)
    ]
    return THEN.join([*([command_line(["corpus", "compare", *folders])] if stratum == EVERYTHING else []), *lines])


def _show(choice: Choice, results: Results, stratum: Stratum, *options: str, output: str = "results.parquet") -> str:
    part = [] if stratum == EVERYTHING else [f"--part={stratum.kind}={stratum.name}"]
    judging = given_options(choice.criterion, Criterion.usual(results.settings.scale))
    return command_line(["corpus", "show", results.folder.name, *options, *part, *judging, "--output", output])


def busiest(tests: HeadTests) -> Head:
    """The head with the most roles."""
    return highest_head(tests.holds.sum(axis=0))


def parts_of(opened: Opened) -> list[CorpusPart]:
    """All parts of the corpus; none, after saying so, where it has one only."""
    parts = [part_of(opened.results, stratum) for stratum in opened.results.strata]
    if len(parts) > 1:
        return parts
    st.info(wording.NO_PARTS)
    return []


def part_of(results: Results, stratum: Stratum) -> CorpusPart:
    """The statistics of a part, read once per version of its file."""
    return _cached_part(results.file.path.stat().st_mtime_ns, str(results.folder), stratum, results)


@st.cache_resource(max_entries=MAX_CACHED, show_spinner=False)
def _cached_part(modified: int, folder: str, stratum: Stratum, _results: Results) -> CorpusPart:
    return _results.part(stratum)


def _stratum(results: Results) -> Stratum:
    names = {stratum.title: stratum for stratum in results.strata}
    if len(names) == 1:
        return EVERYTHING
    return from_list(wording.PART, names, key="part", help=wording.PART_HELP, width=280)


def say_what(opened: Opened) -> None:
    st.markdown(f"{_line(opened)} {wording.FROM_STATISTICS}")
    _say_scale(opened)


def say_both(a: Opened, b: Opened) -> None:
    """Describe two results on the same texts, the reference (a) and the compared ones (b)."""
    st.markdown(f"- **(a)** {_line(a)}\n- **(b)** {_line(b)}\n\n{wording.FROM_STATISTICS}")
    _say_scale(a)


def _line(opened: Opened) -> str:
    results, part = opened.results, opened.part
    left_out = [
        f"{n:,} {reason}"
        for n, reason in ((results.n_too_long, "too long"), (results.n_without_token, "without a known token"))
        if n and part.stratum == EVERYTHING
    ]
    name = plain(results.folder.name)
    return wording.corpus_line(name, plain(results.checkpoint), part.n_texts, part.n_tokens, left_out)


def _say_scale(opened: Opened) -> None:
    settings = opened.results.settings.score_settings
    if settings.scale != opened.choice.scale:
        st.info(wording.SCORED_WITH + plain(f"{settings.scale}, {settings.direction}."))


def _facts(choice: Choice, results: Results, stratum: Stratum) -> dict[str, str]:
    criterion, settings = choice.criterion, results.settings
    part = part_of(results, stratum)
    return {
        "program": f"Attention Sieve {__version__}",
        "checkpoint": results.checkpoint,
        "fingerprint": results.fingerprint,
        "dtype": settings.dtype,
        "parser": "yes" if settings.parses else "no",
        "corpus": f"texts of {results.folder.name}",
        "corpus texts": str(part.n_texts),
        "part": stratum.title,
        "tau": f"{criterion.tau:g}",
        "alpha": f"{criterion.alpha:g}",
        "rule": criterion.rule,
        "correction": criterion.correction,
        "family": criterion.family,
        "scale": settings.scale,
        "direction": settings.direction,
    }
