"""Compare: two or more checkpoints on the same texts, and what changes from the reference to each other."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.core.checkpoints.find import BUNDLED, randomly_initialised
from attention_sieve.core.checkpoints.saved_runs import SavedRun, run_and_step, steps_of_one_run
from attention_sieve.core.errors import AnalysisError, EveryTextTooLong
from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.dashboard import controls, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.offers import fine_tuned_from, runs_here
from attention_sieve.dashboard.plain import errors_shown, show_error
from attention_sieve.dashboard.samples import REVIEW
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.both_texts import arcs_between, same_head_in_both
from attention_sieve.dashboard.views.comparison.corpora import over_corpora
from attention_sieve.dashboard.views.comparison.differences import grid_between, grids, how_far_between
from attention_sieve.dashboard.views.comparison.numbers import (
    Compared,
    ComparedCheckpoint,
    Scored,
    Visits,
    n_other_tokens,
    of_checkpoints,
    on_common_texts,
    scored,
    tested,
    training_of,
)
from attention_sieve.dashboard.views.comparison.others import chosen_names, engines_of, how_to_get_another
from attention_sieve.dashboard.views.comparison.summary import head_shown, say_what_changed, what_changed_in_roles
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.leading import lesson_panel, lesson_place, shows
from attention_sieve.dashboard.views.pickers import halves
from attention_sieve.dashboard.views.results.chosen import texts_or_results
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED, text_on_screen

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
REVIEW_TYPED: Final = write_typed([REVIEW])


def show() -> None:
    frame.page("Compare", wording.SEE, texts_or_results(_compare, over_corpora), NOTES)


def _compare() -> None:
    choice = state.choice()
    are_off, choice = choice.off, replace(choice, off=())
    runs, is_in_lesson = runs_here(choice.checkpoint), state.lesson_is_on("compare")
    lesson = lesson_place() if is_in_lesson else None
    places = frame.places()
    picture, below = places.picture.container(key="compared"), places.picture.container()
    instead = None if is_in_lesson else fine_tuned_from(choice.checkpoint)
    with places.controls:
        far = 0.5 if is_in_lesson else how_far_between()
        names = chosen_names(choice, runs, instead)
    reference, inference = controls.engine(choice), controls.inference()
    with places.finding:
        if are_off:
            st.info(wording.ALL_ON)
        others = engines_of(choice, names)
    if not names and not is_in_lesson:
        if choice.checkpoint == BUNDLED:
            others = [replace(reference, files=randomly_initialised(reference.files))]
            picture.empty()  # keeps its place
        with below:
            how_to_get_another(wording.STANDS_IN if others else wording.CHOOSE_SECOND)
    with places.controls:
        text = _typed([choice.checkpoint, *names]) if others else None
    if lesson is not None:
        visit = Visit(choice=choice, engine=reference, inference=inference, texts=())
        lesson_panel(lesson, visit, others=tuple(others), typed="" if text is None else write_typed([text]))
    if not others:
        return
    corpus = controls.corpus_texts(choice)
    texts = corpus
    for engine in (reference, *others):
        texts = frame.readable(choice, engine, texts)
    if not texts:
        frame.ask_for_texts(choice, corpus)
        return
    if any(text.given for text in texts) and len({_vocabulary(each) for each in (reference, *others)}) > 1:
        st.info(wording.OTHER_VOCABULARY)
        return
    # In a lesson the progress, which vanishes, stands above nothing that it would move.
    with places.sections if is_in_lesson else places.finding:
        pairs = _pairs(inference, choice, reference, others, texts)
    if pairs:
        _draw(inference, choice, pairs, runs, text, texts, replace(places, picture=picture), far)


def _vocabulary(engine: Engine) -> tuple[str, ...]:
    """Digest of the file of its tokenizer: ids may mean other tokens where it differs."""
    return tuple(file.sha256 for file in engine.files.states if file.name == "tokenizer.json")


def _typed(names: Sequence[str]) -> Text | None:
    """The typed text on screen; initially a movie review if one of the checkpoints was fine-tuned on reviews."""
    of_reviews = SAMPLE_FINE_TUNING in {run_and_step(name)[0] for name in names}
    start = REVIEW_TYPED if of_reviews else EXAMPLE_TYPED
    typed = controls.typed_texts(shared_wording.YOUR_TEXTS, "text", start, height=80)
    with errors_shown():
        return text_on_screen(controls.read_typed_texts(typed))
    return None


def _pairs(
    inference: Inference, choice: Choice, reference: Engine, others: Sequence[Engine], texts: tuple[Text, ...]
) -> list[ComparedCheckpoint]:
    """Each checkpoint against the reference on the same texts; an error in one does not affect the others."""
    scores: list[Scored] = []
    for engine in others:
        try:
            comparison = scored(inference, (reference, engine), choice, texts)
        except AnalysisError as error:
            show_error(error)
            if isinstance(error, EveryTextTooLong):
                ask_about_long_texts(error.texts, engine.files.name)
                break
            continue
        if comparison is None:
            break  # stopped: the progress bar says so and offers to continue
        scores.append(comparison)
    else:
        _say_too_long(scores)
    return [tested(comparison, choice) for comparison in on_common_texts(scores)] if scores else []


def _say_too_long(scores: Sequence[Scored]) -> None:
    """Say which texts are left out of all comparisons or cut, and because of which checkpoints."""
    index_sets = [{index for index, _ in comparison.too_long} for comparison in scores]
    common = set.intersection(*index_sets) if index_sets else set()
    limiting = [comparison.engines[1].files.name for comparison, indices in zip(scores, index_sets) if indices > common]
    lengths = dict(sorted(text_and_length for comparison in scores for text_and_length in comparison.too_long))
    ask_about_long_texts(tuple(lengths.items()), ", ".join(limiting))


def _draw(
    inference: Inference,
    choice: Choice,
    pairs: Sequence[ComparedCheckpoint],
    runs: Sequence[SavedRun],
    text: Text | None,
    corpus: tuple[Text, ...],
    places: frame.Places,
    far: float,
) -> None:
    with places.controls:
        pair = pairs[0] if len(pairs) == 1 else _selected_pair(pairs)
    texts, is_in_lesson = tuple(corpus[position] for position in pair.scored.positions), state.lesson_is_on("compare")
    if not pair.same_shape:
        if first_screen_is_drawn() and not is_in_lesson:
            from attention_sieve.dashboard.views.comparison.changes import unlike_shapes

            unlike_shapes(choice, pair, texts)
        return
    pairs = [other for other in pairs if other.same_shape]
    training = training_of(pair.name, pair.engines[0].files.name, runs)
    shown = of_checkpoints(choice, pair, pairs, texts, training.sentence)
    a, b = (Visit(choice=choice, engine=engine, inference=inference, texts=corpus) for engine in pair.engines)
    if is_in_lesson:
        _of_lesson((a, b), shown, text)
        return
    with places.finding:
        say_what_changed(shown)
        if training.chance is not None:
            st.warning(wording.not_above_chance(training.chance), icon=":material/warning:")
    with places.picture:
        left, right = halves()
        with left:
            grid_between(shown, far)
        with right:
            head_shown(shown)
            if text is not None:
                arcs_between((a, b), shown, text, far)
    state.put_in_link(shown.heads)
    if not first_screen_is_drawn():
        return
    # Charts and tables import pandas, which would delay the first pictures.
    from attention_sieve.dashboard.views.comparison import changes

    changes.save_comparison((a, b), pair, texts, shown.heads, text)
    if choice.corpus == controls.TYPED and choice.criterion.method == "test":
        st.info(wording.TYPED)
    steps = steps_of_one_run([shown.names[0], *(other.name for other in pairs)], runs)
    over = wording.OVER_CHECKPOINTS if steps is None else wording.OVER_STEPS
    of_text = {} if text is None else {wording.SIDE_BY_SIDE: lambda shown, _: same_head_in_both((a, b), shown, text)}
    with places.sections:
        changes.changes(
            replace(shown, sentences=(kept_sentences(a, pair.tests[0]), kept_sentences(b, pair.tests[1]))),
            partial(_remarks, pair),
            of_text | ({over: partial(changes.over_checkpoints, choice, pair, pairs, steps)} if len(pairs) > 1 else {}),
            {
                wording.LAYERS: partial(changes.per_layer, choice, pair),
                wording.DIVERGENCE: partial(changes.how_far, choice, pair, pairs),
            },
            partial(changes.how_certain, choice, pair),
        )


def _of_lesson(visits: Visits, shown: Compared, text: Text | None) -> None:
    """What a step of a lesson speaks of."""
    if shows("compare", "summary"):
        st.container(key="what changed").markdown(f"**{what_changed_in_roles(shown)}**")
    if text is not None:
        same_head_in_both(visits, shown, text)
    state.put_in_link(shown.heads)
    if first_screen_is_drawn() and shows("compare", "grids"):
        grids(shown)


def _remarks(pair: ComparedCheckpoint) -> None:
    if n_other := n_other_tokens(pair):
        st.info(wording.other_tokens(n_other, len(pair.scored.positions)))


def _selected_pair(pairs: Sequence[ComparedCheckpoint]) -> ComparedCheckpoint:
    names = [pair.name for pair in pairs]
    if st.session_state.get("focus", names[-1]) not in names:
        st.session_state["focus"] = names[-1]
    name = st.select_slider(
        wording.FOCUS,
        names,
        names[-1],
        key="focus",
        help=wording.FOCUS_HELP,
        bind="query-params",
        persist_state="session",
    )
    return pairs[names.index(str(name))]
