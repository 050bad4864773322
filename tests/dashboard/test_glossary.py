"""Terms that explain themselves where they stand."""

import re
from html import unescape

import numpy as np
import pytest
from reading import numbers, sent

from attention_sieve.core.roles.roles import COARSE_ROLES
from attention_sieve.dashboard.components.grid import MOST_TOKENS, picture
from attention_sieve.dashboard.glossary import TERMS, Piece, pieces


def test_a_term_is_marked_where_it_stands_first():
    assert pieces("A head is a head; **no head** has *roles*.") == [
        Piece("A "),
        Piece("head", means=TERMS["head"]),
        Piece(" is a head; "),
        Piece("no head", "strong"),
        Piece(" has "),
        Piece("roles", "emphasis"),
        Piece("."),
    ]


@pytest.mark.parametrize(
    ("sentence", "terms"),
    [
        ("each query looks at keys, at tau 3, over the corpus", ["query", "key", "tau", "corpus"]),
        ("tokens, and a token again", ["token"]),
        ("scores of two checkpoints in a sieve", ["score", "checkpoint", "sieve"]),
        ("a word's syntactic head, found by attention heads with a role", ["head", "role"]),
        ("overhead, keyboard, scored, taus; local or block", []),
    ],
)
def test_whole_words_are_terms_in_the_singular_and_the_plural(sentence, terms):
    assert [piece.means for piece in pieces(sentence) if piece.means] == [TERMS[term] for term in terms]


def test_the_page_lessons_lists_every_term_once_in_the_order_of_letters(app):
    (terms,) = (each for each in app("lessons").expander if each.label == "What the terms mean")
    lines = re.findall("<b>(.*?)</b>: (.*?)</div>", terms.get("html")[0].value)
    assert [tuple(map(unescape, line)) for line in lines] == [
        (term, TERMS[term]) for term in sorted(TERMS, key=str.lower)
    ]


def test_a_term_that_is_seen_in_the_sentence_of_the_lessons_has_its_picture(app):
    (terms,) = (each for each in app("lessons").expander if each.label == "What the terms mean")
    pictured = re.findall("<img [^>]*><div><b>(.*?)</b>", terms.get("html")[0].value)
    assert {"head", "query", "sieve", "syntactic", "local"} <= set(pictured)
    assert {"alpha", "checkpoint", "block"}.isdisjoint(pictured)


def test_a_picture_is_the_sieve_of_a_role_that_applies_of_a_long_text_at_its_beginning():
    whole = picture("local", ("a", "b", "c"), np.eye(3, 4, dtype=bool))
    assert (whole["tokens"], whole["keys"], cells_of(whole).tolist()) == (
        ["a", "b", "c"],
        4,
        np.eye(3, 4).tolist(),
    )
    assert "your text" in whole["caption"]
    assert "3 squares in colour" in whole["caption"]
    n_tokens = MOST_TOKENS + 9
    long = picture("local", ("t",) * n_tokens, np.ones((n_tokens, n_tokens), dtype=bool))
    assert (len(long["tokens"]), long["keys"]) == (MOST_TOKENS, MOST_TOKENS)
    assert f"the first {MOST_TOKENS} tokens of your text" in long["caption"]


def test_the_legend_of_inspect_shows_the_sieves_of_the_text_on_screen(app):
    grid = sent(app("inspect", text="The old dog slept."), "Heads of")
    pictures = dict(zip(COARSE_ROLES, grid["pictures"]))
    tokens = ["[CLS]", "the", "old", "dog", "slept", ".", "[SEP]"]
    assert pictures["local"]["tokens"] == tokens
    # Two tokens before and two after, as far as there are any.
    near = np.abs(np.subtract.outer(np.arange(7), np.arange(7))) <= 2
    assert np.array_equal(cells_of(pictures["local"]), near)
    ends = [token.startswith("[") for token in tokens]
    assert np.array_equal(cells_of(pictures["delimiter"]), np.tile(ends, (7, 1)))
    # nsubj and amod: from the dependent to its head.
    assert np.argwhere(cells_of(pictures["syntactic"])).tolist() == [[2, 3], [3, 4]]
    assert pictures["block"] is None
    assert grid["means"][:4] == [TERMS[role] for role in COARSE_ROLES]


def cells_of(picture):
    """The sieve that a picture draws."""
    n_cells = len(picture["tokens"]) * picture["keys"]
    packed = numbers(picture["cells"])
    return np.unpackbits(packed, count=n_cells).reshape(-1, picture["keys"]).astype(bool)
