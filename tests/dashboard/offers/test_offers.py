"""Checkpoints of the hub, as far as it can be reached."""

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from attention_sieve.dashboard import controls, wording
from attention_sieve.dashboard.plain import plain

HUB_IDS = ", ".join(plain(name) for name in controls.SUGGESTED if "/" in name)


@pytest.fixture
def silent_hub(monkeypatch, tmp_path):
    """A hub that does not answer, and no copies of its checkpoints."""

    def fetch(*_, **__):
        raise LocalEntryNotFoundError("gone")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)


def captions(at):
    return [each.value for each in at.sidebar.caption]


@pytest.mark.usefixtures("silent_hub")
def test_hub_ids_are_marked_once_the_hub_has_not_answered_and_not_before(app):
    at = app()
    assert captions(at) == []
    at.selectbox(key="checkpoint").set_value(controls.SUGGESTED[1]).run()
    assert [each.value for each in at.error if "The hub could not be reached" in each.value]
    at.run()
    assert captions(at) == [f":material/cloud_off: {wording.NO_ANSWER}: {HUB_IDS}."]


@pytest.mark.usefixtures("silent_hub")
def test_hub_ids_are_marked_at_once_where_the_machine_is_set_to_stay_offline(app, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert captions(app()) == [f":material/cloud_off: {wording.OFFLINE}: {HUB_IDS}."]
