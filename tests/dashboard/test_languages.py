"""How numbers are written in a language."""

import pytest

from attention_sieve.dashboard.languages import ENGLISH, localized


@pytest.mark.parametrize(
    ("value", "german"),
    [
        ("95%", "95\u00a0%"), ("0.95", "0,95"), ("1,234.5", "1.234,5"), ("12°", "12°"),
        ("1.3\u00a0:\u00a01", "1,3\u00a0:\u00a01"), ("L0 H2 (100%)", "L0 H2 (100\u00a0%)"), ("L0 H2", "L0 H2"),
        ("It cost 3.5", "It cost 3.5"),
    ],
)  # fmt: skip
def test_numbers_follow_the_language_and_words_stay(value, german):
    assert localized(value, "de") == german


@pytest.mark.parametrize("value", ["95%", "0.95", "1,234.5", "1.3\u00a0:\u00a01", "L0 H2 (100%)", "L0 H2", "a 3.5 b"])
def test_english_numbers_stay_as_they_are(value):
    assert localized(value, ENGLISH) == value
