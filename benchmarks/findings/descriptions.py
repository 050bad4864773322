"""How many of the sentences that describe heads, based on the sample texts, are refuted by other corpora.

A description is a claim about the samples: a share of a head's attention, or how often it is right about a relation, on
the varied ones, on which it was not chosen. Each share is measured again, the same way and by spaCy's labels, on the
English Web Treebank, GUM and PUD. A corpus refutes a sentence if a share that it names lies above the interval of the
measured one by more than MARGIN. Roles and even attention are not measured again, nor mentions, which these corpora do
not have.
"""

import gzip
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.descriptions.accuracies import Fact, HeadDescription, ReadMentions, RelationFact, ShareFact
from attention_sieve.core.descriptions.describe import Known, describe_heads
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import RelationAccuracy, TextPredictions, relation_accuracies
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.surface.per_text import TextSurface
from attention_sieve.core.surface.statistics import HeadStatistics, head_statistics
from attention_sieve.core.texts.text import Text, read_file
from attention_sieve.dashboard.samples import VARIED, mention_sample, read_sample

DATA: Final = Path(__file__).parents[3] / "shared" / "data"
CORPORA: Final = {
    "EWT": ("ud_ewt/en_ewt-ud-dev.conllu.gz",),
    "GUM": ("ud_gum/en_gum-ud-dev.conllu.gz", "ud_gum/en_gum-ud-test.conllu.gz"),
    "PUD": ("pud/en_pud-ud-test.conllu.gz",),
}
MARGIN: Final = 0.1
"""How far a claimed share has to lie above the interval of the measured one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """The same shares on another corpus."""

    surface: HeadStatistics
    relations: Mapping[str, RelationAccuracy]


@dataclass(frozen=True, kw_only=True)
class Share:
    """A measured share with its interval."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:.0%} ({self.low:.0%} to {self.high:.0%})"


def main() -> None:
    if missing := [name for names in CORPORA.values() for name in names if not (DATA / name).is_file()]:
        print(f"Not measured: there is no {DATA / missing[0]}.", file=sys.stderr)
        return
    checkpoint, samples = load_checkpoint(find_checkpoint(BUNDLED)), read_sample("both")
    mentions = mention_sample()
    choices = find(COREFERENCE_ANALYSIS, checkpoint, mentions).choices
    surface, predictions = passed(checkpoint, samples)
    varied_surface, varied_predictions = passed(checkpoint, read_sample(VARIED))
    read_mentions = ReadMentions(name="the example texts", texts=mentions, choices=choices)
    others = Known(surface=varied_surface, predictions=varied_predictions)
    known = Known(surface=surface, predictions=predictions, mentions=read_mentions, others=others)
    corpora = {name: measured(checkpoint, texts_of(files)) for name, files in CORPORA.items()}
    print(f"Sentences that a corpus refutes by more than {100 * MARGIN:.0f} points.\n\nJudged on the varied samples:")
    judge(describe_heads(known), corpora)
    print("\nWithout these, relations judged on the other half of the samples:")
    judge(describe_heads(replace(known, others=None)), corpora)


def judge(described: Mapping[Head, HeadDescription], corpora: Mapping[str, Measured]) -> None:
    """Print which sentences are refuted, and what becomes of those that name a relation."""
    claims = [(head, fact) for head, of_head in described.items() for fact in of_head.facts]
    refuted: dict[str, set[Head]] = {name: set() for name in corpora}
    for head, fact in claims:
        for name, corpus in corpora.items():
            share = share_of(corpus, head, fact)
            is_refuted = share is not None and claimed(fact) > share.high + MARGIN
            if is_refuted:
                refuted[name].add(head)
            if share is not None and (is_refuted or isinstance(fact, RelationFact)):
                verdict = "refuted" if is_refuted else "holds"
                print(f"- {head_name(*head)}, {named(fact)}: claimed {claimed(fact):.0%}, {name} {share}: {verdict}")
    joined = [fact for _, fact in claims if isinstance(fact, RelationFact)]
    n_refuted = len(set().union(*refuted.values()))
    print(
        f"- {', '.join(f'{name} {len(heads)}' for name, heads in refuted.items())}; any of them {n_refuted} of "
        f"{len(described)} ({n_refuted / len(described):.1%}). {len(joined)} sentences name a relation; "
        f"{sum(fact.control.from_everywhere for fact in joined)} of these heads look there from everywhere."
    )


def texts_of(files: Sequence[str]) -> list[Text]:
    """The sentences of some files as they were written, without their trees."""
    contents = (gzip.decompress((DATA / name).read_bytes()) for name in files)
    every = (text for content in contents for text in read_file("trees.conllu", content))
    return [Text(text.segments, document=text.document) for text in every]


def passed(checkpoint: Checkpoint, texts: Sequence[Text]) -> tuple[list[TextSurface], tuple[TextPredictions, ...]]:
    return list(find(SURFACE_ANALYSIS, checkpoint, texts).texts), find(RELATION_ANALYSIS, checkpoint, texts).predictions


def measured(checkpoint: Checkpoint, texts: Sequence[Text]) -> Measured:
    surface, predictions = passed(checkpoint, texts)
    relations = {one.relation: one for one in relation_accuracies(predictions)}
    return Measured(surface=head_statistics(surface), relations=relations)


def share_of(corpus: Measured, head: Head, fact: Fact) -> Share | None:
    """What a fact is about, measured on a corpus; None for what is not measured again, or does not occur."""
    match fact:
        case ShareFact():
            index = (corpus.surface.names.index(fact.target), *head)
            low, high = corpus.surface.low[index], corpus.surface.high[index]
            return Share(share=float(corpus.surface.mean[index]), low=float(low), high=float(high))
        case RelationFact() if fact.relation in corpus.relations:
            one, at = corpus.relations[fact.relation], (DIRECTIONS.index(fact.direction), *head)
            return Share(share=float(one.accuracy[at]), low=float(one.low[at]), high=float(one.high[at]))
        case _:
            return None


def claimed(fact: Fact) -> float:
    match fact:
        case ShareFact():
            return fact.share
        case RelationFact():
            return fact.accuracy
        case _:
            raise ValueError(f"{type(fact).__name__} is not measured again.")


def named(fact: Fact) -> str:
    match fact:
        case ShareFact():
            return f"attention to {fact.target}"
        case RelationFact():
            times = fact.control.to_right / fact.control.from_others
            return f"{fact.relation}, {fact.direction}, {times:.1f} times others"
        case _:
            raise ValueError(f"{type(fact).__name__} is not measured again.")


if __name__ == "__main__":
    main()
