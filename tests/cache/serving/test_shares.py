"""The share of the store that each session of a public server may fill."""

import pytest

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.serving.shares import QUOTA_SECONDS, STOPPED_BYTES, Quotas
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.comparison.question import COMPARISON
from attention_sieve.core.errors import AnalysisError, TextTooLong
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text

CAT, DOG, FROG = (Text((f"The {animal} sleeps.",)) for animal in ("cat", "dog", "frog"))
LONG = Text((" ".join(["The green frog ate a tiny fly."] * 90),))


@pytest.fixture
def engine():
    return Engine(find_checkpoint(BUNDLED))


@pytest.fixture
def asking():
    """Who asks, and when: changed by the tests."""
    return {"session": "first", "now": 0.0}


@pytest.fixture
def shared(tmp_path, asking):
    """shared(bytes) -> inference whose sessions may each have so much computed."""
    made = []

    def open_with(n_bytes):
        shares = Quotas(n_bytes, lambda: asking["session"], lambda: asking["now"])
        made.append(Inference(Store(tmp_path), shares=shares))
        return made[-1]

    yield open_with
    for each in made:
        each.close()
        each.store.close()


def test_a_share_is_used_up_by_one_session_and_free_again_after_an_hour(asking):
    shares = Quotas(1_000_000, lambda: asking["session"], lambda: asking["now"])
    shares.check()
    shares.add(600_000)
    asking["now"] = 600.0
    shares.check()
    shares.add(400_000)
    message = r"^This page has had 1 MB of results computed within an hour, .* Wait about 50 minutes, go back to"
    with pytest.raises(AnalysisError, match=message):
        shares.check()
    asking["session"] = "second"
    shares.check()
    asking.update(session="first", now=QUOTA_SECONDS - 1.0)
    with pytest.raises(AnalysisError, match="about 1 minute, go back"):
        shares.check()
    asking["now"] = float(QUOTA_SECONDS)
    shares.check()
    shares.add(599_999)
    shares.check()
    asking["now"] = 3.0 * QUOTA_SECONDS
    shares.check()
    assert not shares._used


def test_what_a_session_has_computed_is_refused_beyond_its_share_and_what_is_kept_never(shared, asking, engine):
    inference = shared(1)
    first = inference.ask(engine, SCORES, [CAT])
    with pytest.raises(AnalysisError, match="the limit for one page on this server"):
        inference.ask(engine, SCORES, [CAT, DOG])
    with pytest.raises(AnalysisError, match="the limit for one page"):
        inference.look(engine, DOG)
    with pytest.raises(AnalysisError, match="the limit for one page"):
        inference.ask((engine, engine), COMPARISON, [DOG])
    assert inference.n_passed == 1
    assert inference.ask(engine, SCORES, [CAT]).positions == first.positions
    asking["session"] = "second"
    seen = inference.look(engine, DOG)
    assert inference.look(engine, DOG) is seen
    with pytest.raises(AnalysisError, match="the limit for one page"):
        inference.look(engine, FROG)


def test_a_share_counts_the_bytes_of_all_results(shared, asking, engine):
    inference = shared(10**9)
    attention, record = inference.look(engine, CAT)
    (counted,) = (n_bytes for _, n_bytes in inference._shares._used["first"])
    measures = sum(array.nbytes for array in record.arrays.values())
    n_layers, n_heads, n_tokens, _ = attention.attention.shape
    assert counted >= measures + n_layers * n_heads * n_tokens**2
    asking["session"] = "second"
    inference.ask((engine, engine), COMPARISON, [CAT, DOG])
    (compared,) = (n_bytes for _, n_bytes in inference._shares._used["second"])
    assert compared > 2 * 2 * measures  # of two texts, under both


def test_a_request_that_is_stopped_or_fails_counts_by_its_texts(shared, asking, engine):
    def stop(status):
        raise KeyboardInterrupt

    inference = shared(3 * STOPPED_BYTES)
    with pytest.raises(KeyboardInterrupt):
        inference.ask(engine, SCORES, [CAT, DOG], report=stop)
    with pytest.raises(TextTooLong):
        inference.look(engine, LONG)
    with pytest.raises(AnalysisError, match="the limit for one page"):
        inference.look(engine, FROG)
