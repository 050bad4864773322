import gc
import os
from importlib import import_module
from pathlib import Path

# Checkpoints that tests make are loaded without a trial, which takes seconds each; tests of trials unset it.
os.environ["ATTENTION_SIEVE_TRUSTED"] = os.sep
# Before anything imports huggingface_hub: no test reaches the network.
os.environ["HF_HUB_OFFLINE"] = "1"
# Before anything imports torch: a worker has one core, and on matrices this small threads cost more than they give.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import jaxtyping
import pytest
from small_checkpoints import save, save_with_head

# A slow machine is no failure. Each run tries other examples, 15 of each property; HYPOTHESIS_PROFILE=long tries 250.
hypothesis.settings.register_profile("usual", deadline=None, max_examples=15)
hypothesis.settings.register_profile("long", deadline=None, max_examples=250)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
# Importing makes millions of objects that stay: looking through them again and again for garbage takes seconds. It
# begins again once all tests are collected, and leaves those out.
gc.disable()

SHARED = Path(__file__).parents[2] / "shared"


def pytest_sessionstart(session):
    """What a module imports that jaxtyping's hook checks is compiled once more: let others have imported it before."""
    only_distributes = session.config.pluginmanager.hasplugin("dsession")
    if not only_distributes and not all("browser" in argument for argument in session.config.args):
        for library in ("torch", "transformers", "scipy.stats", "sklearn.linear_model", "altair"):
            import_module(library)


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # at Python's own of 700, a twentieth of a page's time
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _shapes_are_checked_where_arrays_are_made(request):
    """The tests of core check each call's types and axes; of other rooms' tests that would take a third of the time."""
    jaxtyping.config.update("jaxtyping_disable", "core" not in request.path.parts)


@pytest.fixture(scope="session")
def bundled():
    """The checkpoint that comes with the installation, on the CPU in float32; a test must not change it."""
    from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint

    return load_checkpoint(find_checkpoint("bundled"), device="cpu")


@pytest.fixture(scope="session")
def shared():
    """Reference arrays and data that lie beside the repository; they are no part of it."""
    if not (SHARED / "reference").is_dir():
        pytest.skip("the reference arrays and data are not beside the repository")
    return SHARED


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
def guessing(tmp_path_factory):
    """Folder of a small random checkpoint that guesses masked tokens, so that most analyses make sense for it."""
    return save_with_head("bert", tmp_path_factory.mktemp("guessing"), "MaskedLM", seed=4)


@pytest.fixture(scope="session")
def in_memory(guessing):
    """The same as a model of transformers, with its tokenizer."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    return AutoModelForMaskedLM.from_pretrained(guessing), AutoTokenizer.from_pretrained(guessing)


@pytest.fixture(scope="session")
def writing(tmp_path_factory):
    """Folder of a small random checkpoint that writes the next token."""
    return save_with_head("llama", tmp_path_factory.mktemp("writing"), "CausalLM", seed=4)


@pytest.fixture
def small_tiles(monkeypatch):
    """small_tiles(entries, queries): tiles of at most so many entries, but of so many queries at least."""
    from attention_sieve.core.attention import observed

    def sized(entries, queries=1):
        monkeypatch.setattr(observed, "TILE_ENTRIES", entries)
        monkeypatch.setattr(observed, "LEAST_QUERIES", queries)

    return sized


@pytest.fixture(params=["one tile", "small tiles"])
def tiles(request, small_tiles):
    if request.param == "small tiles":
        small_tiles(50)


@pytest.fixture
def few_random_orders(monkeypatch):
    """Two: ten are half of the time of the curves of pruning."""
    monkeypatch.setattr("attention_sieve.core.importance.pruning.orders.RANDOM_ORDERS", 2)


@pytest.fixture(scope="session")
def loaded(folders):
    """loaded(family, dtype) -> that checkpoint, loaded once; a test must not change it."""
    from attention_sieve.core.attention import observed
    from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint

    made, sizes = {}, {name: getattr(observed, name) for name in ("TILE_ENTRIES", "LEAST_QUERIES")}

    def checkpoint(family, dtype="float32"):
        if (family, dtype) not in made:
            with pytest.MonkeyPatch.context() as patch:
                for name, size in sizes.items():  # a test may have made tiles small, and the check at loading wants one
                    patch.setattr(observed, name, size)
                made[family, dtype] = load_checkpoint(find_checkpoint(str(folders(family))), device="cpu", dtype=dtype)
        return made[family, dtype]

    return checkpoint
