import numpy as np
import pytest

from core import scores
from core.analysis import CHUNK, look_at, measure, tokenize_all
from core.errors import TextError, TextTooLong
from core.hypotheses import Criterion, role_tests
from core.measures import MEASURES, ScoreSettings, role_scores
from core.parses import parse, token_pairs
from core.roles import ROLES
from core.texts import Text, read_typed
from core.tokens import tokenize

TEXTS = read_typed(
    "The black cat quickly chased two birds on the mat.\n"
    "She ran.\n"
    "Who sat on it? ||| A red dog sat on the mat.\n"
    "Two dogs do not eat red apples.\n"
    "Eat!"
)
LONG = Text(("the cat " * 30,))


@pytest.fixture
def checkpoint(loaded):
    return loaded("bert")


@pytest.fixture
def passes(monkeypatch):
    """Counts the passes through the door that scores or maps are made with."""
    counted = []
    observe = scores.observe

    def counting(*arguments, **named):
        counted.append(len(arguments[1]))
        return observe(*arguments, **named)

    monkeypatch.setattr(scores, "observe", counting)
    return counted


def in_order(measured):
    return sorted(measured, key=lambda text: text.position)


def test_the_chain_equals_its_stages_called_by_hand(checkpoint):
    measured = in_order(measure(checkpoint, TEXTS))
    assert [text.position for text in measured] == [0, 1, 2, 3, 4]
    for text, relations, found in zip(TEXTS, parse(TEXTS), measured):
        tokenized = tokenize(text, checkpoint.tokenizer, checkpoint.max_tokens)
        [(_, by_hand)] = scores.score_batches(checkpoint, [tokenized], [token_pairs(tokenized, relations)])
        np.testing.assert_allclose(found.measures, by_hand[0], rtol=1e-4, atol=1e-5)
        assert found.measures.shape == (len(MEASURES), 2, 3)
        assert (found.n_tokens, found.n_cut) == (len(tokenized.ids), 0)


def test_a_text_measures_the_same_whatever_is_measured_with_it(checkpoint, monkeypatch):
    together = in_order(measure(checkpoint, TEXTS))
    monkeypatch.setattr("core.analysis.CHUNK", 2)
    in_chunks = in_order(measure(checkpoint, TEXTS))
    backwards = in_order(measure(checkpoint, TEXTS[::-1]))[::-1]
    for one, two, three in zip(together, in_chunks, backwards):
        np.testing.assert_allclose(two.measures, one.measures, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(three.measures, one.measures, rtol=1e-4, atol=1e-5)


def test_a_long_text_stops_the_run_before_any_pass(checkpoint, passes):
    with pytest.raises(TextTooLong, match=r"^Text 3 has 62 tokens and this checkpoint takes 40\."):
        list(measure(checkpoint, [*TEXTS[:2], LONG]))
    assert passes == []


def test_a_long_text_that_is_skipped_comes_without_measures(checkpoint):
    measured = in_order(measure(checkpoint, [TEXTS[0], LONG, TEXTS[1]], too_long="skip"))
    assert [text.measures is None for text in measured] == [False, True, False]
    assert (measured[1].n_tokens, measured[1].n_cut) == (62, 0)


def test_a_long_text_that_is_cut_says_how_long_it_was(checkpoint):
    (text,) = measure(checkpoint, [LONG], too_long="truncate")
    assert (text.n_tokens, text.n_cut) == (62, 22)
    assert np.isfinite(text.measures[MEASURES.index("local")]).all()


def test_all_texts_too_long_make_no_pass(checkpoint, passes):
    (text,) = measure(checkpoint, [LONG], too_long="skip")
    assert text.measures is None
    assert passes == []


def test_a_text_without_tokens_is_named(checkpoint):
    with pytest.raises(TextError, match=r"^Text 2 has a segment in which this checkpoint knows no token"):
        list(measure(checkpoint, [TEXTS[0], Text(("\u200b",))]))


def test_progress_counts_every_text_up_to_all(checkpoint, monkeypatch):
    monkeypatch.setitem(scores.BATCH_TOKENS, "cpu", 20)
    told = []
    list(measure(checkpoint, TEXTS, progress=lambda done, total: told.append((done, total))))
    assert told[-1] == (5, 5)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) > 1


def test_a_run_stopped_by_its_progress_has_kept_what_was_done(checkpoint, monkeypatch):
    monkeypatch.setattr("core.analysis.CHUNK", 2)
    kept = []

    def stop(done, _):
        if done >= 2:
            raise KeyboardInterrupt

    def run():
        for text in measure(checkpoint, TEXTS, progress=stop):
            kept.append(text)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert len(kept) == 2


def test_a_chunk_is_parsed_only_when_its_turn_comes(checkpoint, monkeypatch):
    import core.analysis

    monkeypatch.setattr("core.analysis.CHUNK", 2)
    parsed = []

    def counting(texts):
        parsed.append(len(texts))
        return parse(texts)

    monkeypatch.setattr(core.analysis, "parse", counting)
    work = measure(checkpoint, TEXTS)
    next(work)
    assert parsed == [2]
    list(work)
    assert parsed == [2, 2, 1]
    assert CHUNK > 2


def test_looking_at_a_text_gives_what_is_drawn(checkpoint):
    seen = look_at(checkpoint, TEXTS[2])
    n_tokens = len(seen.tokenized.ids)
    assert seen.attention.shape == (2, 3, n_tokens, n_tokens)
    np.testing.assert_allclose(seen.attention.sum(-1), 1, atol=1e-5)
    assert not seen.causal
    assert {pair.name for pair in seen.pairs} >= {"nsubj", "amod"}


def test_looking_at_a_long_text_cuts_it_only_when_told(checkpoint):
    with pytest.raises(TextTooLong, match=r"^The text has 62 tokens"):
        look_at(checkpoint, LONG)
    assert look_at(checkpoint, LONG, too_long="truncate").attention.shape == (2, 3, 40, 40)


def test_tokenizing_tells_which_texts_are_left_out(checkpoint):
    kept, left_out = tokenize_all(checkpoint, [TEXTS[0], LONG, TEXTS[1], LONG], "skip")
    assert list(kept) == [0, 2]
    assert left_out == [(1, 62), (3, 62)]


def test_testing_at_another_tau_runs_no_model(checkpoint, passes):
    measures = np.stack([text.measures for text in in_order(measure(checkpoint, TEXTS))])
    passes.clear()
    for tau in (1.0, 1.5, 2.5):
        settings, criterion = ScoreSettings(direction="both", block_entropy=False), Criterion(tau=tau)
        tests = role_tests(role_scores(measures, settings), ROLES, criterion)
        expected = role_tests(role_scores(measures, settings), ROLES, criterion)
        np.testing.assert_array_equal(tests.mean, expected.mean)
        np.testing.assert_array_equal(tests.holds, expected.holds)
        assert tests.roles == ROLES
    assert passes == []
