"""The card of a head over the sample texts, from what is kept of them: for readers who have chosen no texts, and for
whoever only has a link."""

from dataclasses import dataclass
from typing import Any, Final

from attention_sieve import __version__
from attention_sieve.cache.answers import Engine, FindingRequest
from attention_sieve.cache.inference import Inference
from attention_sieve.core.answering import Analysis
from attention_sieve.core.attention.settings import Head, PassSettings
from attention_sieve.core.command_lines import command_line
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.descriptions.accuracies import HeadDescription, ReadMentions
from attention_sieve.core.descriptions.describe import Known, describe_heads
from attention_sieve.core.descriptions.naming import name_of_head
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.measures import RoleScores, ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES, PassedText
from attention_sieve.core.roles.uncertainty.intervals import with_syntactic_intervals
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.texts.text import PAIR_MARK, Text, texts_sha256
from attention_sieve.dashboard.card import wording
from attention_sieve.dashboard.card.content import Judged, OnText, card_of, scores_of_head
from attention_sieve.dashboard.figures.card import HeadCard
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.samples import VARIED, mention_sample, read_sample

SAMPLE: Final = "both"


@dataclass(frozen=True, eq=False, kw_only=True)
class DescribedSamples:
    """What the heads of a checkpoint do over the sample texts."""

    heads: dict[Head, HeadDescription]
    """Judged on the varied texts."""
    tests: HeadTests
    """With the intervals that are shown."""
    scored: RoleScores
    """Of the texts that differ."""

    def name(self, head: Head) -> str:
        """What a head is called in words."""
        return name_of_head(self.heads[head], self.tests.settings.alpha).words


def described_samples(inference: Inference, engine: Engine) -> DescribedSamples | None:
    """What each head does over the sample texts; never runs a pass or a parser.

    Returns: None where not all of it is kept, for a decoder and for an encoder-decoder.
    """
    if engine.files.is_decoder or engine.files.kinds != ("self",):
        return None

    def find(analysis: Analysis[Any, Any, Any, Any, Any], inputs: tuple[Any, ...]) -> Any:
        request = FindingRequest(engine, analysis, inputs, analysis.settings, PassSettings("self"), "truncate")
        found = inference.kept_finding(request)
        return None if found is None else found.finding

    def describe() -> DescribedSamples | None:
        texts = read_sample(SAMPLE)
        scored, mentions = find(ROLE_ANALYSIS, texts), find(COREFERENCE_ANALYSIS, mention_sample())
        found = [
            (find(SURFACE_ANALYSIS, of_sample), find(RELATION_ANALYSIS, of_sample))
            for of_sample in (texts, read_sample(VARIED))
        ]
        if scored is None or mentions is None or any(part is None for parts in found for part in parts):
            return None
        known, others = (Known(surface=each.texts, predictions=relations.predictions) for each, relations in found)
        stories = ReadMentions(name=wording.STORIES, texts=mentions.texts, choices=mentions.choices)
        complete = Known(surface=known.surface, predictions=known.predictions, mentions=stories, others=others)
        return DescribedSamples(
            heads=describe_heads(complete, ROLE_ANALYSIS.settings.criterion.alpha),
            tests=with_syntactic_intervals(scored.tests, scored.counted.scores),
            scored=scored.counted,
        )

    return inference.memory.get_or_put("described samples", engine, describe)


def card_of_samples(
    inference: Inference, engine: Engine, described: DescribedSamples, on: tuple[Text, Head], found: str = ""
) -> HeadCard:
    """The card of a head in a text by the usual settings, after a pass over that text if it is not kept.

    Raises: AnalysisError of the pass, and for a head that the checkpoint does not have.
    """
    text, head = on
    engine.files.check_heads("self", [head])
    text_attention, record = inference.look(engine, text, PassSettings("self"), too_long="truncate")
    assert record.arrays is not None, "a text that is cut is never left out"
    passed = PassedText(
        text=text, text_attention=text_attention, scored=role_scores([SCORES.unpack(record.arrays)], ScoreSettings())
    )
    texts = read_sample(SAMPLE)
    criterion = ROLE_ANALYSIS.settings.criterion
    return card_of(
        engine.files.name,
        described.heads[head],
        scores_of_head(described.tests, described.scored, passed, head),
        OnText(passed=passed, head=head),
        Judged(
            texts=counted(len(texts), "sample text"),
            others=wording.varied(described.heads[head].n_others),
            alpha=criterion.alpha,
            n_heads=len(described.heads) - len(engine.files.removed_of("self")),
        ),
        {
            "program": f"Attention Sieve {__version__}",
            "checkpoint": engine.files.name,
            "fingerprint": engine.files.fingerprint,
            "texts": str(len(texts)),
            "texts sha256": texts_sha256(texts),
            **ROLE_ANALYSIS.settings.facts,
            "command": command_line(
                [
                    *("card", "--checkpoint", engine.files.name, "--head", "{}-{}".format(*head)),
                    *("--text", PAIR_MARK.join(text.segments), "--output", "card.svg"),
                ]
            ),
        },
        found=found,
    )
