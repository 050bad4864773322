"""What the card of a head says: from results that a page has, or computed from a loaded checkpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve import __version__
from attention_sieve.core.answering import AnswerQuestion, Reading, answer, find_in
from attention_sieve.core.attention.settings import Head, PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.command_lines import command_line, given_options
from attention_sieve.core.commands import answers, checkpoint_facts, prepared_texts, progress_bar
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.descriptions.accuracies import Fact, HeadDescription, ReadMentions, RelationFact, ShareFact
from attention_sieve.core.descriptions.describe import Known, describe_heads
from attention_sieve.core.descriptions.examples import OFFSETS, targets
from attention_sieve.core.descriptions.naming import name_of_head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import prepare, queries_text
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, tests_of
from attention_sieve.core.roles.measures import USUAL, RoleScores, ScoreSettings
from attention_sieve.core.roles.question import SCORES, PassedText, pass_text
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES, known_roles, shown_roles
from attention_sieve.core.roles.uncertainty.intervals import with_syntactic_intervals
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.texts.parsers import NO_PARSER, parsed_by, parser_option
from attention_sieve.core.texts.relations import UNIVERSAL, Wanted, parse_for, token_pairs
from attention_sieve.core.texts.text import PAIR_MARK, Text, texts_sha256
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText, TooLong
from attention_sieve.core.word_links.on_text import words_on
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.card import wording
from attention_sieve.dashboard.figures.card import CardLink, HeadCard
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.roles.distributions import HeadScores
from attention_sieve.dashboard.samples import VARIED, mention_sample, read_sample
from attention_sieve.dashboard.saved_page.asked import IN_MEMORY

N_LINKS: Final = 3
SHORT: Final = ("revision", "fingerprint", "texts sha256")
"""Facts of which the beginning stands on the card; a model in memory has no fingerprint."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OnText:
    """A head in the text of its card."""

    passed: PassedText
    head: Head

    @property
    def attention(self) -> Float[np.ndarray, "query key"]:
        """In the window of a long text."""
        return self.passed.text_attention.attention[self.head]

    @property
    def pattern(self) -> Float[np.ndarray, "row column"]:
        """Of the whole text; of a long one, means over blocks."""
        overview = self.passed.text_attention.overview
        return self.attention if overview is None else overview[self.head]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """On what a head is described, in words."""

    texts: str
    others: str
    alpha: float
    n_heads: int


def card_of(
    checkpoint: str,
    description: HeadDescription,
    scores: HeadScores,
    on_text: OnText,
    judged: Judged,
    facts: Mapping[str, str],
    found: str = "",
) -> HeadCard:
    """The card of a head, from its description and its scores.

    Args:
        checkpoint: its name, as the checkpoint is known.
        facts: provenance.
        found: what a player says of the head; empty for none.
    """
    name = name_of_head(description, judged.alpha)
    text = on_text.passed.text
    links, about_links = links_of(name.fact, on_text)
    own = {
        "card": head_name(*on_text.head),
        "name": name.words,
        "text": PAIR_MARK.join(text.segments),
        "texts of the name": f"{judged.texts}; {judged.others}" if description.n_others else judged.texts,
    }
    known = {**facts, **own}
    is_known = {fact: fact in known and not known[fact].startswith(IN_MEMORY) for fact in SHORT}
    short = [f"{fact} {known[fact][:12]}" for fact in SHORT if is_known[fact]]
    return HeadCard(
        checkpoint=shared_wording.model_name(checkpoint),
        scores=scores,
        name=name.words,
        sentence=wording.says(name.fact, scores),
        pattern=on_text.pattern,
        text=wording.of_text(text),
        links=links,
        about_links=about_links,
        control=wording.control(name.fact),
        notes=(
            wording.judged_on(description, judged.texts, judged.others, judged.n_heads, judged.alpha),
            "; ".join(filter(None, (known.get("program", ""), *short))),
        ),
        facts=known,
        found=found,
    )


def links_of(fact: Fact | None, on_text: OnText) -> tuple[tuple[CardLink, ...], str]:
    """The strongest links in a text that a name speaks of, or else between any two words; and what they are."""
    passed = on_text.passed
    if passed.text_attention.overview is not None:
        return (), wording.TOO_LONG
    found = _strongest(_such_links(fact, on_text))
    if found:
        return found, wording.such_links(len(found))
    found = _strongest(_any_links(on_text))
    if not found:
        return (), wording.NO_LINKS
    return found, wording.STRONGEST if fact is None else wording.NO_SUCH_LINK


def _strongest(links: Sequence[CardLink]) -> tuple[CardLink, ...]:
    """The links with the greatest shares, from different words."""
    chosen: dict[tuple[int, ...], CardLink] = {}
    for link in sorted(links, key=lambda link: -link.share):
        if link.share > 0:
            chosen.setdefault(link.rows, link)
    return tuple(chosen.values())[:N_LINKS]


def _such_links(fact: Fact | None, on_text: OnText) -> list[CardLink]:
    text = on_text.passed.text_attention.text
    queries, keys = text.queries, text.keys
    if isinstance(fact, ShareFact):
        rows = [row for row in range(len(queries.ids)) if queries.segments[row] != SPECIAL]
        if fact.target in OFFSETS:
            pairs = [(row, row + OFFSETS[fact.target]) for row in rows]
            pairs = [(row, key) for row, key in pairs if 0 <= key < len(keys.ids) and keys.segments[key] != SPECIAL]
        else:
            is_target = targets(fact.target, text)
            pairs = [
                (row, int(np.where(is_target[row], on_text.attention[row], -1).argmax()))
                for row in rows
                if is_target[row].any()
            ]
        return [_link(on_text, (row,), (key,), (queries.tokens[row], keys.tokens[key])) for row, key in pairs]
    if isinstance(fact, RelationFact):
        return _related(fact, on_text, queries)
    return []


def _related(fact: RelationFact, on_text: OnText, tokens: TokenizedText) -> list[CardLink]:
    """Links between the words of a text that the relation joins."""
    text = queries_text(on_text.passed.text, on_text.passed.text_attention.text.kind)
    if text.heads is None and text.parser == NO_PARSER:
        return []
    ((relations, _),) = parse_for([text], Wanted(relations=(UNIVERSAL.get(fact.relation, fact.relation),)))
    links = []
    for relation in relations:
        for pair in token_pairs(tokens, [relation]):
            words = [text.segments[relation.segment][start:end] for start, end in (relation.dependent, relation.head)]
            sides = [tuple(side.tolist()) for side in (pair.dependent, pair.head)]
            if fact.direction != DIRECTIONS[0]:
                words, sides = words[::-1], sides[::-1]
            links.append(_link(on_text, sides[0], sides[1], (words[0], words[1])))
    return links


def _any_links(on_text: OnText) -> list[CardLink]:
    text = on_text.passed.text_attention.text
    queries, keys = (
        [
            word
            for word in words_on(side, (0, len(side.ids)))
            if word.segment != SPECIAL and any(map(str.isalnum, word.text))
        ]
        for side in (text.queries, text.keys)
    )
    return [
        _link(on_text, query.tokens, key.tokens, (query.text, key.text))
        for query in queries
        for key in keys
        if text.queries is not text.keys or query != key
    ]


def _link(on_text: OnText, rows: tuple[int, ...], columns: tuple[int, ...], words: tuple[str, str]) -> CardLink:
    """Attention to a word is the sum over its tokens, from a word the mean."""
    share = float(on_text.attention[np.ix_(rows, columns)].sum(axis=1).mean())
    return CardLink(query=words[0], key=words[1], share=share, rows=rows, columns=columns)


def scores_of_head(tests: HeadTests, scored: RoleScores, passed: PassedText, head: Head) -> HeadScores:
    """The scores of a head over texts, by the roles that are drawn, with those of the text of its card.

    Args:
        tests: of `scored`, with the intervals that are shown.
        scored: of the texts that differ.
    """
    roles = shown_roles(tests.mean, tests.roles)[0]
    indices = [tests.roles.index(role) for role in roles]
    here = {
        role: float(passed.scores[passed.scored.roles.index(role), *head])
        for role in roles
        if role in passed.scored.roles
    }
    return HeadScores(
        scores=scored.scores[:, indices, *head],
        tests=tests_of(tests, roles),
        head=head,
        uniform=scored.mean_references()[0][indices, head[0]],
        here={role: score for role, score in here.items() if np.isfinite(score)},
        scale=scored.scale,
    )


@dataclass(frozen=True, kw_only=True)
class CardRequest:
    """What a reader asks of a card."""

    pass_settings: PassSettings
    settings: RoleSettings
    head: Head
    text: Text
    """On which the pattern and the links are."""
    texts: tuple[Text, ...] | None = None
    """Over which the head is named and scored; None for the sample texts, with the varied ones to judge the name on."""
    too_long: TooLong = "error"


def compute(checkpoint: Checkpoint, request: CardRequest, answer: AnswerQuestion = answer) -> HeadCard:
    """Compute the card of a head, under bars of progress.

    Args:
        answer: as for `Reading`.

    Raises: AnalysisError for a head that the checkpoint does not have or that was removed, and of any stage.
    """
    pass_settings, head, settings = request.pass_settings, request.head, request.settings
    kind, files = pass_settings.kind, checkpoint.files
    ROLE_ANALYSIS.question(settings).check(kind)
    attention = checkpoint.attentions[kind]
    files.check_heads(kind, [head])
    if head in attention.removed:
        raise AnalysisError(
            f"{head_name(*head)} was removed from {files.name}, so there is nothing to draw of it. Choose another head."
        )

    def reading(texts: Sequence[Text]) -> Reading[Text]:
        prepared = prepared_texts(checkpoint, texts, pass_settings, request.too_long)
        return Reading(
            checkpoint=checkpoint, pass_settings=pass_settings, inputs=texts, prepared=prepared, answer=answer
        )

    tokens = prepare(checkpoint, request.text, pass_settings, truncate=request.too_long == "truncate")
    passed = pass_text(checkpoint, request.text, tokens, pass_settings, settings.scores)
    reads_single = kind not in ("decoder", "cross")
    texts = request.texts or _samples("both" if reads_single else "pairs", request.text)
    different = tuple(dict.fromkeys(texts))  # equal ones count once
    read, mentions, others = reading(different), _mentions(checkpoint, pass_settings, answer), None
    if request.texts is None and reads_single:
        others = _known(reading(_samples(VARIED, request.text)))
    alpha = settings.criterion.alpha
    description = describe_heads(_known(read, mentions, others), alpha)[head]
    finding = find_in(ROLE_ANALYSIS, read, settings, progress_bar)
    scored = finding.counted
    tests = with_syntactic_intervals(finding.tests, scored.scores)
    n_texts = counted(len(read.prepared), "sample text" if request.texts is None else "text")
    return card_of(
        files.name,
        description,
        scores_of_head(tests, scored, passed, head),
        OnText(passed=passed, head=head),
        Judged(
            texts=n_texts,
            others="" if others is None else wording.varied(len(others.surface)),
            alpha=alpha,
            n_heads=attention.n_layers * attention.n_heads - len(attention.removed),
        ),
        {
            "program": f"Attention Sieve {__version__}",
            **checkpoint_facts(checkpoint, pass_settings),
            "texts": str(len(read.prepared)),
            "texts sha256": texts_sha256(texts),
            **settings.facts,
            **_command(checkpoint, request),
        },
    )


def _command(checkpoint: Checkpoint, request: CardRequest) -> dict[str, str]:
    """The command that makes the card, as a fact; none for a model in memory, which no command finds."""
    files, pass_settings = checkpoint.files, request.pass_settings
    if files.fingerprint.startswith(IN_MEMORY):
        return {}
    usual = RoleSettings(
        ScoreSettings(roles=known_roles((*ROLES, *(DECODER_ROLES if files.is_decoder else ())))),
        Criterion.usual(request.settings.scores.scale),
    )
    roles = request.settings.scores.roles
    texts = (request.text, *(request.texts or ()))
    words = [
        *("card", "--checkpoint", files.name, "--head", "{}-{}".format(*request.head)),
        *("--text", PAIR_MARK.join(request.text.segments)),
        *([] if request.texts is None else ["--texts", "texts.jsonl"]),
        *([] if checkpoint.dtype == "float32" else [f"--dtype={checkpoint.dtype}"]),
        *([] if pass_settings.kind == files.kinds[0] else [f"--attention={pass_settings.kind}"]),
        *(f"--off={layer}-{head}" for layer, head in pass_settings.off),
        *parser_option(texts),
        *([] if roles == usual.scores.roles else [f"--roles={','.join(roles)}"]),
        *given_options(request.settings, usual),
        *([] if request.too_long == "error" else [f"--too-long={request.too_long}"]),
    ]
    return {"command": command_line([*words, "--output", "card.svg"])}


def _samples(name: str, text: Text) -> tuple[Text, ...]:
    """Texts of a sample, which are not parsed where the text on the card is not."""
    return parsed_by(read_sample(name), NO_PARSER if text.parser == NO_PARSER else None)


def _mentions(checkpoint: Checkpoint, pass_settings: PassSettings, answer: AnswerQuestion) -> ReadMentions | None:
    """What heads choose in the example texts on coreference; None for attention that cannot read them."""
    settings = COREFERENCE_ANALYSIS.settings
    if pass_settings.kind not in COREFERENCE_ANALYSIS.question(settings).kinds:
        return None
    stories = mention_sample()
    prepared = prepared_texts(checkpoint, [story.text for story in stories], pass_settings, "truncate")
    reading: Reading[MentionText] = Reading(
        checkpoint=checkpoint, pass_settings=pass_settings, inputs=stories, prepared=prepared, answer=answer
    )
    found = find_in(COREFERENCE_ANALYSIS, reading, settings, progress_bar)
    return ReadMentions(name=wording.STORIES, texts=found.texts, choices=found.choices)


def _known(reading: Reading[Text], mentions: ReadMentions | None = None, others: Known | None = None) -> Known:
    """What is known of the heads over some texts."""
    kind = reading.pass_settings.kind
    relations = RELATION_ANALYSIS.settings
    texts = [reading.inputs[index] for index in reading.prepared]
    has_trees = all(text.heads is not None or text.parser != NO_PARSER for text in texts)
    parses = has_trees and kind in RELATION_ANALYSIS.question(relations).kinds
    find = partial(find_in, reading=reading, watch=progress_bar)
    first_token = None
    if reading.checkpoint.files.is_decoder:
        measured = answers(reading, SCORES, reading.inputs)
        first_token = np.stack([measures.shares[USUAL.shares.index("sink")] for measures in measured.values()])
    return Known(
        surface=find(SURFACE_ANALYSIS, settings=SURFACE_ANALYSIS.settings).texts,
        predictions=find(RELATION_ANALYSIS, settings=relations).predictions if parses else None,
        mentions=mentions,
        first_token=first_token,
        others=others,
    )
