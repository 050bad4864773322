"""The package as others install it: what is in it, and that it runs in a folder without the project."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaged import ROOMS, ROOT, SOURCES, build, copied, installed
from packaging.requirements import Requirement

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard.configuration import FILE, check_configuration, stated_options

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ONLY_IN_CLONES = ("__pycache__", "pictures")
"""Folders that stay out: what Python has compiled, and the pictures of the READMEs."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the sdist of a copy of the project that has no links."""
    sdist = build("sdist", copied(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("sdist"))
    folder = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(sdist, folder, filter="data")
    return build("wheel", next(folder.iterdir()), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def place(wheel, tmp_path_factory):
    """Where the wheel is installed, and its console script."""
    return installed(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture
def run(place, tmp_path):
    """run(*command): run Python in another folder, where nothing but the wheel holds attention_sieve."""

    def run(*command, **options):
        environment = {**os.environ, "PYTHONPATH": str(place[0]), "STREAMLIT_SERVER_HEADLESS": "true"}
        return subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, **options
        )

    return run


def files_of(folder):
    """Files of a folder of a clone that belong in the package, below the folder's name."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    relative = (path.relative_to(folder.parent) for path in paths)
    return {path.as_posix() for path in relative if not set(ONLY_IN_CLONES) & set(path.parts)}


def test_the_wheel_of_the_sdist_holds_all_files_of_the_rooms_and_one_name(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        tops = {name.partition("/")[0] for name in archive.namelist()}
    own = {
        str(path.relative_to(ROOT)) for part in ("*.py", "calls/*.py") for path in ROOT.glob(f"attention_sieve/{part}")
    }
    assert names == own | {f"attention_sieve/{name}" for room in ROOMS for name in files_of(ROOT / room)}
    assert tops == {"attention_sieve", f"attention_sieve-{PROJECT['version']}.dist-info"}


def test_a_clone_and_the_sdist_build_the_same_wheel(wheel, tmp_path):
    clone = tmp_path / "clone"
    for name in (*SOURCES, ".streamlit"):
        if (ROOT / name).is_dir() and not (ROOT / name).is_symlink():
            shutil.copytree(ROOT / name, clone / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, clone / name, follow_symlinks=False)
    with zipfile.ZipFile(build("wheel", clone, tmp_path)) as ours, zipfile.ZipFile(wheel) as theirs:
        assert set(ours.namelist()) == set(theirs.namelist())
        assert all(ours.read(name) == theirs.read(name) for name in ours.namelist() if not name.endswith("RECORD"))


def test_the_installed_package_says_its_version_and_names_the_way_it_was_called(run, place):
    assert run(place[1], "--version").stdout == f"Attention Sieve {PROJECT['version']}\n"
    for command, shown in (([place[1]], "attention-sieve"), (["-m", "attention_sieve"], "python -m attention_sieve")):
        refused = run(*command, "--port", "99999").stderr
        assert refused.startswith(f"usage: {shown} [-h]")
        assert "argument --port: '99999' is not a port" in refused
    refused = run(place[1], "roles", "scores.parquet", "--output", "roles.csv")
    assert refused.stderr == "There is no file scores.parquet. Write one with: attention-sieve score\n"
    assert refused.returncode == 2


def test_importing_the_package_loads_nothing_of_weight(run):
    loaded = "print(sorted({'torch', 'numpy', 'pandas', 'streamlit', 'transformers'} & set(sys.modules)))"
    assert run("-c", f"import sys, attention_sieve; attention_sieve.__version__; {loaded}").stdout == "[]\n"


def test_a_server_that_has_not_read_its_settings_does_not_start(run, tmp_path):
    """Its launcher lies in another folder, in which Streamlit looks for them."""
    (tmp_path / "launch.py").write_text("from attention_sieve.dashboard.server import app\n\napp.run()\n")
    ended = run("launch.py", timeout=120)
    assert ended.returncode != 0
    assert ended.stderr.splitlines()[-1].startswith("The dashboard does not start without its settings, and ")
    assert "Traceback" not in ended.stderr


def test_settings_that_are_missing_or_damaged_are_named(tmp_path):
    path = tmp_path / "config.toml"
    with pytest.raises(
        AnalysisError, match=r"config\.toml cannot be read .*No such file.*Install attention-sieve again"
    ):
        stated_options(path)
    path.write_text("[server\n")
    with pytest.raises(AnalysisError, match=r"config\.toml cannot be read"):
        stated_options(path)
    path.write_text("[theme.dark]\ntextColor = '#fff'\n[server]\nport = 8501\n")
    assert stated_options(path) == {"theme.dark.textColor": "#fff", "server.port": 8501}


def test_the_settings_of_the_project_are_those_of_the_dashboard():
    assert (ROOT / ".streamlit" / "config.toml").samefile(FILE)
    check_configuration()


def test_every_requirement_is_asked_for_by_the_package_with_a_range_that_holds_the_tested_version():
    asked = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    ranges = {requirement.name: requirement.specifier for requirement in map(Requirement, asked)}
    lines = [
        line
        for name in ("requirements.txt", "requirements-ray.txt")
        for line in (ROOT / name).read_text("utf-8").splitlines()
        if re.match("[a-z]", line)
    ]
    tested = {requirement.name: requirement.specifier for requirement in map(Requirement, lines)}
    assert set(tested) - set(ranges) == set()
    for name, pinned in tested.items():
        (version,) = (one.version for one in pinned)
        assert ranges[name].contains(version), name
    assert not any(one.operator == "==" for one in ranges["torch"])
