"""The figures of probes."""

from drawn import rows
from tree_probe_figures import FIGURES


def test_bars_and_words_name_every_score():
    figure = FIGURES["scores"]
    bars = rows(figure, "bar")
    assert bars["uas"].tolist() == [0.5, 0.1, 0.25]
    assert bars["low"].tolist() == [0.48, 0.08, 0.23]
    assert "1,234 words of 56 texts" in figure.description
    assert "right-branching 25.0% (23.0% to 28.0%)" in figure.description


def test_the_curve_begins_before_the_first_step_and_marks_the_best_epoch():
    figure = FIGURES["curve"]
    drawn = figure.data.groupby("kind")["epoch"].apply(list).to_dict()
    assert drawn == {"loss": [1, 2], "validation loss": [0, 1, 2], "score": [0, 1, 2], "best": [1]}
    assert "from 3 nats at first to 2 after 1 epoch, which is kept, of 2" in figure.description
    assert "UAS of these texts then 40.0%" in figure.description
