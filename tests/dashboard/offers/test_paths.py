"""What a page tells of this machine's paths: all on a private server, on a public one the last name of each."""

import logging

import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard import offers, public
from attention_sieve.dashboard.plain import for_visitors

MESSAGES = {
    "{folder}/statistics.safetensors is damaged (no header). Run the corpus again.": (
        "my results/statistics.safetensors is damaged (no header). Run the corpus again."
    ),
    "They were set aside as {cache}/results.set-aside-1.sqlite and a new file was begun.": (
        "They were set aside as kept/results.set-aside-1.sqlite and a new file was begun."
    ),
    "'/srv/data/a.json' cannot be read (Permission denied). Look into /home/someone/b.": (
        "'a.json' cannot be read (Permission denied). Look into b."
    ),
    "Written to ~/notes/c.txt.": "Written to c.txt.",
    r"C:\Users\someone\d.txt is damaged.": "d.txt is damaged.",
    str(AnalysisError(f"/srv/{'folder/' * 30}manifest.json is damaged.")): "manifest.json is damaged.",
}
PLAIN = (
    "Attention and/or weights, 1/2 of 3 / 4, https://example.org/a/b",
    "text ||| 5. / 6.",
    "models/small is damaged.",
)


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Folders that the owner of a public server named; one has a space in its name."""
    folder, cache = tmp_path / "my results", tmp_path / "kept"
    monkeypatch.setenv(public.PUBLIC, "1")
    monkeypatch.setenv(offers.RESULTS, str(folder))
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(cache))
    return {"folder": folder, "cache": cache}


@pytest.mark.parametrize("message", MESSAGES)
def test_visitors_of_a_public_server_are_told_no_path_and_its_log_and_its_owner_are(
    places, caplog, monkeypatch, message
):
    whole = message.format(**places)
    with caplog.at_level(logging.WARNING):
        assert for_visitors(whole) == MESSAGES[message]
    assert [record.getMessage() for record in caplog.records] == [whole]
    monkeypatch.delenv(public.PUBLIC)
    assert for_visitors(whole) == whole


@pytest.mark.parametrize("message", PLAIN)
def test_a_message_without_a_path_stays_and_is_not_logged(places, caplog, message):
    assert for_visitors(message) == message
    assert not caplog.records
