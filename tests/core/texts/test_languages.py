"""Texts that are not English are recognised, and English ones are left alone."""

import gzip

import pytest

from attention_sieve.core.texts.languages import foreign_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Der Hund frisst den Knochen.", "German"),
        ("Die Katze mag Fisch", "German"),
        ("Le chat noir dort sur le tapis.", "French"),
        ("El perro come un hueso.", "Spanish"),
        ("Un gatto mangia il pesce.", "Italian"),
        ("Мальчик читает интересную книгу.", "Russian"),
        ("She ate pizza", ""),
        ("Colorless green ideas sleep furiously.", ""),
        ("Maria met Juan in Madrid", ""),
        ("Chef Henri cooked for us", ""),
        ("I die in war", ""),
        ("x = 3 + 4", ""),
        ("Hund", ""),
        ("", ""),
    ],
)
def test_the_language_of_a_text_is_told_by_its_words(text, language):
    assert foreign_language(text) == language


def test_english_sentences_are_taken_for_english(shared):
    with gzip.open(shared / "data" / "glue" / "SST-2" / "dev.tsv.gz", "rt", encoding="utf-8") as file:
        sentences = [line.rsplit("\t", 1)[0] for line in file][1:501]
    assert [sentence for sentence in sentences if foreign_language(sentence)] == []
