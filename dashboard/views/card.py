"""The card of the chosen head, as files, from what a page knows of it."""

from functools import partial

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.command_lines import given_options
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.texts.text import PAIR_MARK
from attention_sieve.dashboard.card import wording
from attention_sieve.dashboard.card.content import Judged, OnText, card_of, scores_of_head
from attention_sieve.dashboard.controls import SAMPLES
from attention_sieve.dashboard.files.downloads import card_downloads
from attention_sieve.dashboard.files.provenance import NO_COMMAND, call, role_options, texts
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.descriptions.sentences import kept_descriptions
from attention_sieve.dashboard.views.frame import Visit


def offer_card(visit: Visit, passed: PassedText, tested: Corpus | None, head: Head) -> None:
    """Offer the card of a head in the text on screen, once it is described over the corpus."""
    described = None if tested is None else kept_descriptions(visit, tested.tests)
    if tested is None or described is None:
        return
    description, name = described.heads[head], visit.engine.files.name
    facts = corpora.facts(visit, tested)
    judged = Judged(
        texts=texts(facts),
        others=wording.varied(description.n_others),
        alpha=tested.tests.settings.alpha,
        n_heads=len(described.heads) - len(visit.removed),
    )
    card = partial(
        card_of,
        name,
        description,
        scores_of_head(tested.with_intervals(), tested.scored, passed, head),
        OnText(passed=passed, head=head),
        judged,
        facts | {"command": _command(visit, passed, head)},
    )
    card_downloads(head_name(*head), name, card)


def _command(visit: Visit, passed: PassedText, head: Head) -> str:
    """The command that draws the same; it reads no other texts than the samples that it takes by itself."""
    choice, engine = visit.choice, visit.engine
    if SAMPLES.get(choice.corpus) != "both" or passed.text.words is not None:
        return NO_COMMAND
    options = [*role_options(choice, engine), *given_options(choice.criterion, Criterion.usual(choice.scale))]
    words = ["--head", "{}-{}".format(*head), "--text", PAIR_MARK.join(passed.text.segments)]
    return call("card", choice, engine, *words, *options, output="card.svg")
