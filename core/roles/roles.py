"""The roles that a head can have: one record each, from which everything about them follows, and who holds which.

A new role is one record here, one `Look` in `attention_sieve.dashboard.figures.appearance`, and a test: its scores,
references, columns in files, picture over the arcs and sentences on pages derive from these.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.relations import RELATIONS, TokenPair
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

LOCAL_RADIUS: Final = 2
DIRECTIONS: Final = ("dependent-to-head", "head-to-dependent")
"""Which word of a relation attends to which."""
LACKS: Final = "no text contains what it looks for"
KeySet = Callable[[TokenizedText], Bool[np.ndarray, " key"]]


@dataclass(frozen=True)
class Keys:
    """A sieve of keys that do not depend on where the query stands."""

    sets: tuple[KeySet, ...]
    """Disjoint sets of keys. Each is a function with a name of its own, so that roles can share it."""
    side: Callable[[TokenizedText], Int[np.ndarray, " query"]] | None = None
    """Which one of the sets is the sieve of each query; None if their union is the sieve of all queries."""


@dataclass(frozen=True)
class Band:
    """A sieve of the keys at some distances from the query."""

    first: int
    """Offset of the first key from the query; -1 for the token before it."""
    last: int
    """Offset of the last key."""

    def keys(self, n_tokens: int, causal: bool = False) -> Int[np.ndarray, "query 2"]:
        """First and one-past-last key of each query.

        Returns: key positions, clipped to the text: [0, n_tokens]; in a causal model without later keys.
        Source: Pande et al. 2021, local sieve. Their notebook counts keys past the last token; here the band ends at
        the end of the text.
        """
        query = np.arange(n_tokens)
        start = np.minimum(np.maximum(query + self.first, 0), n_tokens)
        end = np.maximum(np.minimum(query + self.last, query if causal else n_tokens - 1) + 1, 0)
        return np.stack([start, end], axis=1)


@dataclass(frozen=True)
class Pairs:
    """A sieve of pairs found in the text: of an attending word and an attended one, each of one or more tokens."""

    find: Callable[[PassText], Sequence[TokenPair]]
    """The pairs of a text, for all roles that share them."""
    name: str | None = None
    """Name of the pairs of this role; None for all of them."""

    def of(self, text: PassText) -> list[TokenPair]:
        """The pairs of this role in a text."""
        return [pair for pair in self.find(text) if self.name in (None, pair.name)]


@dataclass(frozen=True, kw_only=True)
class Role:
    """Everything that is particular to one role."""

    name: str
    """In files, links and tables."""
    expects: str
    """What a head with this role looks at, to complete "looks at ...". Of a finer role: which part of it."""
    meaning: str = ""
    """Explanation for the glossary and legends, a sentence; empty for a finer role, which the coarser one explains."""
    sieve: Keys | Band | Pairs
    applies: Callable[[PassText, bool], bool]
    """Whether the role can apply to a text, prepared for a pass, of a model that is causal or not."""
    weight: Literal["none", "entropy"] = "none"
    """What each query's ratio is multiplied with in the score: with "entropy", its row's entropy in nats."""
    part_of: str | None = None
    """The coarser role of a finer one."""
    directions: tuple[str, ...] = ()
    """Of DIRECTIONS, where a pair can be read both ways."""
    lacks: str = LACKS
    """Why it could not be tested where it applies to no text."""
    is_usual: bool = True
    """Whether it is scored without being asked for."""
    version: int = 1
    """Part of the key of stored scores; increase it when the sieve changes."""

    @property
    def needs_trees(self) -> bool:
        """Whether texts have to be parsed for it."""
        return isinstance(self.sieve, Pairs) and self.sieve.find is relation_pairs


def is_cls(text: TokenizedText) -> Bool[np.ndarray, " key"]:
    """The token before a text, such as [CLS]."""
    return text.is_cls


def is_sep(text: TokenizedText) -> Bool[np.ndarray, " key"]:
    """The tokens between and after segments, such as [SEP]."""
    return text.is_sep


def in_first_segment(text: TokenizedText) -> Bool[np.ndarray, " key"]:
    """The tokens of the first segment, without special ones."""
    return text.segments == 0


def in_second_segment(text: TokenizedText) -> Bool[np.ndarray, " key"]:
    """The tokens of the second segment, without special ones."""
    return text.segments == 1


def is_first(text: TokenizedText) -> Bool[np.ndarray, " key"]:
    """The first token."""
    return np.arange(len(text.ids)) == 0


def of_template(text: TokenizedText) -> Bool[np.ndarray, " key"]:
    """The tokens that a chat template put around the turns of a chat; none in any other text."""
    is_own = np.full(len(text.ids), text.given is None or text.given.turns is None)
    for first, end in (text.given and text.given.turns) or ():
        is_own[first:end] = True
    return ~is_own


def query_sides(text: TokenizedText) -> Int[np.ndarray, " query"]:
    """Segment that is each query's block sieve: 0 up to the last token of the first segment, then 1.

    Special tokens are included: [CLS] to the first segment, the separators to the second.
    """
    first = np.flatnonzero(text.segments == 0)
    return (np.arange(len(text.ids)) > (first[-1] if len(first) else -1)).astype(np.int64)


def relation_pairs(text: PassText) -> Sequence[TokenPair]:
    """The grammatical relations of a text."""
    return text.pairs


def earlier_copies(text: PassText) -> list[TokenPair]:
    """Every token that has occurred before, with all of its earlier copies; special tokens are left out."""
    ids = np.where(text.queries.segments == SPECIAL, -1, text.queries.ids)
    order = np.argsort(ids, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(ids[order])) + 1)
    pairs = [
        TokenPair("", run[index : index + 1], run[:index])
        for run in runs
        if len(run) > 1 and ids[run[0]] >= 0
        for index in range(1, len(run))
    ]
    return sorted(pairs, key=lambda pair: int(pair.dependent[0]))


def after_earlier_copies(text: PassText) -> list[TokenPair]:
    """Every token that has occurred before, with the tokens right after its earlier copies, itself excepted; special
    tokens are left out.

    Source: Olsson et al. 2022, prefix matching, as corrected in 2022-09: the tokens that follow earlier copies.
    """
    is_special = text.queries.segments == SPECIAL
    copies = earlier_copies(text)
    after = [(pair.head + 1)[pair.head + 1 < pair.dependent] for pair in copies]
    pairs = [TokenPair("", pair.dependent, keys[~is_special[keys]]) for pair, keys in zip(copies, after, strict=True)]
    return [pair for pair in pairs if len(pair.head)]


def copied_from_needle(text: PassText) -> list[TokenPair]:
    """Every token after which one of the answer comes, with the tokens of the needle that this one is a copy of.

    Source: Wu et al. 2024, retrieval score; they let the model write the answer, and count the steps at which the token
    that is written has most attention. Here the answer is given, and its attention counts.
    """
    queries = text.queries
    if queries.given is None or queries.given.needle is None or queries.given.answer is None:
        return []
    needle, answer = (np.arange(*span) for span in (queries.given.needle, queries.given.answer))
    copies = [
        TokenPair("", np.array([position - 1]), needle[queries.ids[needle] == queries.ids[position]])
        for position in answer[answer < len(queries.ids)].tolist()
    ]
    return [pair for pair in copies if len(pair.head)]


def anywhere(text: PassText, causal: bool) -> bool:
    """Every text, also in cross-attention."""
    return True


def within_a_text(text: PassText, causal: bool) -> bool:
    """Texts whose queries are also their keys."""
    return text.queries is text.keys


def within_pairs(text: PassText, causal: bool) -> bool:
    """Texts of two segments whose queries are also their keys."""
    return text.queries is text.keys and text.queries.n_segments == 2


def in_causal_models(text: PassText, causal: bool) -> bool:
    """Texts of models in which tokens cannot attend to later ones."""
    return causal


def in_chats(text: PassText, causal: bool) -> bool:
    """Texts in which a chat template put tokens around turns."""
    return bool(of_template(text.keys).any())


RELATION_WORDS: Final = {"nsubj": "subjects", "dobj": "objects", "amod": "adjectives", "advmod": "adverbs"}
"""The words of which a relation begins; other relations are called by their names."""


def _relation_role(relation: str) -> Role:
    return Role(
        name=f"syntactic:{relation}",
        expects=RELATION_WORDS.get(relation, relation),
        sieve=Pairs(relation_pairs, relation),
        applies=anywhere,
        part_of="syntactic",
        directions=DIRECTIONS,
    )


RECORDS: Final = (
    Role(
        name="local",
        expects="neighbouring tokens",
        meaning=f"Looks nearby: at the token itself and up to {LOCAL_RADIUS} tokens before and after it.",
        sieve=Band(-LOCAL_RADIUS, LOCAL_RADIUS),
        applies=within_a_text,
    ),
    Role(
        name="syntactic",
        expects="words that are related to each other",
        meaning="Looks along grammatical relations: between subjects, objects, adjectives or adverbs and the words "
        "that they belong to.",
        sieve=Pairs(relation_pairs),
        applies=anywhere,
        directions=DIRECTIONS,
    ),
    Role(
        name="delimiter",
        expects="the special tokens",
        meaning="Looks at the special tokens that mark where a text begins and ends, such as [CLS] and [SEP].",
        sieve=Keys((is_cls, is_sep)),
        applies=anywhere,
    ),
    Role(
        name="block",
        expects="tokens of the same segment",
        meaning="Looks at the tokens of its own segment, in a text that has two.",
        sieve=Keys((in_first_segment, in_second_segment), query_sides),
        applies=within_pairs,
        weight="entropy",
        lacks="it needs pairs of segments, and these are single texts",
    ),
    Role(
        name="sink",
        expects="the first token",
        meaning="Looks at the first token of the text, as many heads of models do that only look back: an attention "
        "sink.",
        sieve=Keys((is_first,)),
        applies=in_causal_models,
    ),
    Role(name="delimiter:cls", expects="[CLS]", sieve=Keys((is_cls,)), applies=anywhere, part_of="delimiter"),
    Role(name="delimiter:sep", expects="[SEP]", sieve=Keys((is_sep,)), applies=anywhere, part_of="delimiter"),
    *map(_relation_role, RELATIONS),
    Role(
        name="previous",
        expects="the previous token",
        meaning="Looks at the token before the one that looks.",
        sieve=Band(-1, -1),
        applies=within_a_text,
        is_usual=False,
    ),
    Role(
        name="induction",
        expects="the tokens after earlier copies of the same token",
        meaning="Looks back at the tokens that came after earlier copies of the token that looks, as heads do that "
        "continue a repetition.",
        sieve=Pairs(after_earlier_copies),
        applies=in_causal_models,
        lacks="no text has a token that occurs twice with another one between, as texts with repeats have",
        is_usual=False,
    ),
    Role(
        name="duplicate",
        expects="earlier copies of the same token",
        meaning="Looks back at earlier copies of the token that looks.",
        sieve=Pairs(earlier_copies),
        applies=within_a_text,
        lacks="no text has a token that occurs twice",
        is_usual=False,
    ),
    Role(
        name="retrieval",
        expects="the tokens of a needle that the answer copies",
        meaning="Looks, where a token of an answer is to come, at the same token in the needle: the sentence in a long "
        "text that the answer copies.",
        sieve=Pairs(copied_from_needle),
        applies=in_causal_models,
        lacks="it needs texts in which a needle and its answer are marked, such as the probe texts with needles",
        is_usual=False,
    ),
    Role(
        name="template",
        expects="the tokens of the chat template",
        meaning="Looks at the tokens that the chat template puts around the turns of a chat, such as the names of who "
        "speaks.",
        sieve=Keys((of_template,)),
        applies=in_chats,
        lacks="it needs a chat, around whose turns a template puts tokens of its own",
        is_usual=False,
    ),
)
"""Every role. The usual ones come first, and of those the ones with a corner of the grid."""
BY_NAME: Final = {role.name: role for role in RECORDS}
ROLES: Final = tuple(role.name for role in RECORDS if role.is_usual)
"""Names of the roles that are scored without being asked for."""
FURTHER_ROLES: Final = tuple(role.name for role in RECORDS if not role.is_usual)
"""Names of the roles that are scored only if asked for."""
DECODER_ROLES: Final = ("previous", "induction", "duplicate", "retrieval")
"""Further roles that say what heads of a decoder do: asked for together, they are scored in one pass."""
COARSE_ROLES: Final = ROLES[:4]
"""Those with a corner of the grid for an encoder."""
FINE_ROLES: Final = ROLES[len(COARSE_ROLES) :]


def known_roles(names: Iterable[str]) -> tuple[str, ...]:
    """Names of roles, each once, in the order of RECORDS.

    Raises: AnalysisError for a name that no role has.
    """
    asked = dict.fromkeys(names)
    if unknown := [name for name in asked if name not in BY_NAME]:
        raise AnalysisError(f"There is no role {quoted(unknown[0])}. The roles are {', '.join(BY_NAME)}.")
    return tuple(name for name in BY_NAME if name in asked)


def coarse_roles(roles: tuple[str, ...]) -> tuple[str, ...]:
    """Of some roles those that are described: the coarse ones, and further ones that were asked for."""
    return tuple(role for role in roles if role in COARSE_ROLES or role in FURTHER_ROLES)


def shown_roles(
    scores: Float[np.ndarray, "role layer head"], roles: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The coarse and the finer roles to display for a checkpoint.

    If no text has a delimiter, the first token of a causal model replaces it among the coarse roles; otherwise that is
    a finer role, if applicable. In a causal model the previous token, where it is scored, replaces the local role, of
    which half is out of sight, and a role that applies to no text is not shown. Other roles that are scored only if
    asked for stand beside the coarse ones.

    Args:
        scores: scores of one text, or means over several; NaN where a role is not applicable.
        roles: names along the role axis.
    """
    applies = {role for role, of_role in zip(roles, scores, strict=True) if np.isfinite(of_role).any()}
    instead = {"delimiter": "sink"} if "sink" in applies and "delimiter" not in applies else {}
    if {"sink", "previous"} <= applies:
        instead["local"] = "previous"
    coarse = tuple(dict.fromkeys(instead.get(role, role) for role in coarse_roles(roles)))
    fine = [role for role in FINE_ROLES if role not in coarse and BY_NAME[role].part_of not in instead]
    fine = [role for role in fine if role != "sink" or role in applies]
    if "local" in instead:
        coarse, fine = tuple(role for role in coarse if role in applies), ["local", *fine]
    return coarse, tuple(role for role in fine if role in roles)


def shown_roles_of_all(
    means: Iterable[Float[np.ndarray, "role _ _"]], roles: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The coarse and the finer roles to display for several checkpoints: the union, coarse if coarse for any of them.

    Args:
        means: mean scores of each checkpoint; numbers of layers and heads may differ.
        roles: names along the role axis.
    """
    shown = [shown_roles(of_checkpoint, roles) for of_checkpoint in means]
    coarse = tuple(role for role in roles if any(role in of_checkpoint[0] for of_checkpoint in shown))
    return coarse, tuple(
        role for role in roles if role not in coarse and any(role in of_checkpoint[1] for of_checkpoint in shown)
    )


def combinations(
    holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], of: tuple[str, ...] = COARSE_ROLES
) -> dict[frozenset[str], tuple[tuple[int, int], ...]]:
    """Heads by their exact combination of roles: the regions of a Venn diagram.

    Args:
        holds: which head has which role.
        roles: names along the role axis.
        of: the roles to combine; roles that are not in `roles` are treated as roles of no head.

    Returns: combination -> its heads as (layer, head), in reading order. Every head is in exactly one combination,
        possibly the empty one; combinations without heads are left out.
    Source: Pande et al. 2021, Venn diagrams per task.
    """
    heads_of: defaultdict[frozenset[str], list[tuple[int, int]]] = defaultdict(list)
    for layer, head in np.ndindex(holds.shape[1:]):
        held = {role for role, is_held in zip(roles, holds[:, layer, head], strict=True) if is_held}
        heads_of[frozenset(held.intersection(of))].append((layer, head))
    return {combination: tuple(heads) for combination, heads in heads_of.items()}


def roles_per_layer(holds: Bool[np.ndarray, "role layer head"]) -> Int[np.ndarray, "role layer"]:
    """Number of heads of each layer that have each role.

    Source: Pande et al. 2021, roles across layers.
    """
    return holds.sum(axis=2)


def heads_with_several(
    holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], of: tuple[str, ...] = COARSE_ROLES
) -> Int[np.ndarray, "layer"]:
    """Number of heads of each layer that have two or more of some roles.

    With the coarse roles, finer roles do not count: a head with the roles delimiter and delimiter:cls has one role.
    Source: Pande et al. 2021, multi-functional heads.
    """
    coarse = [role in of for role in roles]
    return (holds[coarse].sum(axis=0) >= 2).sum(axis=1)


def similar_heads(
    mean_scores: Float[np.ndarray, "role layer head"], head: tuple[int, int], *, logarithmic: bool = True
) -> list[tuple[tuple[int, int], float]]:
    """The other heads, sorted by the distance between mean scores, most similar first.

    Args:
        mean_scores: means over texts; a role with NaN for any head is ignored.
        head: layer and head to compare with.
        logarithmic: whether to compare log2(1 + score), which keeps a role with high scores, such as delimiter, from
            deciding alone; shares above chance, of which none is above 1, are compared as they are.

    Returns: (layer, head) and the root mean square difference over the roles: 0 for equal means.
    """
    known = ~np.isnan(mean_scores).any(axis=(1, 2))
    if not known.any():
        return []
    profiles = np.log2(1 + mean_scores[known]) if logarithmic else mean_scores[known]
    distances = np.sqrt(np.square(profiles - profiles[:, head[0], head[1], None, None]).mean(axis=0))
    order = np.argsort(distances, axis=None, kind="stable")
    indices = (np.unravel_index(flat, distances.shape) for flat in order)
    return [((int(i), int(j)), float(distances[i, j])) for i, j in indices if (i, j) != head]
