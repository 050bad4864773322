"""The programs: what cases of InterpBench compute, as far as it needs attention and its output is categorical."""

from collections.abc import Callable
from typing import Any, Final

from tracr.rasp import rasp

from benchmarks.planted.rasp.expressions import (
    HeadFacts,
    Program,
    Sampler,
    at_distance,
    at_index,
    at_start,
    both,
    constant,
    different,
    half,
    head,
    joined,
    mirrored,
    nowhere,
    number_of,
    number_of_greater,
    number_of_same,
    number_of_smaller,
    number_of_tokens,
    share,
    uniform,
)

ABC: Final = ("a", "b", "c")
LETTERS: Final = ("a", "b", "c", "d", "e")
NUMBERS: Final = (1, 2, 3, 4, 5, 6)
TEN: Final = tuple(range(1, 11))
BRACKETS: Final = ("(", ")", "x")


def seen() -> rasp.SOp:
    """Whether an x has come."""
    part = share(rasp.tokens == "x", "whether the token is x")
    return rasp.Map(lambda share_of_x: "seen" if share_of_x > 0 else "unseen", part)


def _surplus() -> rasp.SOp:
    opened = share(rasp.tokens == "(", "whether the token opens")
    closed = share(rasp.tokens == ")", "whether the token closes")
    return rasp.numerical(rasp.LinearSequenceMap(opened, closed, 1, -1))


def surplus() -> rasp.SOp:
    """Whether more brackets have opened than closed."""
    return rasp.Map(lambda more: "more" if more > 0 else "fewer" if more < 0 else "equal", _surplus())


def balanced() -> rasp.SOp:
    """Whether the brackets so far are balanced."""
    more = _surplus()
    opened_first = nowhere(more < 0, "whether more brackets have closed than opened", ("yes", "no"))
    return joined(lambda first, even: "balanced" if first == "yes" and even else "not", opened_first, more == 0)


def pattern() -> rasp.SOp:
    """Whether a, b, c end here."""
    before = both(
        at_distance(rasp.tokens == "a", 2, "whether the token is a"),
        at_distance(rasp.tokens == "b", 1, "whether the token is b"),
    )
    return both(before, rasp.tokens == "c")


def trend() -> rasp.SOp:
    """Whether the token is greater than the one before, equal, or less."""
    return with_previous(lambda now, before: "up" if now > before else "down" if now < before else "level")


def boundary() -> rasp.SOp:
    """Whether letters and digits change here."""
    kind = rasp.Map(lambda token: "letter" if token in LETTERS else "digit", rasp.tokens)
    before = at_distance(kind, 1, "whether the token is a letter")
    return joined(lambda now, earlier: "inside" if now == earlier else "boundary", kind, before)


def alternation() -> rasp.SOp:
    """Whether the last three tokens alternate between two."""
    differs = with_previous(lambda now, before: now != before)
    returns = joined(lambda now, earlier: now == earlier, rasp.tokens, at_distance(rasp.tokens, 2))
    return both(differs, returns)


def without_repeats() -> rasp.SOp:
    """The token, or _ where it repeats the one before."""
    return with_previous(lambda now, before: "_" if now == before else now)


def first_of_kind() -> rasp.SOp:
    """The token, or _ where it has come before."""
    return joined(lambda token, number: token if number == 1 else "_", rasp.tokens, number_of_same())


def number_of_a() -> rasp.SOp:
    """How many a have come."""
    facts = HeadFacts("program", 0, "number of a", "every token a, and the first token")
    return number_of(rasp.tokens, rasp.tokens, lambda key, _: key == "a", facts)


def number_so_far() -> rasp.SOp:
    """How often the token has come."""
    return number_of_same()


def rising() -> rasp.SOp:
    """Whether no token so far is smaller than the one before it."""
    where = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == max(query - 1, 0))
    facts = HeadFacts("previous", 1, "token", "the token before; the first of the input looks at itself")
    before = head(rasp.Aggregate(where, rasp.tokens), "value before", facts)
    falls = joined(lambda now, earlier: now < earlier, rasp.tokens, before)
    return nowhere(falls, "whether the token is smaller than the one before", ("rising", "fell"))


def first_token() -> rasp.SOp:
    """The first token of the input."""
    return at_start(rasp.tokens, 0)


def second_token() -> rasp.SOp:
    """The second token of the input."""
    return at_start(rasp.tokens, 1)


def with_previous(function: Callable[[Any, Any], Any]) -> rasp.SOp:
    return joined(function, rasp.tokens, at_distance(rasp.tokens, 1))


def sum_with_previous() -> rasp.SOp:
    """The sum of the token and the one before."""
    return with_previous(lambda now, before: now + before)


def greater_of_two() -> rasp.SOp:
    """The greater of the token and the one before."""
    return with_previous(max)


def zero_if_less() -> rasp.SOp:
    """The token, or 0 where it is less than the one before."""
    return with_previous(lambda now, before: 0 if now < before else now)


def multiple_of_first() -> rasp.SOp:
    """Whether the token is a multiple of the first."""
    return joined(lambda now, first: now % first == 0, rasp.tokens, at_start(rasp.tokens, 0))


def _mirror_index() -> rasp.SOp:
    return joined(lambda number, index: number - 1 - index, number_of_tokens(), rasp.indices)


def reverse() -> rasp.SOp:
    """The input in reverse."""
    return at_index(rasp.tokens, _mirror_index(), "the token as far from the end as it is from the start")


def palindrome() -> rasp.SOp:
    """Whether the input reads the same from both ends."""
    differs = joined(lambda now, mirror: now != mirror, rasp.tokens, reverse())
    return nowhere(differs, "whether the token differs from its mirror", ("mirrored", "not mirrored"))


def interleaved() -> rasp.SOp:
    """The input, with its reverse at the odd indices."""
    source = joined(lambda index, mirror: mirror if index % 2 else index, rasp.indices, _mirror_index())
    return at_index(rasp.tokens, source, "itself at even indices, the mirror token at odd ones")


def histogram() -> rasp.SOp:
    """How often the token comes."""
    return number_of_same()


def frequency_class() -> rasp.SOp:
    """Whether the token is rare, common or frequent."""
    return rasp.Map(lambda number: "rare" if number < 2 else "common" if number < 4 else "frequent", number_of_same())


def rank() -> rasp.SOp:
    """How many tokens are smaller."""
    return number_of_smaller()


def greater_tokens() -> rasp.SOp:
    """How many tokens are greater."""
    return number_of_greater()


def sort() -> rasp.SOp:
    """The input, sorted."""
    key = joined(lambda token, index: 10 * token + index, rasp.tokens, rasp.indices)
    facts = HeadFacts("program", 0, "rank", "tokens that come earlier when sorted, and the first token")
    place = number_of(key, key, rasp.Comparison.LT, facts)
    selector = rasp.Select(place, rasp.indices, rasp.Comparison.EQ)
    carried = HeadFacts("program", 0, "token", "the token whose rank is its index")
    return head(rasp.Aggregate(selector, rasp.tokens), "value of rank", carried)


def maximum() -> rasp.SOp:
    """The greatest token."""
    selector = rasp.Select(number_of_greater(), rasp.indices, lambda key, _: key == 0)
    facts = HeadFacts("program", 0, "token", "the greatest tokens")
    return head(rasp.Aggregate(selector, rasp.tokens), "greatest value", facts)


def sum_with_next() -> rasp.SOp:
    """The sum of the token and the next one."""
    return joined(lambda now, after: now + after, rasp.tokens, at_distance(rasp.tokens, -1))


def swapped_neighbours() -> rasp.SOp:
    """The input with each two tokens in exchanged places."""
    selector = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query ^ 1)
    facts = HeadFacts("program", 0, "token", "the next token at even indices, the previous one at odd indices")
    return head(rasp.Aggregate(selector, rasp.tokens), "value of neighbour", facts)


def swapped_ends() -> rasp.SOp:
    """The input with its first and last token exchanged."""
    source = joined(
        lambda index, number: {0: number - 1, number - 1: 0}.get(index, index), rasp.indices, number_of_tokens()
    )
    return at_index(rasp.tokens, source, "the last token at the first index and the reverse, else itself")


def swapped_halves() -> rasp.SOp:
    """The input with its halves exchanged."""
    source = joined(lambda index, number: (index + number // 2) % max(number, 1), rasp.indices, number_of_tokens())
    return at_index(rasp.tokens, source, "the token half the length away")


def last_alone() -> rasp.SOp:
    """The last token at the first index, and 0 at all others."""
    last = at_index(rasp.tokens, rasp.Map(lambda number: number - 1, number_of_tokens()), "the last token")
    return joined(lambda token, index: token if index == 0 else 0, last, rasp.indices)


def all_equal() -> rasp.SOp:
    """Whether all tokens are equal."""
    differs = joined(lambda now, first: now != first, rasp.tokens, first_token())
    return nowhere(differs, "whether the token differs from the first", ("equal", "different"))


def any_twice() -> rasp.SOp:
    """Whether any token comes twice."""
    return nowhere(number_of_same() > 1, "whether the token comes twice", ("all different", "repeated"))


def times_length() -> rasp.SOp:
    """The token times the number of tokens."""
    return joined(lambda token, number: token * number, rasp.tokens, number_of_tokens())


def causal(
    build: Callable[[], rasp.SOp], cases: tuple[int, ...], vocabulary: tuple[Any, ...], sampler: Sampler | None = None
) -> Program:
    return _program(build, cases, vocabulary, sampler or uniform(vocabulary), True)


def two_way(
    build: Callable[[], rasp.SOp], cases: tuple[int, ...], vocabulary: tuple[Any, ...], sampler: Sampler | None = None
) -> Program:
    return _program(build, cases, vocabulary, sampler or uniform(vocabulary), False)


def _program(
    build: Callable[[], rasp.SOp], cases: tuple[int, ...], vocabulary: tuple[Any, ...], sampler: Sampler, causal: bool
) -> Program:
    return Program(
        name=build.__name__.replace("_", "-"),
        sentence=build.__doc__ or "",
        cases=cases,
        output=build(),
        vocabulary=vocabulary,
        sampler=sampler,
        longest=16 if causal else 10,
        causal=causal,
    )


def programs() -> tuple[Program, ...]:
    """All programs."""
    return (
        causal(seen, (3, 39), (*LETTERS, "x"), uniform([*LETTERS] * 3 + ["x"])),
        causal(surplus, (4,), BRACKETS),
        causal(balanced, (5,), BRACKETS),
        causal(pattern, (12,), ABC),
        causal(trend, (13,), NUMBERS),
        causal(boundary, (32,), (*ABC, "1", "2", "3")),
        causal(alternation, (38,), ABC),
        causal(without_repeats, (19,), ABC),
        causal(first_of_kind, (24, 96), LETTERS),
        causal(number_of_a, (14,), ABC),
        causal(number_so_far, (7, 47, 78), LETTERS),
        causal(rising, (89,), NUMBERS),
        causal(first_token, (42,), LETTERS),
        causal(second_token, (57,), LETTERS),
        causal(sum_with_previous, (118,), NUMBERS),
        causal(greater_of_two, (131,), NUMBERS),
        causal(zero_if_less, (92,), NUMBERS),
        causal(multiple_of_first, (116,), NUMBERS),
        two_way(reverse, (2,), LETTERS),
        two_way(palindrome, (17,), ABC, half(mirrored(ABC), uniform(ABC))),
        two_way(interleaved, (74,), LETTERS),
        two_way(histogram, (7, 47, 78), LETTERS),
        two_way(frequency_class, (18,), LETTERS),
        two_way(rank, (61, 63), NUMBERS),
        two_way(greater_tokens, (44,), NUMBERS),
        two_way(sort, (9, 59), (1, 2, 3, 4)),
        two_way(maximum, (98,), NUMBERS),
        two_way(sum_with_next, (99,), NUMBERS),
        two_way(swapped_neighbours, (93, 103), LETTERS),
        two_way(swapped_ends, (128,), LETTERS),
        two_way(swapped_halves, (120,), LETTERS),
        two_way(last_alone, (111,), NUMBERS),
        two_way(all_equal, (124,), ABC, half(constant(ABC), uniform(ABC))),
        two_way(any_twice, (108,), TEN, half(different(TEN), uniform(TEN))),
        two_way(times_length, (67,), NUMBERS),
    )
