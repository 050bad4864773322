import os
from pathlib import Path

# Before anything imports huggingface_hub: no test reaches the network.
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def bundled():
    """The checkpoint that comes with the installation, on the CPU in float32; a test must not change it."""
    from core.checkpoints import find_checkpoint, load_checkpoint

    return load_checkpoint(find_checkpoint("bundled"), device="cpu")


@pytest.fixture(scope="session")
def shared():
    """Reference arrays and data that lie beside the repository; they are no part of it."""
    if not (SHARED / "reference").is_dir():
        pytest.skip("the reference arrays and data are not beside the repository")
    return SHARED
