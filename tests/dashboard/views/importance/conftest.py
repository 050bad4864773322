import pytest
from reading import button, once_ended

from attention_sieve.core.running import Journal
from attention_sieve.dashboard import controls, runs
from attention_sieve.dashboard import wording as shared_wording


@pytest.fixture
def restarted(monkeypatch, tmp_path, store):
    """restarted(name) lets a server begin on a store of that name, as one does that was ended."""
    checkpoints = store / "checkpoints"
    checkpoints.mkdir(exist_ok=True)

    def on(name):
        monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / name))
        (tmp_path / name).mkdir(exist_ok=True)
        if not (tmp_path / name / "checkpoints").exists():
            (tmp_path / name / "checkpoints").symlink_to(checkpoints)
        controls.inference().store.close()
        controls.inference.clear()

    yield on
    monkeypatch.undo()
    controls.inference.clear()


@pytest.fixture(autouse=True)
def _no_run_stays(store):
    yield
    runs.end()


@pytest.fixture
def stopped(restarted, monkeypatch):
    """stopped(opened, begin, n_drawn) -> the page after curves were begun, stopped when so many were drawn, and the
    server was restarted; and how many passes are still missing."""

    def of(opened, begin, n_drawn):
        done = Journal.done

        def until_stopped(journal, *size, **was_kept):
            done(journal, *size, **was_kept)
            if journal.step == n_drawn:
                runs.stop(journal.folder)

        restarted("in one go")
        once_ended(begin(opened()))
        whole = controls.inference().n_passed
        restarted("stopped")
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "done", until_stopped)
            once_ended(begin(opened()))
        part = controls.inference().n_passed
        assert 0 < part < whole
        restarted("stopped")
        at = opened()
        assert controls.inference().n_passed == 0
        assert button(at, shared_wording.GO_ON)
        return at, whole - part

    return of
