"""The set-up: one command installs what the tests need, or says what to install."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from changed import closest_tests

from benchmarks.shared.programs import NO_CHROMIUM, is_debian

ROOT = Path(__file__).parents[1]
NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.fixture
def install(tmp_path):
    """install(**programs): the set-up on a machine without Chromium and network that has these shell scripts only."""
    commands = tmp_path / "commands"
    commands.mkdir()

    def run(*arguments, **programs):
        for name, script in programs.items():
            path = commands / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment |= {
            "PATH": str(commands),
            "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "browsers"),
            "PLAYWRIGHT_DOWNLOAD_HOST": NOBODY_LISTENS,
        }
        # -S: of Python's packages, what apt-get is asked for must need none, which pip installs at the same time.
        python = [sys.executable, *(["-S"] if arguments else [])]
        command = [*python, "-m", "benchmarks.shared.programs", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    return run


def test_without_chromium_and_network_the_set_up_ends_with_what_to_install(install):
    ended = install()
    assert ended.returncode == 1
    assert ended.stderr.endswith(NO_CHROMIUM + "\n")
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not is_debian(), reason="the packages are Debian's")
def test_apt_get_installs_chromium_once(install, tmp_path):
    asked, installed = tmp_path / "asked", tmp_path / "commands" / "chromium"
    scripts = {
        "apt_get": f'echo "$*" >> {asked}; [ "$1" = update ] || /bin/cp /bin/true {installed}',
        "sudo": 'shift; exec "$@"',
        "true": "exit 0",
        "nginx": "exit 0",
    }
    expected = ["update", "install --yes --no-install-recommends chromium chromium-headless-shell"]
    for arguments in (("packages",), ()):
        ended = install(*arguments, **scripts)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert asked.read_text().splitlines() == expected


@pytest.fixture
def steps(tmp_path):
    """steps(script): `make test` in a folder where all is installed and `python` is this shell script."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    for name in ("requirements.txt", "requirements.lock", "tests/requirements.txt", "requirements-ray.txt"):
        (tmp_path / name).touch()
    for name in ("created", "installed", "test-installed", "compiled"):
        (tmp_path / ".venv" / name).touch()

    def run(script):
        for name, text in {"python": script, **dict.fromkeys(("ruff", "lint-imports", "mypy"), "exit 0")}.items():
            (commands / name).write_text(f"#!/bin/sh\n{text}\n")
            (commands / name).chmod(0o755)
        return subprocess.run(["make", "test"], cwd=tmp_path, capture_output=True, text=True)

    return run


def test_a_step_that_fails_keeps_no_other_from_running_and_is_shown_at_the_end(steps):
    tests = 'case "$*" in *--ignore=tests/browser*) echo FAILED of units;'
    for script, failed in ((f"{tests} exit 1;; *tests/browser*) echo pages passed;; esac", True), ("exit 0", False)):
        ended = steps(script)
        assert (ended.returncode != 0) == failed
        assert ("Failed: units" in ended.stdout) == failed
        if failed:
            _, after_pages = ended.stdout.split("pages passed")
            assert "FAILED of units" in after_pages


def test_ci_runs_the_readmes_test_command_and_by_turns_with_the_instructions_of_other_processors(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    for name, script in {"date": "echo $DAY", "make": "echo $* $ATEN_CPU_CAPABILITY; exit 7"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    ran = []
    for day in ("008", "009", "010"):
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "DAY": day}
        environment.pop("ATEN_CPU_CAPABILITY", None)
        ended = subprocess.run(["sh", ".ci/run"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ended.returncode == 7
        ran.append(ended.stdout.splitlines()[-1].strip())
    assert ran == ["test avx2", "test", "test default"]


def test_the_version_and_the_works_to_cite_are_the_same_wherever_they_are_named():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    bibliography = (ROOT / "dashboard" / "files" / "references.bib").read_text("utf-8")
    assert citation["version"] == project["version"]
    assert re.findall(r"Version ([\d.]+)", bibliography) == [project["version"]]
    newest = re.search(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[1]
    assert newest in ("Unreleased", project["version"])
    assert citation["license"] == project["license"]
    works = [work for work in citation["references"] if work["type"] == "conference-paper"]
    titles = re.findall(r"^  title += \{(.*)\},$", bibliography, re.MULTILINE)
    assert [work["title"] for work in works] + [citation["title"]] == [re.sub("[{}]", "", title) for title in titles]
    for field, name in {
        "start": r"pages += \{(\d+)",
        "end": r"pages += \{\d+--(\d+)",
        "year": r"year += \{(\d+)",
    }.items():
        assert [str(work[field]) for work in works] == re.findall(name, bibliography)
    assert [work["doi"] for work in works if "doi" in work] == re.findall(r"doi += \{(.*)\}", bibliography)


@pytest.mark.parametrize(
    ("target", "is_made"), [("app", True), ("class", True), ("class CHECKPOINTS=bundled:examples:/srv", True),
    ("class CHECKPOINTS=bundled", False)],
)  # fmt: skip
def test_what_the_last_lessons_need_is_made_beside_the_dashboard_and_beside_a_class(target, is_made):
    command = ["make", "--dry-run", *target.split()]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert ("dashboard.prepare runs" in shown) == is_made
    assert "streamlit run dashboard/server.py" in shown


def test_the_contributors_page_names_targets_and_tests_that_are_there():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {target for line in re.findall(r"`(?:\w+=\S+ )*make ([\w -]+)`", page) for target in line.split()}
    assert len(named) > 6
    assert named <= targets
    paths = re.findall(r"\btests/[\w./]*\w", page) + re.findall(r"`((?:core|cache|dashboard)/[\w./]+\.\w+)`", page)
    assert len(paths) > 12
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert len(page.encode()) <= 6 * 1024


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("core/running.py", "tests/core/test_running.py"),
        ("core/roles/written.py", "tests/core/roles/test_written.py"),
        ("core/knowledge/erasure/passes.py", "tests/core/knowledge/erasure"),
        ("dashboard/views/knowledge/asked.py", "tests/dashboard/views/test_knowledge.py"),
        ("tests/core/test_running.py", "tests/core/test_running.py"),
        ("tests/core/test_that_is_gone.py", None),
        ("dashboard/wording.py", None),
        ("README.md", None),
    ],
)
def test_the_tests_of_a_changed_file_are_those_of_its_name_or_its_room(changed, tests):
    assert closest_tests(Path(changed)) == (None if tests is None else Path(tests))
