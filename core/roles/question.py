"""Scores of roles as questions: measures of each text, matched pairs, and one text as it is shown with its scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.answering import Arrays, Question, part, part_of, text_alone, text_itself
from attention_sieve.core.attention.settings import PassSettings, live_keys
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.passes.texts import PassText, TextAttention, trees, window_at, with_relations
from attention_sieve.core.roles import measures
from attention_sieve.core.roles.hypotheses import Criterion, text_roles
from attention_sieve.core.roles.matched_pairs import (
    MatchedPairs,
    MatchedSieves,
    TextMatches,
    is_matched,
    matched_pairs,
    matched_sieves,
    matched_tokens,
)
from attention_sieve.core.roles.record import NOTHING
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES
from attention_sieve.core.texts.parsers import NO_PARSER, parser_name
from attention_sieve.core.texts.relations import ANY_RELATION
from attention_sieve.core.texts.text import Text

if TYPE_CHECKING:
    from attention_sieve.core.attention.observers import Observer

CHUNK: Final = 64
"""Minimum number of texts that are parsed and passed before the next are parsed, so that a stopped command keeps what
it has finished."""


@cache
def _parser(package: str | None) -> str:
    """Cached, because every key has it; a newly installed parser is used after a restart."""
    return NO_PARSER if package == NO_PARSER else parser_name(package)


def _permuted(
    scores: "Observer", texts: Sequence[PassText], attention: AttentionLayers, seed: int
) -> "tuple[Observer]":
    """The only observer of a pass with permuted keys."""
    from attention_sieve.core.roles.permuted_keys import PermutedKeys

    return (PermutedKeys(scores, texts, attention, seed),)


def _chunks(batches: Iterable[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    """Group successive batches, as few as have CHUNK texts."""
    chunk: list[Sequence[int]] = []
    for batch in batches:
        chunk.append(batch)
        if sum(map(len, chunk)) >= CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


ARRAYS: Final = ("measures", "shares", "uniform", "greatest")
"""What is stored of a text; the question knows the roles."""


AFTER_FIRST: Final = "after first"


def _pack(text: measures.TextMeasures) -> Arrays:
    own = {name: getattr(text, name) for name in ARRAYS}
    return own if text.after_first is None else own | part(AFTER_FIRST, _pack(text.after_first))


def _unpack(arrays: Arrays, roles: measures.RoleSet = measures.USUAL) -> measures.TextMeasures:
    own, after_first = {name: arrays[name] for name in ARRAYS}, part_of(arrays, AFTER_FIRST)
    return measures.TextMeasures(roles=roles, after_first=_unpack(after_first, roles) if after_first else None, **own)


FIRST_ROLES: Final = (
    "local",
    "syntactic",
    "delimiter",
    "block",
    "sink",
    "delimiter:cls",
    "delimiter:sep",
    "syntactic:nsubj",
    "syntactic:dobj",
    "syntactic:amod",
    "syntactic:advmod",
)
"""The roles that were scored before scores were stored by role: stored under a key that does not name them."""


def _depends_on(text: Text, roles: measures.RoleSet, seed: int | None, parses: bool) -> dict[str, object]:
    """What the scores of some roles depend on: the parser if one needs trees, and the roles with their versions."""
    versions = {role.key: role.version for role in roles.records}
    return {
        **text_alone(text),
        **({"parser": _parser(text.parser)} if parses and not roles.wanted.nothing else {}),
        **({"pairs": asdict(text.pairs)} if text.pairs and any(role.reads_marks for role in roles.records) else {}),
        **({} if versions == dict.fromkeys(FIRST_ROLES, 1) else {"roles": versions}),
        **({} if seed is None else {"seed": seed}),
    }


def each_alone(roles: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Sets of roles whose scores are stored: the usual ones together, those of decoders together if they are all there,
    and each further one alone."""
    usual = tuple(role for role in roles if role in ROLES)
    together = [DECODER_ROLES] if set(DECODER_ROLES) <= set(roles) else []
    alone = ((role,) for role in roles if role not in (*ROLES, *chain.from_iterable(together)))
    return [*([usual] if usual else []), *together, *alone]


def scores_question(
    names: tuple[str, ...], seed: int | None = None, parses: bool = True
) -> Question[Text, measures.TextMeasures]:
    """The measures of each text for some roles, in the order of RECORDS.

    They are computed together, but stored for the usual roles together and for each further one alone, so that a role
    that is added leaves what is stored of the others valid.

    Args:
        seed: as a control, of a random order of the keys of every row of attention, among those that the query can
            attend to. The orders of a text depend on its tokens and the seed alone. None for the attention as it is.
        parses: whether texts without trees are parsed, where a role needs it; otherwise the role does not apply.
    """
    return _question(names, seed, parses)


def with_what_decides(
    roles: measures.RoleSet, prepared: Sequence[PassText], texts: Sequence[Text], parses: bool
) -> Sequence[PassText]:
    """Texts with the relations and notes that the sieves of some roles read; parsed only where `parses`."""
    wanted = roles.wanted if parses else NOTHING
    if wanted.nothing and not roles.is_noted:
        return prepared
    return with_relations(prepared, texts, wanted, noted=roles.is_noted)


@cache
def _question(names: tuple[str, ...], seed: int | None, parses: bool) -> Question[Text, measures.TextMeasures]:
    roles, sets = measures.RoleSet(names), each_alone(names)
    control = "" if seed is None else ", permuted keys"

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, measures.TextMeasures]]]:
        """Batches of texts of similar length, which are parsed in chunks."""
        from attention_sieve.core.passes.batches import BATCH_TOKENS, plan_batches
        from attention_sieve.core.roles.scores import score_batch

        attention = checkpoint.attentions[settings.kind]
        batches = plan_batches([text.n_tokens for text in prepared], BATCH_TOKENS[checkpoint.device])
        for group in _chunks([batch.positions for batch in batches]):
            rows = [row for positions in group for row in positions]
            parsed = with_what_decides(roles, [prepared[row] for row in rows], [texts[row] for row in rows], parses)
            by_row = dict(zip(rows, parsed, strict=True))
            for positions in group:
                batch = [by_row[row] for row in positions]
                score = partial(score_batch, checkpoint, batch, settings, roles=roles)
                if seed is None:
                    score = partial(score, after_first=attention.causal)
                else:
                    score = partial(score, observers=partial(_permuted, texts=batch, attention=attention, seed=seed))
                yield list(zip(positions, score().texts, strict=True))

    return Question(
        name=f"scores{control}{'' if parses else ', without relations'}",
        text_of=text_itself,
        depends_on=partial(_depends_on, roles=roles, seed=seed, parses=parses),
        compute=compute,
        pack=_pack,
        unpack=partial(_unpack, roles=roles),
        parts=tuple(_question(alone, seed, parses) for alone in sets) if len(sets) > 1 else (),
        join=measures.joined,
        version=6,
    )


SCORES: Final = scores_question(ROLES)
"""The same of the usual roles; `attention_sieve.core.roles.measures.role_scores` makes them scores by role."""


SievesOfBatch = Callable[[Sequence[PassText], bool, Sequence[Int[np.ndarray, "_ 2"]]], MatchedSieves]


def _compared(
    checkpoint: Checkpoint, prepared: Sequence[PassText], settings: PassSettings, sieves_of: SievesOfBatch
) -> Iterator[list[tuple[int, TextMatches]]]:
    from attention_sieve.core.passes.batches import collect
    from attention_sieve.core.roles.observer import MatchedObserver

    attention = checkpoint.attentions[settings.kind]

    def observer(batch: Sequence[PassText]) -> MatchedObserver:
        n_queries = max(len(text.queries.ids) for text in batch)
        windows = [attention.reach(layer).within(n_queries, attention.causal) for layer in range(attention.n_layers)]
        sieves_by_reach = {
            reach: sieves_of(
                batch,
                attention.causal,
                [live_keys(len(text.queries.ids), len(text.keys.ids), attention.causal, reach) for text in batch],
            )
            for reach in dict.fromkeys(windows)
        }
        sieves = [sieves_by_reach[reach] for reach in windows]
        return MatchedObserver(sieves, n_queries, attention.n_heads, checkpoint.device, checkpoint.statistics_dtype)

    return collect(checkpoint, prepared, settings, observer)


def _compare_pairs(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, TextMatches]]]:
    none, parsed = MatchedPairs(related=(), unrelated={}), zip(prepared, trees(prepared, texts), strict=True)
    pairs = {text: none if tree is None else matched_pairs(text.queries, *tree) for text, tree in parsed}
    return _compared(
        checkpoint, prepared, settings, lambda batch, _, live: matched_sieves([pairs[text] for text in batch], live)
    )


MATCHED_PAIRS: Final[Question[Text, TextMatches]] = Question(
    name="pairs of words at the same distance",
    text_of=text_itself,
    depends_on=SCORES.depends_on,
    compute=_compare_pairs,
    pack=lambda text: {"related": text.related, "unrelated": text.unrelated},
    unpack=lambda arrays: TextMatches(related=arrays["related"], unrelated=arrays["unrelated"]),
    kinds=("self", "encoder", "decoder"),
    why_not="Relations join words of one text, and cross-attention goes to another. Choose the encoder or the decoder.",
    version=5,
)
"""Scores of pairs of words that a relation joins, and of pairs at the same distance that none joins."""


@cache
def matched_question(role: str) -> Question[Text, TextMatches]:
    """The same of the pairs of tokens that a role joins which is not syntactic.

    As for syntactic roles, no relation of a tree joins the others where the role reads trees.
    """
    roles = measures.RoleSet((role,))
    wanted = roles.wanted
    if wanted.relations or wanted.trees:
        wanted = replace(wanted, relations=(ANY_RELATION,))

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, TextMatches]]]:
        if roles.is_noted:
            prepared = with_relations(prepared, texts, wanted, noted=True)
        return _compared(checkpoint, prepared, settings, partial(matched_tokens, roles.records[0]))

    return replace(
        MATCHED_PAIRS,
        name="pairs of tokens at the same distance",
        depends_on=partial(_depends_on, roles=roles, seed=None, parses=True),
        compute=compute,
    )


def matched_questions(roles: Sequence[str]) -> dict[tuple[str, ...], Question[Text, TextMatches]]:
    """The questions that compare roles with others at the same distance, by the roles of each."""
    syntactic = {measures.SYNTACTIC: MATCHED_PAIRS} if set(measures.SYNTACTIC) <= set(roles) else {}
    return syntactic | {(role,): matched_question(role) for role in roles if is_matched(role)}


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedText:
    """Attention and scores of a text, with some heads off or none."""

    text: Text
    text_attention: TextAttention
    scored: measures.RoleScores
    """Of this one text."""
    all_on: "PassedText | None" = None
    """The same with all heads on, where some are off and both are shown."""

    @property
    def scores(self) -> Float[np.ndarray, "role layer head"]:
        """Scores by role; NaN where a role does not apply."""
        return self.scored.scores[0]

    def roles(self, criterion: Criterion) -> Bool[np.ndarray, "role layer head"]:
        """Which head plays which role in this text: by its scores alone, as one text allows no test."""
        return text_roles(self.scores, self.scored.uniform[0], criterion)


def pass_text(
    checkpoint: Checkpoint,
    text: Text,
    prepared: PassText,
    pass_settings: PassSettings,
    settings: measures.ScoreSettings,
) -> PassedText:
    """Attention and scores of a text in one pass; of a long text, the attention of its first window."""
    from attention_sieve.core.roles.scores import score_batch  # imports torch, which pages do without

    roles = measures.RoleSet(settings.roles)
    (prepared,) = with_what_decides(roles, [prepared], [text], settings.parses)
    batch = score_batch(checkpoint, [prepared], pass_settings, {0: window_at(checkpoint, prepared)}, roles=roles)
    return PassedText(text=text, text_attention=batch.maps[0], scored=measures.role_scores(batch.texts, settings))
