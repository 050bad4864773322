"""How many of the sentences that describe heads, based on the sample texts, are refuted by other corpora.

A description is a claim about the samples: a share of a head's attention, or how often it is right about a relation or
about mentions, on texts on which it was not chosen. Each share is measured again, the same way and by spaCy's labels,
on treebanks (the English Web Treebank, GUM, PUD), by which the rules for these sentences were found, and on fresh texts
(Wikipedia, movie reviews, questions, news), by which they were not, but for one: that shares are told by the length of
texts was decided when Wikipedia had refuted two, and nobody looked at QNLI before. Mentions are measured on GUM's, with
all mentions as candidates, and attention to full stops and commas where most texts have some.

A corpus refutes a sentence if a share that it names lies above the interval of the measured one by more than MARGIN;
and a sentence about a relation, or mentions, also if the whole interval of how far the head is above the best simple
guess lies below the margin that the rule asks for, or that of its accuracy where the guess is wrong below one half.
Roles and even attention are not measured again. So that the rule is seen to find something, heads are described on a
treebank as well, and what is said of relations is measured on the fresh texts.
"""

import csv
import gzip
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint
from attention_sieve.core.coreference.accuracy import cases_of as mention_cases
from attention_sieve.core.coreference.accuracy import right_choices
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.descriptions import accuracies
from attention_sieve.core.descriptions.accuracies import (
    MOSTLY,
    Fact,
    HeadDescription,
    MentionFact,
    ReadMentions,
    RelationFact,
    ShareFact,
)
from attention_sieve.core.descriptions.describe import Known, describe_heads, is_told
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import (
    RelationCases,
    TextPredictions,
    best_offset,
    cases_of,
    is_at_offset,
)
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.statistics.means import document_means, document_sums, lower_end, share_interval
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.surface.per_text import PUNCTUATION, TextSurface
from attention_sieve.core.surface.statistics import HeadStatistics, head_statistics
from attention_sieve.core.texts.text import Text, read_file
from attention_sieve.dashboard.samples import VARIED, mention_sample, read_sample

DATA: Final = Path(__file__).parents[3] / "shared" / "data"
CORPORA: Final = {
    "EWT": ("ud_ewt/en_ewt-ud-dev.conllu.gz",),
    "GUM": ("ud_gum/en_gum-ud-dev.conllu.gz", "ud_gum/en_gum-ud-test.conllu.gz"),
    "PUD": ("pud/en_pud-ud-test.conllu.gz",),
}
LARGE: Final = "EWT"
"""The treebank on which heads are described as on a reader's corpus."""
ARTICLES: Final = "text_wiki/wiki_docs.txt.gz"
TABLES: Final = {
    "films": ("vader_movie/test.tsv.gz", "sentence"),
    "QQP": ("glue/QQP/dev.tsv.gz", "sentence1"),
    "MRPC": ("glue/MRPC/test.tsv.gz", "sentence1"),
    "QNLI": ("glue/QNLI/dev.tsv.gz", "sentence2"),
}
FRESH: Final = ("Wikipedia", *TABLES)
"""Texts that no rule is tuned on: keep it so."""
N_FRESH: Final = 500
MENTIONS: Final = {"GUM mentions": "ud_gum/gum_antecedent_windows_test.jsonl.gz"}
MARGIN: Final = 0.1
"""How far a claimed share has to lie above the interval of the measured one."""
ALPHA: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Share:
    """A measured share with its interval."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True, kw_only=True)
class Again:
    """What a fact says, measured on other texts."""

    share: Share
    above: Share | None = None
    """How far the accuracy lies above that of the best simple guess; None where no guess is made."""
    where_wrong: Share | None = None
    """Accuracy where that guess is wrong."""

    def refutes(self, claimed: float) -> bool:
        """Whether the share that is claimed, or the rule by which it is, does not hold here."""
        return (
            claimed > self.share.high + MARGIN
            or (self.above is not None and self.above.high < accuracies.MARGIN)
            or (self.where_wrong is not None and self.where_wrong.high < MOSTLY)
        )

    def __str__(self) -> str:
        if self.above is None:
            return str(self.share)
        return f"{self.share}, above the guess by {self.above}, where that is wrong {self.where_wrong}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """The answers of another corpus."""

    surface: HeadStatistics
    predictions: Sequence[TextPredictions]
    cases: RelationCases
    has_punctuation: bool
    """Whether most of its texts have full stops or commas, on which a share of attention can be."""


def main() -> None:
    files = [name for names in CORPORA.values() for name in names]
    files += [ARTICLES, *(name for name, _ in TABLES.values()), *MENTIONS.values()]
    if missing := [name for name in files if not (DATA / name).is_file()]:
        print(f"Not measured: there is no {DATA / missing[0]}.", file=sys.stderr)
        return
    checkpoint, samples = load_checkpoint(find_checkpoint(BUNDLED)), read_sample("both")
    surface, predictions = passed(checkpoint, samples)
    varied_surface, varied_predictions = passed(checkpoint, read_sample(VARIED))
    others = Known(surface=varied_surface, predictions=varied_predictions)
    mentions = chosen_mentions(checkpoint, "the example texts", mention_sample())
    known = Known(surface=surface, predictions=predictions, mentions=mentions, others=others)
    corpora = {name: measured(checkpoint, texts_of(files)) for name, files in CORPORA.items()}
    fresh = {name: measured(checkpoint, texts) for name, texts in fresh_texts().items()}
    gold = {
        name: chosen_mentions(checkpoint, name, read_mentions(gzip.decompress((DATA / file).read_bytes())))
        for name, file in MENTIONS.items()
    }
    print(f"Sentences that a corpus refutes by more than {100 * MARGIN:.0f} points.\n\nJudged on the varied samples:")
    judge(describe_heads(known), corpora | fresh, gold)
    print("\nWithout these, relations judged on the other half of the samples:")
    judge(describe_heads(replace(known, others=None)), corpora | fresh, gold)
    print(f"\nOf {LARGE}, relations judged on the other half of its documents, and on fresh texts:")
    judge(by_relation(corpora[LARGE].predictions), fresh, {})
    print("\nMentions of GUM, all as candidates:")
    for name, read in gold.items():
        print_mentions(name, read)


def judge(
    described: Mapping[Head, HeadDescription], corpora: Mapping[str, Measured], gold: Mapping[str, ReadMentions]
) -> None:
    """Print which sentences are refuted, and what becomes of those that name a relation or mentions."""
    claims = [(head, fact) for head, of_head in described.items() for fact in of_head.facts]
    refuted: dict[str, set[Head]] = {name: set() for name in (*corpora, *gold)}
    for head, fact in claims:
        measured_again = {name: again(corpus, head, fact) for name, corpus in corpora.items()}
        measured_again |= {name: again_on_mentions(read, head, fact) for name, read in gold.items()}
        for name, found in measured_again.items():
            if found is None:
                continue
            is_refuted = found.refutes(claimed(fact))
            if is_refuted:
                refuted[name].add(head)
            if is_refuted or not isinstance(fact, ShareFact):
                verdict = "refuted" if is_refuted else "holds"
                print(f"- {head_name(*head)}, {named(fact)}: claimed {claimed(fact):.0%}, {name} {found}: {verdict}")
    joined = [fact for _, fact in claims if isinstance(fact, RelationFact | MentionFact)]
    n_refuted = len(set().union(*refuted.values()))
    fresh = set().union(*(heads for name, heads in refuted.items() if name in FRESH or name in gold))
    print(
        f"- {', '.join(f'{name} {len(heads)}' for name, heads in refuted.items())}; any of them {n_refuted}, fresh "
        f"ones {len(fresh)} of {len(described)}. {len(joined)} sentences name a relation or mentions; "
        f"{sum(fact.control.from_everywhere for fact in joined)} of these heads look there from everywhere."
    )


def by_relation(predictions: Sequence[TextPredictions]) -> dict[Head, HeadDescription]:
    """What the sentences of a corpus say of relations."""
    return {
        head: HeadDescription(head=head, n_texts=len(predictions), facts=(fact,) if is_told(fact, ALPHA) else ())
        for head, fact in accuracies.best_relations(predictions, ALPHA).items()
    }


def texts_of(files: Sequence[str]) -> list[Text]:
    """The sentences of some files as they were written, without their trees."""
    contents = (gzip.decompress((DATA / name).read_bytes()) for name in files)
    every = (text for content in contents for text in read_file("trees.conllu", content))
    return [Text(text.segments, document=text.document) for text in every]


def fresh_texts() -> dict[str, list[Text]]:
    """N_FRESH sentences of each of FRESH: of Wikipedia spread over all articles, of tables the first rows."""
    articles = gzip.decompress((DATA / ARTICLES).read_bytes()).decode().strip().split("\n\n")
    sentences = [Text((line,), document=str(at)) for at, article in enumerate(articles) for line in article.split("\n")]
    fresh = {FRESH[0]: sentences[:: len(sentences) // N_FRESH][:N_FRESH]}
    for name, (file, column) in TABLES.items():
        content = io.StringIO(gzip.decompress((DATA / file).read_bytes()).decode())
        rows = csv.DictReader(content, delimiter="\t", quoting=csv.QUOTE_NONE)
        fresh[name] = [Text((row[column].strip(),)) for row, _ in zip(rows, range(N_FRESH))]
    return fresh


def passed(checkpoint: Checkpoint, texts: Sequence[Text]) -> tuple[list[TextSurface], tuple[TextPredictions, ...]]:
    return list(find(SURFACE_ANALYSIS, checkpoint, texts).texts), find(RELATION_ANALYSIS, checkpoint, texts).predictions


def chosen_mentions(checkpoint: Checkpoint, name: str, texts: Sequence[MentionText]) -> ReadMentions:
    found = find(COREFERENCE_ANALYSIS, checkpoint, texts)
    return ReadMentions(name=name, texts=found.texts, choices=found.choices)


def measured(checkpoint: Checkpoint, texts: Sequence[Text]) -> Measured:
    surface, predictions = passed(checkpoint, texts)
    return Measured(
        surface=head_statistics(surface),
        predictions=predictions,
        cases=cases_of(predictions),
        has_punctuation=np.mean([any(word in PUNCTUATION for word in text.key_words) for text in surface]) > 0.5,
    )


def again(corpus: Measured, head: Head, fact: Fact) -> Again | None:
    """What a fact is about, measured on a corpus; None for what is not measured again, or does not occur."""
    match fact:
        case ShareFact() if fact.target != "punctuation" or corpus.has_punctuation:
            index = (corpus.surface.names.index(fact.target), *head)
            low, high = corpus.surface.low[index], corpus.surface.high[index]
            return Again(share=Share(share=float(corpus.surface.mean[index]), low=float(low), high=float(high)))
        case RelationFact() if fact.relation in corpus.cases.names:
            cases = corpus.cases
            chosen = np.flatnonzero((cases.codes == cases.names.index(fact.relation)) & cases.is_known)
            right = cases.right[DIRECTIONS.index(fact.direction), *head, chosen]
            distances, rooms = cases.distances[chosen], cases.rooms[:, chosen]
            guess = is_at_offset(distances, rooms, best_offset(distances, rooms).offset)
            return against(right, guess, cases.joined.unit[chosen])
        case _:
            return None


def again_on_mentions(read: ReadMentions, head: Head, fact: Fact) -> Again | None:
    return _on_mentions(read, head) if isinstance(fact, MentionFact) else None


def _on_mentions(read: ReadMentions, head: Head) -> Again:
    cases = mention_cases(read.texts, [choices.is_read for choices in read.choices])
    right = right_choices(read.texts, read.choices, "mentions", cases)[head]
    return against(right, cases.baselines[cases.baselines.mean(axis=-1).argmax()], cases.document)


def against(
    right: Bool[np.ndarray, " case"], guess: Bool[np.ndarray, " case"], unit: Int[np.ndarray, " case"]
) -> Again:
    """The accuracy of a head and of a guess on the same cases, with documents, or texts, as units."""
    difference = document_means(
        document_sums(right, unit) - document_sums(guess, unit), np.unique(unit, return_counts=True)[1]
    )
    mean, low = float(difference.mean), float(lower_end(difference, ALPHA))
    return Again(
        share=_share(right, unit),
        above=Share(share=mean, low=low, high=2 * mean - low),
        where_wrong=_share(right[~guess], unit[~guess]),
    )


def _share(right: Bool[np.ndarray, " case"], unit: Int[np.ndarray, " case"]) -> Share:
    means = document_means(document_sums(right, unit), np.unique(unit, return_counts=True)[1])
    low, high = share_interval(means, ALPHA)
    return Share(share=float(means.mean), low=float(low), high=float(high))


def print_mentions(name: str, read: ReadMentions) -> None:
    """The heads that are right most often, beside the better simple guess."""
    cases = mention_cases(read.texts, [choices.is_read for choices in read.choices])
    accuracy = right_choices(read.texts, read.choices, "mentions", cases).mean(axis=-1)
    best = np.argsort(-accuracy, axis=None, kind="stable")[:3]
    guess = cases.baselines.mean(axis=-1).max()
    print(f"- {name}: {len(cases.text):,} cases, of which the better of two simple guesses gets {guess:.0%} right")
    for layer, head in zip(*(part.tolist() for part in np.unravel_index(best, accuracy.shape))):
        print(f"- {head_name(layer, head)}: {_on_mentions(read, (layer, head))}")
    facts = accuracies.followed_mentions(read, ALPHA).values()
    print(f"- {sum(is_told(fact, ALPHA) for fact in facts)} of {accuracy.size} heads would be said to follow mentions")


def claimed(fact: Fact) -> float:
    match fact:
        case ShareFact():
            return fact.share
        case RelationFact() | MentionFact():
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
        case MentionFact():
            return "mentions"
        case _:
            raise ValueError(f"{type(fact).__name__} is not measured again.")


if __name__ == "__main__":
    main()
