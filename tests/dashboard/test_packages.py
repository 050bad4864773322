"""What is installed is what was published: packages by their hashes, checkpoint and parser by every file."""

import importlib.util
import re
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard import packages
from attention_sieve.dashboard.packages import PUBLISHED, check_packages, folder_sha256

ROOT = Path(__file__).parents[2]


def test_the_installed_packages_are_the_published_ones():
    check_packages()


@pytest.mark.parametrize("change", ["flip", "add", "remove"])
def test_a_package_with_other_files_is_refused(change, tmp_path, monkeypatch):
    package, (requirement, published) = next(iter(PUBLISHED.items()))
    folder = shutil.copytree(Path(importlib.util.find_spec(package).origin).parent, tmp_path / package)
    assert folder_sha256(folder) == published
    if change == "flip":
        (folder / "model" / "vocab.txt").write_bytes(b"x" + (folder / "model" / "vocab.txt").read_bytes()[1:])
    elif change == "add":
        (folder / "model" / "added_tokens.json").write_text("{}")
    else:
        (folder / "model" / "modules.json").unlink()
    found = importlib.util.spec_from_file_location(package, folder / "__init__.py")
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: found if name == package else None)
    with pytest.raises(AnalysisError, match=rf"^The files of {requirement} have the digest [0-9a-f]{{64}}, expected "):
        check_packages()


def test_compiled_files_do_not_count(tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    before = folder_sha256(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert folder_sha256(tmp_path) == before


def locked():
    """Name, version, marker and number of hashes of each package in the lock file."""
    lines = (ROOT / "requirements.lock").read_text("utf-8").replace("\\\n", " ").splitlines()
    for line in lines:
        if re.match("[a-z0-9]", line):
            spelled, *hashes = line.split(" --hash=sha256:")
            requirement = Requirement(spelled.strip().rstrip("\\").strip())
            yield requirement, [digest.split()[0] for digest in hashes]


def test_every_requirement_is_locked_by_its_hashes_but_torch_of_which_there_are_several_builds():
    known = {requirement.name: (requirement, hashes) for requirement, hashes in locked()}
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    wanted = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert "torch" not in known
    for each in wanted:
        if each.name != "torch":
            assert str(known[each.name][0].specifier) == str(each.specifier), "run: make lock"
    assert all(hashes for _, hashes in known.values())
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for _, hashes in known.values() for digest in hashes)


def test_what_is_installed_here_is_what_the_lock_names():
    for requirement, _ in locked():
        if requirement.marker is None or Marker(str(requirement.marker)).evaluate():
            try:
                installed = version(requirement.name)
            except PackageNotFoundError:
                pytest.fail(f"{requirement.name} is locked and not installed")
            assert requirement.specifier.contains(installed, prereleases=True), requirement.name
