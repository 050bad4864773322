"""Texts with gold mentions for the descriptions of heads: the reader's own, or the example texts."""

from collections.abc import Sequence
from dataclasses import dataclass

from cache.answers import Answers
from core.coreference.accuracy import MentionChoices
from core.coreference.mentions import MentionText
from core.coreference.question import choice_question
from core.descriptions.mentions import ReadMentions
from dashboard.progress import with_progress
from dashboard.samples import mention_sample
from dashboard.views.descriptions import wording
from dashboard.views.frame import Visit
from dashboard.views.parsers.coreference.choices import kept_own_mentions


@dataclass(frozen=True, eq=False, kw_only=True)
class AskedMentions:
    """Texts with mentions, and what every head chooses."""

    name: str
    texts: Sequence[MentionText]
    answers: Answers[MentionChoices]

    @property
    def read(self) -> ReadMentions:
        """Those that the checkpoint has read."""
        return ReadMentions(
            name=self.name,
            texts=[self.texts[place] for place in self.answers.positions],
            choices=self.answers.results,
        )


def known_mentions(visit: Visit, *, may_ask: bool) -> AskedMentions | None:
    """The texts that the reader read on the page Grammar, as far as no pass is needed; else the example texts.

    Args:
        visit: what the page works with.
        may_ask: whether a pass may be made over the example texts.

    Returns: None where a pass is needed and may not be made, or is stopped, and for attention between two texts.
    """
    question = choice_question("mean")
    if visit.settings.kind not in question.kinds:
        return None
    if (own := kept_own_mentions(visit)) is not None:
        name, windows, answers = own
        return AskedMentions(name=name, texts=windows, answers=answers)
    inference, engine, settings, texts = visit.inference, visit.engine, visit.settings, mention_sample()
    found = inference.kept(engine, question, texts, settings, too_long="truncate")
    if found is None and may_ask:
        found = with_progress(
            (wording.EXAMPLE_TEXTS, engine, settings),
            lambda report: inference.ask(engine, question, texts, settings, too_long="truncate", report=report),
        )
    return None if found is None else AskedMentions(name=wording.EXAMPLE_TEXTS, texts=texts, answers=found)
