"""The roles that a head can have: one record each, from which everything about them follows, and who holds which.

A new role is one record here, one `RoleLook` in `attention_sieve.dashboard.figures.appearance`, and a test: its scores,
references, columns in files, picture over the arcs and sentences on pages derive from these.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.roles.record import (
    DIRECTIONS,
    LOCAL_RADIUS,
    Band,
    Keys,
    Pairs,
    Role,
    after_earlier_copies,
    anywhere,
    copied_from_needle,
    earlier_copies,
    in_causal_models,
    in_chats,
    in_first_segment,
    in_second_segment,
    in_template_after_first,
    is_cls,
    is_first,
    is_sep,
    query_sides,
    relation_pairs,
    within_a_text,
    within_pairs,
)
from attention_sieve.core.roles.rules import PREFIX, written_role
from attention_sieve.core.roles.written import record_of
from attention_sieve.core.texts.relations import RELATIONS, Wanted

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
        wanted=Wanted(),
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
        wanted=Wanted(),
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
        expects="the tokens of the chat template after the first token",
        meaning="Looks at the tokens that the chat template puts around the turns of a chat, such as the names of who "
        "speaks; the first token, at which many heads look in any text, is left out.",
        sieve=Keys((in_template_after_first,)),
        applies=in_chats,
        lacks="it needs a chat, around whose turns a template puts tokens of its own",
        is_usual=False,
        version=2,
    ),
)
"""Every role. The usual ones come first, and of those the ones with a corner of the grid."""
BY_NAME: Final = {role.name: role for role in RECORDS}
ALL: Final = "all"
"""In place of names: every role that is built in."""
ROLES: Final = tuple(role.name for role in RECORDS if role.is_usual)
"""Names of the roles that are scored without being asked for."""
FURTHER_ROLES: Final = tuple(role.name for role in RECORDS if not role.is_usual)
"""Names of the roles that are scored only if asked for."""
DECODER_ROLES: Final = ("previous", "induction", "duplicate", "retrieval")
"""Further roles that say what heads of a decoder do: asked for together, they are scored in one pass."""
COARSE_ROLES: Final = ROLES[:4]
"""Those with a corner of the grid for an encoder."""
FINE_ROLES: Final = ROLES[len(COARSE_ROLES) :]


def role_named(name: str) -> Role:
    """The role of this name: built in, or written by a reader, whose name holds its rule.

    Raises: AnalysisError for a name that no role has.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    if not name.startswith(PREFIX):
        raise AnalysisError(f"There is no role {quoted(name)}. The roles are {', '.join(BY_NAME)}.")
    return record_of(written_role(name))


def known_roles(names: Iterable[str]) -> tuple[str, ...]:
    """Names of roles, each once, in the order of RECORDS; then those that a reader has written, in their own order.

    Raises: AnalysisError for a name that no role has, and for two written roles that are called the same.
    """
    asked = dict.fromkeys(names)
    written = [name for name in asked if role_named(name).rule]
    called: dict[str, str] = {}
    for name in written:
        title = role_title(name)
        if title in BY_NAME or called.setdefault(title, name) != name:
            raise AnalysisError(f"There are two roles that are called {quoted(title)}. Rename one of them.")
    return (*(name for name in BY_NAME if name in asked), *written)


def asked_roles(names: Sequence[str]) -> tuple[str, ...]:
    """Those of `known_roles`; all that are built in if the only name is ALL.

    Raises: AnalysisError as `known_roles`.
    """
    return known_roles(BY_NAME if list(names) == [ALL] else names)


def role_title(name: str) -> str:
    """What a role is called in files: its name, and of a written role the name that its reader gave it."""
    return written_role(name).name if name.startswith(PREFIX) else name


def coarse_roles(roles: tuple[str, ...]) -> tuple[str, ...]:
    """Of some roles those that are described: the coarse ones, and further ones that were asked for."""
    return tuple(role for role in roles if role not in FINE_ROLES)


def shown_roles(
    scores: Float[np.ndarray, "role layer head"], roles: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The coarse and the finer roles to display for a checkpoint, by scores that are NaN where a role does not apply.

    If no text has a delimiter, the first token of a causal model replaces it among the coarse roles; otherwise that is
    a finer role, if applicable. In a causal model the previous token, where it is scored, replaces the local role, of
    which half is out of sight, and a role that applies to no text is not shown. Other roles that are scored only if
    asked for stand beside the coarse ones.
    """
    applies = {role for role, role_scores in zip(roles, scores, strict=True) if np.isfinite(role_scores).any()}
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
    """The coarse and the finer roles to display for several checkpoints: the union, coarse if coarse for any."""
    shown = [shown_roles(role_means, roles) for role_means in means]
    coarse = tuple(role for role in roles if any(role in coarse_and_fine[0] for coarse_and_fine in shown))
    return coarse, tuple(
        role for role in roles if role not in coarse and any(role in coarse_and_fine[1] for coarse_and_fine in shown)
    )


def combinations(
    holds: Bool[np.ndarray, "role layer head"], roles: tuple[str, ...], chosen: tuple[str, ...] = COARSE_ROLES
) -> dict[frozenset[str], tuple[tuple[int, int], ...]]:
    """Heads by their exact combination of roles: the regions of a Venn diagram.

    Args:
        chosen: the roles to combine; roles that are not in `roles` are treated as roles of no head.

    Returns: combination -> its heads as (layer, head), in reading order. Every head is in exactly one combination,
        possibly the empty one; combinations without heads are left out.
    Source: Pande et al. 2021, Venn diagrams per task.
    """
    heads_of: defaultdict[frozenset[str], list[tuple[int, int]]] = defaultdict(list)
    for layer, head in np.ndindex(holds.shape[1:]):
        held = {role for role, is_held in zip(roles, holds[:, layer, head], strict=True) if is_held}
        heads_of[frozenset(held.intersection(chosen))].append((layer, head))
    return {combination: tuple(heads) for combination, heads in heads_of.items()}


def similar_heads(
    mean_scores: Float[np.ndarray, "role layer head"], head: tuple[int, int], *, logarithmic: bool = True
) -> list[tuple[tuple[int, int], float]]:
    """The other heads, sorted by the distance between mean scores, most similar first.

    Args:
        mean_scores: means over texts; a role with NaN for any head is ignored.
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
