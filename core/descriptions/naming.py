"""The name of a head in at most five words: what it mostly does, where its tests carry that."""

from dataclasses import dataclass
from typing import Final

from attention_sieve.core.descriptions.accuracies import (
    MOSTLY,
    Fact,
    HeadDescription,
    MentionFact,
    RelationFact,
    ShareFact,
    Target,
)
from attention_sieve.core.descriptions.describe import is_told
from attention_sieve.core.relations.settings import DIRECTIONS

MOST_WORDS: Final = 5
NO_NAME: Final = "No clear habit"
_BY_TARGET: Final[dict[Target, str]] = {
    "self": "Looks at the token itself",
    "previous": "Looks at the previous token",
    "next": "Looks at the next token",
    "cls": "Rests on [CLS]",
    "sep": "Rests on [SEP]",
    "punctuation": "Looks at stops and commas",
    "first": "Rests on the first token",
}
_ACROSS: Final[dict[Target, str]] = {
    "cls": "Rests on the source's [CLS]",
    "sep": "Rests on the source's [SEP]",
    "punctuation": "Looks at the source's punctuation",
}
"""Of attention to another text, where no target is at an offset."""
_MENTIONS: Final = "Mentions look at earlier ones"
_BY_RELATION: Final[dict[str, tuple[str, str]]] = {
    "nsubj": ("subjects", "their verbs"),
    "nsubjpass": ("subjects", "passive verbs"),
    "dobj": ("objects", "their verbs"),
    "obj": ("objects", "their verbs"),
    "amod": ("adjectives", "their nouns"),
    "advmod": ("adverbs", "modified words"),
    "det": ("articles", "their nouns"),
    "poss": ("possessors", "their nouns"),
    "nummod": ("numbers", "their nouns"),
    "aux": ("auxiliaries", "their verbs"),
    "auxpass": ("auxiliaries", "passive verbs"),
    "prep": ("prepositions", "governing words"),
    "pobj": ("nouns", "their prepositions"),
    "compound": ("modifiers", "main nouns"),
    "conj": ("conjuncts", "first conjuncts"),
    "cc": ("conjunctions", "first conjuncts"),
    "mark": ("subordinators", "clause verbs"),
    "case": ("case-markers", "their nouns"),
    "neg": ("negations", "their verbs"),
}
"""Dependents of a relation, in one word, and their heads, in two."""


@dataclass(frozen=True, kw_only=True)
class HeadName:
    """What a head is called over some texts."""

    words: str
    """At most MOST_WORDS."""
    fact: Fact | None
    """What the name speaks of, with its numbers; None for NO_NAME."""


def name_of_head(description: HeadDescription, alpha: float = 0.05) -> HeadName:
    """What a head mostly does, in at most five words; NO_NAME where nothing that it does passes every test.

    The name is that of the first fact of the description that the tests carry. That a fact is there has shown the
    first: it was found on the texts, and, where there are other texts, on these too. Beyond that,

    - a target of most of the attention needs a mean share above MOSTLY, by an interval that is corrected for the number
      of heads and of targets, in shorter and in longer texts, in which equal texts count once;
    - a relation, or following mentions, was chosen on one half of the texts (or on all of them) and has to pass on the
      other half (or on other texts): be right in most cases, clearly more often than the best simple guess and where
      that is wrong, with a p-value that is corrected for the number of heads; and the right word has to get
      significantly more attention from the word that looks than from others, and at least twice as much.

    A target with a smaller share, even attention and roles give no name: they are not what a head mostly does.

    Args:
        description: from `attention_sieve.core.descriptions.describe.describe_heads`, with or without roles.
        alpha: level of its tests.
    """
    for fact in description.facts:
        match fact:
            case ShareFact() if fact.corrected_low > MOSTLY:
                words = (_ACROSS if description.sight == "across" else _BY_TARGET).get(fact.target)
            case RelationFact() if is_told(fact, alpha) and fact.control.beats:
                words = _of_relation(fact)
            case MentionFact() if is_told(fact, alpha) and fact.control.beats:
                words = _MENTIONS
            case _:
                continue
        if words is not None:
            return HeadName(words=words, fact=fact)
    return HeadName(words=NO_NAME, fact=None)


def _of_relation(fact: RelationFact) -> str:
    to_head = fact.direction == DIRECTIONS[0]
    if fact.relation not in _BY_RELATION:
        if fact.relation.split() != [fact.relation]:  # of a file that marks pairs
            return "Follows pairs that are marked"
        return f"{fact.relation}: {'dependents look at heads' if to_head else 'heads look at dependents'}"
    dependents, heads = _BY_RELATION[fact.relation]
    owned = heads.removeprefix("their ")
    words = f"{dependents} look at {heads}" if to_head else f"{owned} look at {heads.removesuffix(owned)}{dependents}"
    return words[0].upper() + words[1:]
