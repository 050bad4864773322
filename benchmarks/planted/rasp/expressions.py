"""Parts of RASP programs of which every head is known, and inputs for them; written for tracr, which this module needs.

Predicates take key and query, in this order. Where a head carries a categorical value, its selector selects one token,
or tokens with one value: tracr cannot average others.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from tracr.rasp import rasp

Values = list[Any]
Sampler = Callable[[np.random.Generator, int], Values]
HEAD: Final = "head"
"""Annotation of an expression that becomes a head."""


@dataclass(frozen=True)
class HeadFacts:
    """What a head looks at, and what it carries."""

    looks_at: str
    offset: int
    writes: str
    description: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Program:
    """A RASP program, and inputs for it."""

    name: str
    sentence: str
    cases: tuple[int, ...]
    """Numbers of the cases of InterpBench that compute this or nearly this."""
    output: rasp.SOp
    vocabulary: tuple[Any, ...]
    sampler: Sampler
    longest: int
    """Tokens of the longest input, without the first token that the compiler adds."""
    causal: bool

    @property
    def heads(self) -> tuple[rasp.SOp, ...]:
        """The expressions that become heads."""
        found: dict[str, rasp.SOp] = {}
        waiting = [self.output]
        while waiting:
            expression = waiting.pop()
            if HEAD in expression.annotations:
                found[expression.label] = expression
            waiting += expression.children
        return tuple(found.values())


def head(expression: rasp.SOp, name: str, facts: HeadFacts, *, is_number: bool = False) -> rasp.SOp:
    encoding = rasp.Encoding.NUMERICAL if is_number else rasp.Encoding.CATEGORICAL
    return expression.annotated(name=name, encoding=encoding, **{HEAD: facts})


def at_distance(values: rasp.SOp, distance: int, writes: str = "token") -> rasp.SOp:
    """The value so many tokens back; negative: ahead."""
    word = {1: "previous", -1: "next"}.get(distance, "ruler")
    where = f"{abs(distance)} {'back' if distance > 0 else 'ahead'}"
    selector = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - distance)
    facts = HeadFacts(word, distance, writes, f"the token {where}; without one, the first token")
    return head(rasp.Aggregate(selector, values), f"value {where}", facts)


def at_index(values: rasp.SOp, index: rasp.SOp, description: str) -> rasp.SOp:
    """The value at the index that each token asks for."""
    selector = rasp.Select(rasp.indices, index, rasp.Comparison.EQ)
    return head(rasp.Aggregate(selector, values), "value at index", HeadFacts("program", 0, "token", description))


def at_start(values: rasp.SOp, index: int) -> rasp.SOp:
    """The value at one index, for all tokens."""
    selector = rasp.Select(rasp.indices, rasp.indices, lambda key, _: key == index)
    facts = HeadFacts("program", 0, "token", f"token {index} of the input, which comes after the first token")
    return head(rasp.Aggregate(selector, values), f"value at {index}", facts)


def share(truths: rasp.SOp, name: str) -> rasp.SOp:
    """In a causal program the share of tokens so far, itself included, at which something is true; else of all."""
    number = rasp.numerical(rasp.Map(int, truths))
    selector = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.TRUE)
    facts = HeadFacts("uniform", 0, name, "all tokens that it sees, but not the first token")
    return head(rasp.Aggregate(selector, number, default=0), name, facts, is_number=True)


def number_of(keys: rasp.SOp, queries: rasp.SOp, predicate: Callable[[Any, Any], bool], facts: HeadFacts) -> rasp.SOp:
    """How many tokens are selected."""
    return head(rasp.SelectorWidth(rasp.Select(keys, queries, predicate)), facts.writes, facts)


def number_of_tokens() -> rasp.SOp:
    facts = HeadFacts("uniform", 0, "number of tokens", "all tokens, the first token included")
    return number_of(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE, facts)


def number_of_same() -> rasp.SOp:
    facts = HeadFacts("same token", 0, "number of equal tokens", "equal tokens, itself and the first token included")
    return number_of(rasp.tokens, rasp.tokens, rasp.Comparison.EQ, facts)


def number_of_smaller() -> rasp.SOp:
    facts = HeadFacts("program", 0, "number of smaller tokens", "smaller tokens, and the first token")
    return number_of(rasp.tokens, rasp.tokens, rasp.Comparison.LT, facts)


def number_of_greater() -> rasp.SOp:
    facts = HeadFacts("program", 0, "number of greater tokens", "greater tokens, and the first token")
    return number_of(rasp.tokens, rasp.tokens, rasp.Comparison.GT, facts)


def joined(function: Callable[[Any, Any], Any], first: rasp.SOp, second: rasp.SOp) -> rasp.SOp:
    """A value that follows from two."""
    return rasp.SequenceMap(function, first, second)


def both(first: rasp.SOp, second: rasp.SOp) -> rasp.SOp:
    """Whether both are true."""
    return joined(lambda one, other: one and other, first, second)


def nowhere(truths: rasp.SOp, name: str, words: tuple[str, str]) -> rasp.SOp:
    """The first word where something is true at none of the tokens that are seen, else the second."""
    return rasp.Map(lambda part: words[0] if part == 0 else words[1], share(truths, name))


def uniform(vocabulary: Iterable[Any]) -> Sampler:
    """Draws tokens that are independent and equally likely."""
    words = list(vocabulary)
    return lambda random, length: [words[index] for index in random.integers(len(words), size=length)]


def half(special: Sampler, usual: Sampler) -> Sampler:
    """Draws half of the inputs from each."""
    return lambda random, length: (special if random.random() < 0.5 else usual)(random, length)


def mirrored(vocabulary: Iterable[Any]) -> Sampler:
    """Draws inputs that read the same from both ends."""
    draw = uniform(vocabulary)

    def sampler(random: np.random.Generator, length: int) -> Values:
        first = draw(random, (length + 1) // 2)
        return first + first[: length // 2][::-1]

    return sampler


def constant(vocabulary: Iterable[Any]) -> Sampler:
    """Draws inputs of one token again and again."""
    draw = uniform(vocabulary)
    return lambda random, length: draw(random, 1) * length


def different(vocabulary: Iterable[Any]) -> Sampler:
    """Draws inputs in which no token comes twice."""
    words = list(vocabulary)
    return lambda random, length: [words[index] for index in random.permutation(len(words))[:length]]
