import pandas as pd
import pytest

from attention_sieve.__main__ import main
from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.importance.passes import sweep
from attention_sieve.core.importance.question import ablation_question
from attention_sieve.core.passes.batches import plan_batches
from attention_sieve.core.texts.text import Text

TEXTS = ("The dog saw the cat.", "She sleeps.", "A bird sings in the old tree.")


@pytest.fixture
def ablate(folders, tmp_path, monkeypatch):
    """ablate(name, *options) -> the table that the command writes, with the store in a folder of its own."""
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))

    def run(name, *options):
        files = ("--checkpoint", folders("bert"), "--texts", tmp_path / "texts.txt", "--output", tmp_path / name)
        main([str(word) for word in ("ablate", *files, *options)])
        return pd.read_csv(tmp_path / name)

    return run


@pytest.fixture
def batches(monkeypatch):
    """The texts of each batch that was begun, one text a batch; the batch with the number in `stops_at` raises."""

    class Batches(list):
        stops_at = None

    begun = Batches()

    def one_by_one(lengths, _budget):
        for batch in plan_batches(lengths, 1):
            begun.append(batch.positions)
            if len(begun) - 1 == begun.stops_at:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(sweep, "plan_batches", one_by_one)
    return begun


def test_an_interrupted_command_goes_on_where_it_was(ablate, batches):
    batches.stops_at = 2
    with pytest.raises(KeyboardInterrupt):
        ablate("effects.csv")
    batches.stops_at = None
    batches.clear()
    resumed = ablate("effects.csv", "--resume")
    assert len(batches) == 1
    assert len(ablate("again.csv", "--resume")) == len(resumed)
    assert len(batches) == 1
    pd.testing.assert_frame_equal(resumed, ablate("whole.csv"), rtol=1e-5, atol=1e-6)
    assert len(batches) == 4


def test_what_a_command_computes_is_found_by_the_dashboard(ablate, folders, tmp_path):
    ablate("effects.csv")
    inference = Inference(Store(tmp_path / "store"))
    texts, engine = [Text((text,)) for text in TEXTS], Engine(find_checkpoint(str(folders("bert"))))
    assert inference.kept(engine, ablation_question("output"), texts) is not None
    assert inference.kept(engine, ablation_question("output"), [*texts, Text(("Another text.",))]) is None


def test_a_text_that_was_cut_is_not_taken_for_the_whole_one(folders, tmp_path, monkeypatch):
    """Answers to a truncated text and to the whole one of another reading have the same key."""
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    (tmp_path / "texts.txt").write_text("word " * 600)
    files = ["--checkpoint", str(folders("bert")), "--texts", str(tmp_path / "texts.txt")]
    assert main(["roles", *files, "--output", str(tmp_path / "a.csv"), "--too-long", "truncate"]) == 0
    assert main(["roles", *files, "--output", str(tmp_path / "b.csv"), "--resume"]) == 2
    assert main(["roles", *files, "--output", str(tmp_path / "b.csv"), "--too-long", "truncate", "--resume"]) == 0
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv"), rtol=1e-5, atol=1e-6
    )
