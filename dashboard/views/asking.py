"""What passes find of many items, as the pages need it: under a progress bar, and said what was left out."""

from collections.abc import Sequence

from cache.inference import Answers, Engine, Inference
from cache.questions import Item, Question
from core.errors import EveryTextTooLong
from dashboard.plain import show_error
from dashboard.progress import with_progress
from dashboard.state import Choice
from dashboard.views.corpus import ask_about_long_texts, policy


def asked(
    inference: Inference, engine: Engine, chosen: Choice, question: Question[Item], items: Sequence[Item]
) -> Answers | None:
    """Find what is missing under a progress bar; None where the reader has to do something first.

    Args:
        inference: shared by all sessions.
        engine: what computes; the settings of its passes are the sidebar's.
        chosen: the shared choices.
        question: what is to be found.
        items: one or more.

    Raises: AnalysisError of any stage.
    """
    too_long, settings = policy(), chosen.pass_settings(engine)
    try:
        return inference.kept_answers(engine, question, items, settings, too_long=too_long) or with_progress(
            (question.kind, engine, tuple(items), settings, too_long),
            lambda report: inference.answers(engine, question, items, settings, too_long=too_long, report=report),
        )
    except EveryTextTooLong as error:
        show_error(error)
        ask_about_long_texts(error.texts)
        return None
