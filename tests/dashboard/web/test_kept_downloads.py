import pytest
from streamlit.runtime import media_file_manager
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from attention_sieve.dashboard.web.kept_downloads import keep_downloads


@pytest.fixture
def manager(monkeypatch):
    monkeypatch.setattr(MediaFileManager, "add_deferred", MediaFileManager.add_deferred)
    monkeypatch.setattr(MediaFileManager, "execute_deferred", MediaFileManager.execute_deferred)
    keep_downloads()
    return MediaFileManager(MemoryMediaFileStorage("/media"))


@pytest.fixture
def run_page(manager, monkeypatch):
    """run_page(session, content): a run of a page with one button; returns the address of its file."""

    def run(session, content, element="button"):
        monkeypatch.setattr(media_file_manager, "_get_session_id", lambda: session)
        manager.clear_session_refs(session)
        address = manager.add_deferred(lambda: content, "text/plain", "main.0", "a.txt", element_id=element)
        manager.remove_orphaned_files()
        return address

    return run


def content_of(manager, address):
    url = manager.execute_deferred(address)
    return manager._storage.get_file(url.rpartition("/")[2]).content


def test_a_file_keeps_its_address_over_the_runs_of_a_page_and_is_that_of_the_last_run(manager, run_page):
    before = run_page("one", b"first")
    after = run_page("one", b"second")
    assert before == after
    assert content_of(manager, before) == b"second"
    assert run_page("two", b"another") != before, "another visitor's"
    assert run_page("one", b"third", element="other button") != before


def test_a_file_whose_button_is_gone_is_forgotten(manager, run_page):
    address = run_page("one", b"first")
    run_page("one", b"second", element="other button")
    with pytest.raises(media_file_manager.MediaFileStorageError, match="not found"):
        manager.execute_deferred(address)
    manager.clear_session_refs("one")
    manager.remove_orphaned_files()
    assert manager._deferred_callables == {}
    assert manager._deferred_ids_by_session == {}


def test_a_file_that_was_made_can_be_fetched_after_the_runs_of_other_readers(manager, run_page):
    address = run_page("one", b"first")
    url = manager.execute_deferred(address)
    for number in range(20):
        run_page(f"reader {number}", b"second")
    run_page("one", b"third")
    assert manager._storage.get_file(url.rpartition("/")[2]).content == b"first"


def test_no_more_than_the_files_made_last_are_kept(manager, run_page):
    for number in range(50):
        manager.execute_deferred(run_page("one", b"%d" % number))
    run_page("one", b"last")
    run_page("one", b"last")
    assert len(manager._file_metadata) == 32
