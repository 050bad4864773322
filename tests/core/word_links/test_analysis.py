"""Which heads link the words of a pattern over many texts."""

import numpy as np
import pytest
from planted import save_planted
from scipy.stats import t as student
from scipy.stats import ttest_rel
from statsmodels.regression.linear_model import OLS

from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import words_of
from attention_sieve.core.word_links.analysis import WORD_LINK_ANALYSIS, WordLinkSettings, pattern_links
from attention_sieve.core.word_links.pattern import Pattern, PatternAttention, PatternText

HEADS, RELATIONS = (2, 0, 2, 2), ("nsubj", "root", "obj", "punct")


def read(words=("She", "saw", "her", "!"), heads=HEADS, relations=RELATIONS):
    """A text, and its tree without a parser."""
    text = Text((" ".join(words),), (words,))
    tree = Dependencies(words=words_of(text), heads=np.array(heads) - 1, relations=relations)
    return text, tree


@pytest.mark.parametrize(
    ("pattern", "pairs"),
    [
        (Pattern(query="she", key="HER"), ((0, 2),)),
        (Pattern(relation="nsubj"), ((0, 1),)),
        (Pattern(relation="dobj", from_dependent=False), ((1, 2),)),
        (Pattern(query="her", relation="obj"), ((2, 1),)),
        (Pattern(query="she", key="him"), None),
        (Pattern(key="she", relation="obj"), None),
    ],
)
def test_a_text_has_the_pairs_of_a_pattern_or_is_none(pattern, pairs):
    found = PatternText.of(*read(), pattern)
    assert (found and found.pairs) == pairs


def test_other_pairs_are_words_at_the_same_signed_distance():
    # "!" is no word to compare with, and the pairs of the pattern are none either.
    assert PatternText.of(*read(), Pattern(relation="nsubj")).others == ((1, 2),)
    words = ("the", "cat", "saw", "the", "dog")
    of_pair = PatternText.of(
        *read(words, (2, 3, 0, 5, 3), ("det", "nsubj", "root", "det", "obj")), Pattern("the", "cat")
    )
    assert of_pair.pairs == ((0, 1), (3, 1))
    assert of_pair.others == ((2, 0), (4, 2), (1, 2), (2, 3), (3, 4))


def attended(shares, others, n_pairs=1, even=0.1):
    shares, others = np.array(shares), np.array(others)
    return PatternAttention(
        n_pairs=n_pairs, shares=shares, even=np.full(len(shares), even), compared=shares, others=others
    )


def test_texts_are_summed_up_by_hand_and_tested_in_pairs():
    rng = np.random.default_rng(3)
    shares, others = rng.uniform(0.3, 0.5, (5, 2, 3)), rng.uniform(0.2, 0.4, (5, 2, 3))
    shares[:, 1, 2] += 0.4
    texts = [attended(*of_text, n_pairs=number) for number, of_text in enumerate(zip(shares, others), start=1)]
    empty = attended(shares[0] * np.nan, others[0] * np.nan, n_pairs=0)
    found = pattern_links([*texts[:2], empty, *texts[2:]], correction="none")
    assert (found.n_texts, found.n_pairs, found.n_compared) == (5, 15, 5)
    assert found.shares == pytest.approx(shares.mean(axis=0))
    assert found.others == pytest.approx(others.mean(axis=0))
    assert found.p == pytest.approx(ttest_rel(shares, others, alternative="greater").pvalue)
    assert (found.low < found.shares).all()
    assert (found.shares < found.high).all()
    assert found.held_out.heads == ((1, 2), (1, 2))
    # Best on each half is the same head: its held-out share is that of all texts.
    assert found.held_out.share == pytest.approx(found.shares[1, 2])
    assert found.held_out.low == pytest.approx(found.low[1, 2])
    assert found.held_out.others == pytest.approx(found.others[1, 2])
    assert (pattern_links(texts).p >= found.p).all()


def test_documents_are_the_units_as_in_a_cluster_robust_regression():
    rng = np.random.default_rng(4)
    shares, others = rng.uniform(0.3, 0.5, (7, 1, 2)), rng.uniform(0.25, 0.45, (7, 1, 2))
    shares[[0, 1, 4], 0, 1] += 0.3
    texts = [attended(*of_text) for of_text in zip(shares, others)]
    empty = attended(shares[0] * np.nan, others[0] * np.nan, n_pairs=0)
    names, numbers = ["a", "a", None, "b", "a", "b", "b"], np.array([0, 0, 1, 2, 0, 2, 2])
    found = pattern_links([empty, *texts], ["c", *names], correction="none")
    assert (found.n_texts, found.n_documents, found.n_compared) == (7, 3, 7)
    for head in range(2):
        values = (shares - others)[:, 0, head]
        # statsmodels' correction has another factor, (n - 1) / (n - k), which is 1 for a mean.
        fit = OLS(values, np.ones(7)).fit(cov_type="cluster", cov_kwds={"groups": numbers}, use_t=True)
        assert found.p[0, head] == pytest.approx(student.sf(fit.tvalues[0], 2))
        fit = OLS(shares[:, 0, head], np.ones(7)).fit(cov_type="cluster", cov_kwds={"groups": numbers}, use_t=True)
        share, squared = fit.params[0], student.ppf(0.975, 2) ** 2
        n_effective = share * (1 - share) / fit.bse[0] ** 2
        centre = (share + squared / (2 * n_effective)) / (1 + squared / n_effective)
        half = np.sqrt(squared * (share * (1 - share) / n_effective + squared / (4 * n_effective**2)))
        half /= 1 + squared / n_effective
        assert (found.low[0, head], found.high[0, head]) == pytest.approx((centre - half, centre + half))
    # The even documents, "a" and "b", have the second head's high shares; the odd one judges it.
    assert found.held_out.heads[0] == (0, 1)
    alone = pattern_links(texts, ["a"] * 7)
    assert (alone.n_documents, alone.held_out) == (1, None)
    assert np.isnan([alone.low, alone.p]).all()


def test_a_head_is_chosen_on_one_half_and_judged_on_the_other():
    texts = [attended([[1.0, 0.2]], [[0.1, 0.1]]), attended([[0.4, 0.6]], [[0.1, 0.3]])]
    found = pattern_links(texts).held_out
    assert found.heads == ((0, 0), (0, 1))
    assert found.share == pytest.approx((0.4 + 0.2) / 2)
    assert found.others == pytest.approx(0.1)


def test_one_text_has_neither_test_nor_held_out_head():
    found = pattern_links([attended([[0.9]], [[np.nan]])])
    assert found.held_out is None
    assert np.isnan([found.low, found.p]).all()
    assert (found.n_compared, found.beats(0.05).any()) == (0, False)


SENTENCES = (
    "a dog ran where she chased the cat .",
    "the cat sat on the mat where she ran .",
    "who ran and sat ?",
    "two birds eat red apples where she chased a black cat .",
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return load_checkpoint(find_checkpoint(save_planted(tmp_path_factory.mktemp("planted"), "she", "cat", (1, 2))))


def links(checkpoint, texts, pattern, pass_settings=None):
    return find(WORD_LINK_ANALYSIS, checkpoint, texts, WordLinkSettings(pattern=pattern), pass_settings).links


def test_the_planted_head_links_its_words_over_the_texts(planted):
    texts = [Text((sentence,)) for sentence in SENTENCES]
    found = links(planted, texts, Pattern("she", "cat"))
    assert (found.n_texts, found.n_pairs, found.n_compared) == (3, 3, 3)
    assert found.shares[1, 2] == pytest.approx(1, abs=1e-4)
    assert found.held_out.heads == ((1, 2), (1, 2))
    # All other heads spread their attention evenly; the special tokens are two more.
    even = np.mean([1 / (len(sentence.split()) + 2) for sentence in SENTENCES if "cat" in sentence])
    assert found.even == pytest.approx(np.full(2, even))
    rest = np.delete(found.shares.ravel(), 5)
    assert rest == pytest.approx(np.full(5, even), abs=1e-5)
    assert np.argwhere(found.beats(0.05)).tolist() == [[1, 2]]
    back = links(planted, texts, Pattern("cat", "she"))
    assert not back.beats(0.05).any()


def test_a_later_word_is_no_pair_of_a_causal_checkpoint(loaded):
    checkpoint = loaded("gpt2")
    texts = [Text((sentence.replace(" .", ""),)) for sentence in SENTENCES]
    found = links(checkpoint, texts, Pattern("she", "cat"))
    assert (found.n_texts, found.n_pairs) == (1, 1)  # in the others the cat comes later
    with pytest.raises(AnalysisError, match="A pattern is of words of one text"):
        links(loaded("t5"), texts, Pattern("she", "cat"), PassSettings("cross"))
