import pytest


@pytest.fixture
def bundled_is_loaded_once(bundled, monkeypatch):
    """Commands load what they are asked for; the bundled checkpoint, on the CPU in float32, is here already."""
    from core import commands as command_line

    load = command_line.load_checkpoint

    def loaded(files, *, device, dtype):
        already = files == bundled.files and device in ("auto", "cpu") and dtype == "float32"
        return bundled if already else load(files, device=device, dtype=dtype)

    monkeypatch.setattr(command_line, "load_checkpoint", loaded)
