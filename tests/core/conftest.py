import pytest
from small_checkpoints import save


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """folders(family) -> a small random checkpoint on disk, made once; tests copy it before they change it."""
    made = {}

    def folder(family):
        if family not in made:
            made[family] = save(family, tmp_path_factory.mktemp(family) / family)
        return made[family]

    return folder


@pytest.fixture(scope="session")
def loaded(folders):
    """loaded(family, dtype) -> that checkpoint behind the door, loaded once; a test must not change it."""
    from core.checkpoints import find_checkpoint, load_checkpoint

    made = {}

    def checkpoint(family, dtype="float32"):
        if (family, dtype) not in made:
            made[family, dtype] = load_checkpoint(find_checkpoint(str(folders(family))), device="cpu", dtype=dtype)
        return made[family, dtype]

    return checkpoint
