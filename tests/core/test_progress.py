import pytest

from attention_sieve.core import progress
from attention_sieve.core.progress import ProgressBar


@pytest.mark.parametrize(("doing", "begins"), [("ablation", "ablation: "), (None, "")])
def test_a_file_gets_a_line_with_a_forecast_at_most_every_so_often(capsys, doing, begins, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 10.0)
    with ProgressBar(desc=doing, total=40, unit="text") as bar:
        bar.start_t = bar.last_print_t = 0.0
        for second in range(1, 31):
            bar._time = lambda now=second: now
            bar.update()
    assert capsys.readouterr().err.splitlines() == [
        f"{begins}{done} of 40 texts after 00:{done}, about 00:{40 - done} to go" for done in (10, 20, 30)
    ]


def test_short_work_leaves_a_file_empty(capsys):
    with ProgressBar(total=3, unit="text") as bar:
        bar.update(3)
    assert capsys.readouterr().err == ""
