"""The memory of the server: what stays in it for a page whatever its size, and for how long."""

import gc

import pytest

from attention_sieve.dashboard import controls


@pytest.fixture
def no_room(monkeypatch, store):
    """The memory of a server that keeps nothing but what stays for its sessions."""
    monkeypatch.setenv("ATTENTION_SIEVE_MEMORY_MB", "0")
    controls.inference.clear()
    yield controls.memory()
    controls.inference.clear()


def test_what_a_page_shows_stays_for_its_next_run_until_its_session_ends(app, no_room):
    first, other = app("roles"), app("roles", corpus_text="She quietly left her house.\nThe dog barked at him.")
    assert not first.exception
    both = no_room.size
    del first
    gc.collect()
    no_room.put("anything", 0, 0)
    assert 0 < no_room.size < 0.7 * both
    del other
    gc.collect()
    no_room.put("anything", 1, 0)
    assert no_room.size < 1000
