import shutil
import threading
import weakref

import pytest
from peft import LoraConfig
from safetensors.torch import load_file, save_file
from small_adapters import LORA, save_adapter
from small_checkpoints import save
from transformers import AutoModel

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.serving import memory, models
from attention_sieve.cache.serving.models import Models
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import CheckpointError, is_out_of_memory


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    folders = [save("bert", tmp_path_factory.mktemp("small") / f"bert {seed}", seed=seed) for seed in range(3)]
    return [Engine(find_checkpoint(str(folder)), "cpu") for folder in folders]


def n_bytes(engine):
    held = Models()
    with held.use(engine) as checkpoint:
        return sum(checkpoint.sizes.values())


def use(held, engine):
    """Weak references to what was used, which refers to itself as models with hooks do."""
    with held.use(engine) as checkpoint:
        checkpoint.model.__dict__["circle"] = [checkpoint.model]
        return [weakref.ref(checkpoint.model), *map(weakref.ref, checkpoint.full_model.parameters())]


def test_the_least_recently_used_goes_first_and_is_freed_for_certain(engines):
    held = Models(int(2.5 * n_bytes(engines[0])))
    first, second = use(held, engines[0]), use(held, engines[1])
    assert all(reference() is not None for reference in first + second)
    use(held, engines[0])
    use(held, engines[2])
    held.trim()
    assert [held.is_loaded(engine) for engine in engines] == [True, False, True]
    assert len(second) > 10
    assert all(reference() is None for reference in second)
    assert all(reference() is not None for reference in first)


def test_what_is_in_use_is_never_let_go_until_it_is_idle(engines):
    held = Models(1)
    with held.use(engines[0]):
        use(held, engines[1])
        held.trim()
        assert held.is_loaded(engines[0])
        assert held.is_loaded(engines[1])
    use(held, engines[1])
    held.trim()
    assert [held.is_loaded(engine) for engine in engines[:2]] == [False, True]


def test_room_is_made_before_a_checkpoint_is_loaded(engines):
    gone, alive = [], []

    def load(*of, **on):
        alive.append([reference for reference in gone if reference() is not None])
        return load_checkpoint(*of, **on)

    held = Models(int(1.5 * n_bytes(engines[0])), load)
    gone += use(held, engines[0])
    use(held, engines[1])
    assert alive == [[], []]


def test_threads_that_want_the_same_checkpoint_load_it_once(engines):
    began, finish, loads = threading.Event(), threading.Event(), []

    def load(*of, **on):
        loads.append(of)
        began.set()
        assert finish.wait(60)
        return load_checkpoint(*of, **on)

    held = Models(load=load)
    threads = [threading.Thread(target=use, args=(held, engines[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert began.wait(60)
    assert held.is_loading(engines[0])
    finish.set()
    for thread in threads:
        thread.join(60)
    assert len(loads) == 1
    assert held.is_loaded(engines[0])
    assert not held.is_loading(engines[0])


def test_a_load_that_fails_is_tried_again_when_asked_again(engines):
    loads = []

    def fails_twice(*of, **on):
        loads.append(of)
        if len(loads) <= 2:
            raise CheckpointError("Broken. Save it again.")
        return load_checkpoint(*of, **on)

    held = Models(load=fails_twice)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="Broken"):
            use(held, engines[0])
    assert len(loads) == 2
    assert not held.is_loading(engines[0])
    use(held, engines[0])
    assert held.is_loaded(engines[0])


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        (
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.",
            CheckpointError,
            r"more than the memory of cpu has room for\. Choose a smaller",
        ),
        ("shape mismatch", RuntimeError, "^shape mismatch$"),
    ],
    ids=["too large for the memory", "a bug stays one"],
)
def test_an_error_while_loading_gives_a_sentence_if_the_memory_ran_out(engines, said, error, message):
    def fails(*_, **__):
        raise RuntimeError(said)

    with pytest.raises(error, match=message):
        use(Models(load=fails), engines[0])


@pytest.mark.parametrize(("megabytes", "at_last"), [("0", [False, False, True]), ("", [False, True, True])])
def test_the_budget_is_that_of_the_environment_or_half_of_the_memory_and_one_that_passes_it_alone_is_held(
    engines, monkeypatch, megabytes, at_last
):
    monkeypatch.setenv("ATTENTION_SIEVE_MODELS_MB", megabytes)
    size = n_bytes(engines[0])
    monkeypatch.setattr(models, "machine_bytes", lambda: 5 * size)
    held = Models()
    for engine in engines:
        use(held, engine)
        held.trim()
        assert held.is_loaded(engine)
    assert [held.is_loaded(engine) for engine in engines] == at_last


def test_a_container_has_the_memory_it_was_given(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CONTAINER_LIMIT", tmp_path / "memory.max")
    whole = memory.machine_bytes()
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.machine_bytes() == whole > 2**28
    (tmp_path / "memory.max").write_text("1048576\n")
    assert memory.machine_bytes() == 2**20


def test_room_is_made_for_the_number_format_in_which_a_checkpoint_is_loaded(engines, tmp_path):
    engine = engines[0]
    half = tmp_path / "half"
    shutil.copytree(engine.files.folder, half)
    weights = {name: tensor.half() for name, tensor in load_file(half / "model.safetensors").items()}
    save_file(weights, half / "model.safetensors", metadata={"format": "pt"})
    small = Engine(find_checkpoint(str(half)), "cpu")
    size = n_bytes(small)
    assert (half / "model.safetensors").stat().st_size < size
    assert models._expected_bytes(small) == pytest.approx(size, rel=0.1)
    assert models._expected_bytes(engine) == models._expected_bytes(small)
    double = Engine(small.files, "cpu", "float64")
    assert models._expected_bytes(double) == 2 * models._expected_bytes(small)


def test_damaged_weights_are_named_by_loading_and_not_by_making_room(engines, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(engines[0].files.folder, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match="broken"):
        use(Models(), Engine(find_checkpoint(str(broken)), "cpu"))


def test_a_gpu_library_that_finds_no_room_says_so_in_other_words():
    full = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    assert is_out_of_memory(full)
    assert not is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"))


def test_a_pair_of_base_and_adapter_has_one_base_in_memory_in_either_order(tmp_path):
    base = save("bert", tmp_path / "base")
    save_adapter(AutoModel.from_pretrained(base), LoraConfig(**LORA), tmp_path / "lora", "base")
    adapted = Engine(find_checkpoint(str(tmp_path / "lora")), "cpu")
    plain = Engine(adapted.files.base, "cpu")
    for first, second in ((plain, adapted), (adapted, plain)):
        held = Models(int(1.5 * n_bytes(plain)))
        with held.use(first) as one, held.use(second) as other:
            assert len(set(one.sizes) & set(other.sizes)) > len(one.sizes) / 2
        held.trim()
        assert held.is_loaded(plain)
        assert held.is_loaded(adapted)
