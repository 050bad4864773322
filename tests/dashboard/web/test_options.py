from threading import Thread

import pytest
from streamlit import config

from attention_sieve.dashboard.web.options import read_options_without_lock

OPTION = "global.minCachedMessageSize"


@pytest.fixture(autouse=True)
def without_lock(monkeypatch):
    monkeypatch.setattr(config, "get_option", config.get_option)
    read_options_without_lock()


def test_an_option_is_read_while_another_thread_holds_the_lock_of_all_options():
    config.get_option(OPTION)  # reads the files of options
    read = []
    with config._config_lock:
        reader = Thread(target=lambda: read.append(config.get_option(OPTION)))
        reader.start()
        reader.join(10)
    assert read == [config.get_options_for_section("global")["minCachedMessageSize"]]


def test_an_option_that_changes_is_read_anew_and_one_that_is_not_there_is_an_error():
    before = config.get_option("client.showErrorDetails")
    config.set_option("client.showErrorDetails", "none")
    try:
        assert config.get_option("client.showErrorDetails") == "none"
    finally:
        config.set_option("client.showErrorDetails", before)
    with pytest.raises(RuntimeError, match=r'"global\.noSuchOption" not defined'):
        config.get_option("global.noSuchOption")
