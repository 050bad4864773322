"""Which texts are equal, so that they count once."""

from attention_sieve.core.texts.equal import different_rows, equal_texts, text_numbers
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids


def test_texts_are_equal_by_their_segments_but_for_spaces_and_by_their_ids():
    ids = text_of_ids(GivenTokens((3, 1, 4))), text_of_ids(GivenTokens((3, 1, 5)))
    texts = [
        Text(("It  rained.",)),
        Text(("It", "rained.")),
        Text(("It rained.",), document="diary"),
        ids[0],
        ids[1],
        Text(("it rained.",)),
        ids[0],
    ]
    numbers = text_numbers(texts)
    assert numbers.tolist() == [0, 1, 0, 3, 4, 5, 3]
    assert different_rows(numbers).tolist() == [0, 1, 3, 4, 5]
    assert different_rows(numbers[2:]).tolist() == [0, 1, 2, 3]


def test_how_many_are_equal_is_said_where_any_are():
    assert equal_texts(0, 5) is None
    assert equal_texts(1, 2) == "Equal texts count once: 1 of 2 repeats another."
    assert equal_texts(1_999, 2_000) == "Equal texts count once: 1,999 of 2,000 repeat others."
