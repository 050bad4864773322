"""What `make class` prints before it starts."""

import subprocess
import sys

import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard.web.class_link import class_link


@pytest.mark.parametrize(("host", "port"), [("a b", 80), ("", 80), ("a/b", 80), ("user@host", 80), ("host", 0)])
def test_what_is_no_host_is_said(host, port):
    with pytest.raises(AnalysisError, match="Set HOST and PORT"):
        class_link(host, port)


def test_the_command_prints_the_link_and_a_code():
    done = subprocess.run(
        [sys.executable, "-m", "attention_sieve.dashboard.web.class_link", "class.example", "8501"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "http://class.example:8501/lessons" in done.stdout
    assert done.stdout.count("█") + done.stdout.count("▀") + done.stdout.count("▄") > 100
