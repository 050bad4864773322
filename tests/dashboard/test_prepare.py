"""What is made beside the dashboard: each run, whatever becomes of the others."""

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard import prepare


def test_a_run_that_cannot_be_made_keeps_no_other_from_being_made(monkeypatch, capsys):
    made = []

    def is_on_already():
        raise AnalysisError("It is being trained now.")

    monkeypatch.setattr(prepare, "make_sample_decoder", is_on_already)
    monkeypatch.setattr(prepare, "sample_laboratory", is_on_already)
    monkeypatch.setattr(prepare, "sample_checkpoint", made.append)
    prepare.make_runs()
    assert [options.device for options in made] == ["auto"]
    assert capsys.readouterr().err.count("It is being trained now.") == 2
