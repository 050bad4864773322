import pytest
from reading import button
from streamlit.runtime.scriptrunner import StopException

from attention_sieve.dashboard import controls
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


@pytest.fixture
def stopped(restarted, monkeypatch):
    """stopped(opened, begin, view, n_drawn) -> the page after curves were begun, stopped when so many were drawn, and
    the server was restarted; and how many passes are still missing. `view` draws with its function `collected`."""

    def of(opened, begin, view, n_drawn):
        collected = view.collected

        def until_stopped(*asked):
            *others, show = asked

            def stop(curves):
                show(curves)
                if len(curves) == n_drawn:
                    raise StopException  # as Streamlit does when the reader clicks

            return collected(*others, stop)

        restarted("in one go")
        begin(opened())
        whole = controls.inference().n_passed
        restarted("stopped")
        with monkeypatch.context() as patch:
            patch.setattr(view, "collected", until_stopped)
            begin(opened())
        part = controls.inference().n_passed
        assert 0 < part < whole
        restarted("stopped")
        at = opened()
        assert controls.inference().n_passed == 0
        assert button(at, shared_wording.GO_ON)
        return at, whole - part

    return of
