"""What stands beside and below the grid of the laboratory: all saved steps, and what each head does for copies."""

from dataclasses import replace
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.core.laboratory.outcomes import CopyScore
from attention_sieve.core.laboratory.sequences import VOCABULARY, is_copied
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.dashboard import controls, state, trainings
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.film import film
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.laboratory import ALONE, IN_LESSON, NO_HEADS, formation
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.laboratory import wording
from attention_sieve.dashboard.views.laboratory.numbers import (
    backups_at,
    copies_at,
    drawn_steps,
    roles_at,
    strongest_heads,
)
from attention_sieve.dashboard.views.laboratory.training import resume_or_delete, training
from attention_sieve.dashboard.views.leading import shows
from attention_sieve.dashboard.views.pickers import halves
from attention_sieve.dashboard.views.toy import ROLES, name_at, patterns_at, visit_at

PAGE: Final = "laboratory"


def figure_of_steps(run: SavedRun, visit: Visit, tested: Corpus, *, with_heads: bool) -> None:
    """The losses over all steps, and below them the strongest heads if these are wanted; without them, in a lesson, the
    losses up to the step that is shown."""
    probes = controls.PROBES[visit.choice.corpus]
    steps = drawn_steps(run.progress.saved) if with_heads else []
    strongest = strongest_heads({step: visit_at(run, step, probes) for step in steps}) if steps else NO_HEADS
    if strongest is None:
        return
    progress, shown, is_in_lesson = run.progress, _step_of(visit), state.lesson_is_on(PAGE)
    held_out = [score for score in progress.held_out if with_heads or not is_in_lesson or score.step <= shown]
    last, alone = max(1, progress.steps, progress.step), IN_LESSON if is_in_lesson else ALONE
    figure = formation(held_out, strongest, shown, last, len(VOCABULARY), alone)
    name = "heads in formation" if with_heads else "loss of copied tokens"
    chart(name, figure, without_command(corpora.facts(visit, tested)) | {"checkpoint": run.name})
    if 0 < len(steps) < len(progress.saved):
        st.caption(f"{len(steps):,} of {counted(len(progress.saved), 'saved step')} are drawn.")


def film_download(run: SavedRun, visit: Visit, tested: Corpus) -> None:
    """Offer the patterns at all saved steps, as many as are drawn, as one file."""
    probes, steps = controls.PROBES[visit.choice.corpus], drawn_steps(run.progress.saved)
    losses = {score.step: score.loss for score in run.progress.held_out}
    captions = [wording.frame(step, losses.get(step)) for step in steps]
    facts = without_command(corpora.facts(visit, tested)) | {"checkpoint": run.name}
    comment = "\n".join(f"{name}: {fact}" for name, fact in facts.items())
    visits = [visit_at(run, step, probes) for step in steps]  # here: the file is made outside of the session

    st.download_button(
        wording.FILM_FILE,
        lambda: film([patterns_at(each).attention for each in visits], captions, comment),
        file_name=f"{run.name}.gif",
        mime="image/gif",
        key="film file",
        on_click="ignore",
        type="tertiary",
        icon=":material/movie:",
    )


def text_of_patterns(text_attention: TextAttention) -> None:
    text = text_attention.text.queries
    words = (
        f"**{plain(token)}**" if copied else plain(token) for token, copied in zip(text.tokens, is_copied(text.ids))
    )
    st.caption(f"The text of the patterns (bold: could be known): {' '.join(words)}")


def what_heads_do(run: SavedRun, visit: Visit, tested: Corpus, heads: list[Head]) -> None:
    """What the heads at copies are, and what each head does for the copied tokens."""
    in_lesson = state.lesson_is_on(PAGE)
    left, right = halves()
    with left:
        if not in_lesson:
            _verdict(run, visit)
        copied = _copies(visit) if shows(PAGE, "switches") else None
    with right:
        if copied is not None:
            show_head_map(
                _rises(visit, copied),
                head_selection("laboratory map", heads, (visit.engine.files.fingerprint, state.n_pushed())),
                file="laboratory loss",
                facts=without_command(corpora.facts(visit, tested)),
            )
    if not in_lesson:
        _what_next(run, visit)


def another_model() -> None:
    """The active training, or the form of another model."""
    if trainings.running() is not None or is_public():
        training(has_form=False)
        return
    with st.expander(wording.ANOTHER):
        training(has_form=True)


def _verdict(run: SavedRun, visit: Visit) -> None:
    """Say whether heads that look at copies find them at any distance, or only look back a fixed one."""
    holds = {}
    for kind in wording.KINDS.values():
        found = roles_at(visit_at(run, _step_of(visit), kind, visit.choice.off))
        if found is None:
            return
        holds[kind] = found.tests.holds[ROLES.index("induction")]
    n_drawn, n_rulers = int(holds["repeats"].sum()), int((holds["fixed-repeats"] & ~holds["repeats"]).sum())
    st.markdown(wording.verdict(n_drawn, n_rulers) if n_drawn or n_rulers else wording.NO_COPIES)
    if n_drawn > 1:
        _stand_ins(visit_at(run, _step_of(visit), "repeats", visit.choice.off))


def _stand_ins(visit: Visit) -> None:
    """Say which heads stand in for one another, if any do."""
    found = backups_at(visit)
    if found is not None and found.redundant:
        index, effects = found.redundant[0], found.effects
        said = wording.stand_ins(
            found.sets[index], effects.together[index], effects.most_alone[index], effects.p[index]
        )
        st.markdown(said)


def _step_of(visit: Visit) -> int:
    return int(visit.choice.checkpoint.rpartition("-")[2])


def _copies(visit: Visit) -> CopyScore | None:
    """How well the model continues repetitions, with all heads on and without those that are off; None where the reader
    has stopped the work."""
    now = copies_at(visit)
    all_on = copies_at(replace(visit, choice=replace(visit.choice, off=()))) if visit.choice.off else now
    if now is None or all_on is None:
        return None
    with st.container(horizontal=True):
        is_changed = bool(visit.choice.off)
        st.metric(
            wording.COPIED,
            f"{now.loss:.2f}",
            f"{now.loss - all_on.loss:+.2f}" if is_changed else None,
            delta_color="inverse",
            help=wording.COPIED_HELP,
            border=True,
        )
        st.metric(
            wording.PREDICTED,
            f"{now.accuracy:.0%}",
            f"{100 * (now.accuracy - all_on.accuracy):+.0f} points" if is_changed else None,
            help=wording.PREDICTED_HELP,
            border=True,
        )
    return now


def _rises(visit: Visit, now: CopyScore) -> HeadMap:
    rises = now.loss_without - now.loss
    return HeadMap(
        title=wording.RISE,
        label=f"Heads of {visit.engine.files.name}: {wording.RISE}",
        values=rises,
        bound=round_bound(float(np.abs(rises).max())),
        signed=True,
        low_label=wording.BETTER,
        high_label=wording.WORSE,
    )


def _what_next(run: SavedRun, visit: Visit) -> None:
    pages, name = st.session_state["pages"], visit.choice.checkpoint
    with st.container(horizontal=True, vertical_alignment="center", key="laboratory next"):
        for label, page, icon, link in (
            (wording.IN_INSPECT, "inspect", ":material/search:", {"checkpoint": name, "corpus": visit.choice.corpus}),
            (
                wording.IN_COMPARE,
                "compare",
                ":material/compare:",
                {"checkpoint": name_at(run, run.progress.saved[0]), "with": name, "corpus": visit.choice.corpus},
            ),
        ):
            st.page_link(pages[page], label=label, icon=icon, query_params=link)
        resume_or_delete(run)
