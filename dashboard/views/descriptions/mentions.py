"""Texts with gold mentions for the descriptions of heads: the reader's own or the examples."""

from collections.abc import Sequence
from dataclasses import dataclass

from attention_sieve.cache.answers import Answers
from attention_sieve.core.coreference.accuracy import MentionChoices
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.coreference.question import choice_question
from attention_sieve.core.descriptions.mentions import ReadMentions
from attention_sieve.dashboard.progress import with_progress
from attention_sieve.dashboard.samples import mention_sample
from attention_sieve.dashboard.views.descriptions import wording
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.parsers.coreference.choices import kept_own_mentions


@dataclass(frozen=True, eq=False, kw_only=True)
class MentionAnswers:
    """Texts with mentions, and the choices of every head."""

    name: str
    texts: Sequence[MentionText]
    answers: Answers[MentionChoices]

    @property
    def read_mentions(self) -> ReadMentions:
        """The texts that the checkpoint has read, with the choices."""
        return ReadMentions(
            name=self.name,
            texts=[self.texts[position] for position in self.answers.positions],
            choices=self.answers.results,
        )


def known_mentions(visit: Visit, *, may_ask: bool) -> MentionAnswers | None:
    """The reader's texts of the page Grammar if their answers are stored; else the example texts.

    Args:
        visit: what the page works with.
        may_ask: whether to run a pass over the example texts if needed.

    Returns: None if a pass is needed but not allowed or stopped, and for attention between two texts.
    """
    question = choice_question("mean")
    if visit.settings.kind not in question.kinds:
        return None
    if (own_mentions := kept_own_mentions(visit)) is not None:
        name, windows, answers = own_mentions
        return MentionAnswers(name=name, texts=windows, answers=answers)
    inference, engine, settings, texts = visit.inference, visit.engine, visit.settings, mention_sample()
    choices = inference.kept(engine, question, texts, settings, too_long="truncate")
    if choices is None and may_ask:
        choices = with_progress(
            (wording.EXAMPLE_TEXTS, engine, settings),
            lambda report: inference.ask(engine, question, texts, settings, too_long="truncate", report=report),
        )
    return None if choices is None else MentionAnswers(name=wording.EXAMPLE_TEXTS, texts=texts, answers=choices)
