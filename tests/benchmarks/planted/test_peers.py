"""Other tools on planted models: going on after a break, and corrupted texts."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.planted.peers.running import run, without_scores
from benchmarks.planted.peers.tools import WORKERS, Tool

WORKER = """
import sys
from pathlib import Path
output = Path(sys.argv[1])
with (output / "started").open("a") as started:
    print(len(sys.argv) - 2, file=started)
for model in map(Path, sys.argv[2:]):
    if model.name == "second":
        raise ValueError("no such head")
    (output / f"{model.name}.json").write_text("{}")
"""


def tool_with(worker: str, folder: Path) -> Tool:
    (folder / "worker.py").write_text(worker)
    return Tool("shown", folder / "worker.py", ())


def test_a_tool_goes_on_after_the_model_at_which_it_broke_off(tmp_path: Path) -> None:
    tool, output = tool_with(WORKER, tmp_path), tmp_path / "shown"
    output.mkdir()
    models = [tmp_path / "models" / name for name in ("first", "second", "third")]
    run(tool, Path(sys.executable), models, output, None)
    assert {path.stem for path in output.glob("*.json")} == {"first", "third"}
    (missing,) = without_scores(tool, output)
    assert (missing.tool, missing.model) == ("shown", "second")
    assert missing.reason.endswith("ValueError: no such head")
    assert (output / "started").read_text().split() == ["3", "1"]


def test_what_is_kept_is_not_asked_again(tmp_path: Path) -> None:
    tool, output = tool_with(WORKER, tmp_path), tmp_path / "shown"
    output.mkdir()
    models = [tmp_path / "models" / name for name in ("first", "second")]
    run(tool, Path(sys.executable), models, output, None)
    begun = (output / "started").read_text()
    run(tool, Path(sys.executable), models, output, None)
    assert (output / "started").read_text() == begun


@pytest.fixture
def corrupted_texts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(WORKERS))
    return __import__("corrupted_texts")


def planted(tokens: list[list[int]], scored: list[list[int]], targets: list[list[int]]) -> dict[str, object]:
    return {"seed": 3, "task": {"tokens": tokens, "scored": scored, "targets": targets}}


def test_earlier_copies_of_targets_become_other_tokens(corrupted_texts: ModuleType) -> None:
    texts = [[0, 5, 6, 7, 8, 5, 6, 7, 8], [0, 9, 3, 2, 4, 9, 3, 2, 4]]
    repeats = planted(texts, [[5, 6, 7]] * 2, [[6, 7, 8], [3, 2, 4]])
    changed, how = corrupted_texts.corrupted_texts(repeats, 2)
    assert how == "earlier copies of the targets are other tokens"
    for clean, other in zip(texts, changed, strict=True):
        assert [place for place in range(9) if clean[place] != other[place]] == [2, 3, 4]
        assert set(other[2:5]) <= {6, 7, 8, 3, 2, 4}


def test_where_targets_are_not_copied_another_text_takes_the_place(corrupted_texts: ModuleType) -> None:
    texts = [[0, 5, 6], [0, 7, 8], [0, 9, 9]]
    task = planted(texts, [[1, 2]] * 3, [[1, 2], [3, 4], [1, 1]])
    changed, how = corrupted_texts.corrupted_texts(task, 3)
    assert changed == [[0, 7, 8], [0, 9, 9], [0, 5, 6]]
    assert how == "another text of the task"


def test_a_text_without_another_of_its_length_is_refused(corrupted_texts: ModuleType) -> None:
    task = planted([[0, 5, 6], [0, 7]], [[1, 2], [1]], [[1, 2], [3]])
    with pytest.raises(Exception, match="no other text of the task has the same length"):
        corrupted_texts.corrupted_texts(task, 2)
