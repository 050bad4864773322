import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_every_file_the_readme_names_is_there():
    named = set(re.findall(r"`((?:core|cache|dashboard|tests)/[\w./-]*)`", README))
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_readme_shows_every_picture_that_is_taken():
    shown = re.findall(r"\]\(dashboard/pictures/([\w.-]+)\)", README)
    assert sorted(shown) == sorted(path.name for path in (ROOT / "dashboard" / "pictures").iterdir())


def test_the_readmes_commands_are_targets_of_the_makefile_and_ci_runs_the_same():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for command in ("app", "test", "bench", "sample-checkpoint", "sample-tasks"):
        assert f"make {command}" in README
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_command_line_examples_are_accepted_as_written():
    from core.__main__ import _parser

    lines = [line.split("python -m core ")[1].split() for line in README.splitlines() if "python -m core " in line]
    named = [_parser().parse_args(line).run.__name__ for line in lines]
    assert named[:5] == ["parse_heads", "parse_heads", "tasks", "probe_tasks", "reconstruct_tasks"]
    assert named[5:9] == ["erase_tasks", "trials", "remove", "gates"]
    assert named[9:14] == ["run_corpus", "run_corpus", "verify", "show", "compare"]
    assert named[14:16] == ["parse", "run_corpus"]
    assert named[16:22] == ["score", "roles", "controls", "finetune", "score", "compare"]
    assert named[22:29] == ["surface", "parse_heads", "coreference", "word_links", "probe", "distances", "attention"]
    assert named[29:] == ["ablate", "importance", "prune", "prune"]
