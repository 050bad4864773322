import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_checkpoints import FAMILIES

import core.attention
from core.attention import DOOR, MapObserver, observe
from core.scores import model_inputs
from core.texts import Text
from core.tokens import tokenize

TEXTS = (Text(("The two dogs ran.",)), Text(("Who sat on the mat?", "A black cat.")), Text(("Eat!",)))


class Recorder:
    """Keeps what the tiles carry, in order."""

    def __init__(self, indicators=None, wants_entropy=False):
        self.indicators, self.wants_entropy, self.tiles = indicators, wants_entropy, []

    def observe(self, tile):
        kept = {name: getattr(tile, name) for name in ("probabilities", "indicator_sums", "entropy")}
        self.tiles.append(replace(tile, **{name: None if x is None else x.clone() for name, x in kept.items()}))


def inputs(checkpoint, texts=TEXTS):
    return model_inputs(checkpoint, [tokenize(text, checkpoint.tokenizer, checkpoint.max_tokens) for text in texts])


def plain_output(checkpoint, folder, implementation, batch):
    """The model's output as transformers computes it, without the door."""
    dtype = getattr(torch, checkpoint.dtype)
    model = type(checkpoint.model).from_pretrained(folder, attn_implementation=implementation, dtype=dtype).eval()
    names = ("input_ids", "attention_mask", "token_type_ids")
    with torch.no_grad():
        return model(**{name: value for name, value in zip(names, batch) if value is not None})[0]


@pytest.mark.parametrize("entries", [core.attention.TILE_ENTRIES, 50], ids=["one tile", "small tiles"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_output_is_the_same_with_and_without_the_door(
    family, implementation, entries, loaded, folders, monkeypatch
):
    checkpoint = loaded(family, "float64")
    batch = inputs(checkpoint)
    monkeypatch.setattr(core.attention, "TILE_ENTRIES", entries)
    seen = observe(checkpoint.model, *batch, [Recorder()])[0]
    plain = plain_output(checkpoint, folders(family), implementation, batch)
    real = batch[1].bool()
    # transformers' own eager path of Llama takes its softmax in float32.
    atol = 1e-5 if (family, implementation) == ("llama", "eager") else 1e-11
    torch.testing.assert_close(seen[real], plain[real], rtol=0, atol=atol)


@pytest.mark.parametrize("family", FAMILIES)
def test_outside_a_pass_the_model_still_answers_the_same(family, loaded, folders):
    checkpoint = loaded(family)
    batch = inputs(checkpoint)
    arguments = dict(zip(("input_ids", "attention_mask", "token_type_ids"), batch))
    with torch.no_grad():
        output = checkpoint.model(**{name: value for name, value in arguments.items() if value is not None})[0]
    real = batch[1].bool()
    plain = plain_output(checkpoint, folders(family), "sdpa", batch)
    torch.testing.assert_close(output[real], plain[real], rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tile_carries_rows_that_sum_to_one_and_padding_gets_nothing(family, loaded):
    checkpoint = loaded(family)
    recorder = Recorder()
    batch = inputs(checkpoint)
    observe(checkpoint.model, *batch, [recorder])
    assert [tile.layer for tile in recorder.tiles] == [0, 1]
    for tile in recorder.tiles:
        assert tile.probabilities.shape == (3, checkpoint.n_heads, batch[0].shape[1], batch[0].shape[1])
        for row, n_tokens in zip(tile.probabilities, batch[1].sum(1)):
            real = row[:, :n_tokens]
            torch.testing.assert_close(real.sum(-1), torch.ones_like(real[..., 0]))
            assert not real[..., n_tokens:].any()


def test_a_tile_carries_indicator_sums_and_entropy_only_where_they_are_asked_for(loaded):
    checkpoint = loaded("bert", "float64")
    batch = inputs(checkpoint)
    indicators = torch.rand((3, batch[0].shape[1], 5), dtype=torch.float64, generator=torch.manual_seed(0))
    asked, plain = Recorder(indicators, wants_entropy=True), Recorder()
    observe(checkpoint.model, *batch, [plain, asked])
    for tile in asked.tiles:
        expected = torch.einsum("thqk,tki->thqi", tile.probabilities, indicators)
        torch.testing.assert_close(tile.indicator_sums, expected)
        for row, entropy, n_tokens in zip(tile.probabilities, tile.entropy, batch[1].sum(1)):
            real = row[:, :n_tokens, :n_tokens]
            torch.testing.assert_close(entropy[:, :n_tokens], -(real * real.log()).sum(-1))
    observe(checkpoint.model, *batch, [plain := Recorder()])
    assert all(tile.indicator_sums is None and tile.entropy is None for tile in plain.tiles)


def test_tiles_cover_every_query_of_every_text_once(loaded, monkeypatch):
    checkpoint = loaded("roberta")
    batch = inputs(checkpoint)
    n_tokens = batch[0].shape[1]
    for entries in (1, 40, 3 * n_tokens * n_tokens, 7 * n_tokens * n_tokens, 10**6):
        monkeypatch.setattr(core.attention, "TILE_ENTRIES", entries)
        recorder = Recorder()
        observe(checkpoint.model, *batch, [recorder])
        times = np.zeros((2, 3, n_tokens), dtype=int)
        for tile in recorder.tiles:
            times[tile.layer, tile.texts, tile.queries] += 1
            assert tile.probabilities.numel() <= max(entries, checkpoint.n_heads * n_tokens)
        assert (times == 1).all()


def test_stopping_at_a_layer_shows_the_same_tiles_and_computes_no_output(loaded):
    checkpoint = loaded("bert")
    whole, stopped = Recorder(), Recorder()
    assert observe(checkpoint.model, *inputs(checkpoint), [whole]) is not None
    assert observe(checkpoint.model, *inputs(checkpoint), [stopped], last_layer=0) is None
    assert [tile.layer for tile in stopped.tiles] == [0]
    assert torch.equal(stopped.tiles[0].probabilities, whole.tiles[0].probabilities)
    again = Recorder()
    observe(checkpoint.model, *inputs(checkpoint), [again])
    assert [tile.layer for tile in again.tiles] == [0, 1]


def test_a_model_in_training_mode_is_refused(loaded):
    model = loaded("bert").model
    model.train()
    try:
        with pytest.raises(RuntimeError, match=r"training mode; call model\.eval\(\)"):
            observe(model, *inputs(loaded("bert")), [Recorder()])
    finally:
        model.eval()


def test_an_observer_that_fails_leaves_no_pass_behind(loaded):
    class Failing(Recorder):
        def observe(self, tile):
            raise ZeroDivisionError

    checkpoint = loaded("bert")
    with pytest.raises(ZeroDivisionError):
        observe(checkpoint.model, *inputs(checkpoint), [Failing()])
    assert core.attention._current.get() is None


def of_one(checkpoint, text):
    observer = MapObserver()
    observe(checkpoint.model, *inputs(checkpoint, [text]), [observer])
    return observer.attention()


def test_two_passes_in_two_threads_do_not_mix(loaded):
    checkpoint = loaded("bert")
    alone = [of_one(checkpoint, text) for text in TEXTS[:2]]
    in_step = threading.Barrier(2)
    found = [None, None]

    class InStep(MapObserver):
        def observe(self, tile):
            in_step.wait(timeout=20)
            super().observe(tile)
            in_step.wait(timeout=20)

    def run(number):
        observer = InStep()
        observe(checkpoint.model, *inputs(checkpoint, [TEXTS[number]]), [observer])
        found[number] = observer.attention()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for one, together in zip(alone, found):
        assert torch.equal(one, together)


def test_a_pass_inside_a_pass_disturbs_neither(loaded):
    checkpoint = loaded("bert")
    alone = [of_one(checkpoint, text) for text in TEXTS[:2]]
    inner = []

    class Nesting(MapObserver):
        def observe(self, tile):
            if not inner:
                inner.append(None)
                inner[0] = of_one(checkpoint, TEXTS[1])
            super().observe(tile)

    outer = Nesting()
    observe(checkpoint.model, *inputs(checkpoint, [TEXTS[0]]), [outer])
    assert torch.equal(outer.attention(), alone[0])
    assert torch.equal(inner[0], alone[1])


@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision_is_summed_in_float32(family, folders):
    from core.checkpoints import find_checkpoint, load_checkpoint

    checkpoint = load_checkpoint(find_checkpoint(str(folders(family))), device="cpu", dtype="bfloat16")
    recorder = Recorder()
    output = observe(checkpoint.model, *inputs(checkpoint), [recorder])[0]
    assert output.dtype == torch.bfloat16
    assert {tile.probabilities.dtype for tile in recorder.tiles} == {torch.float32}


def test_a_model_behind_the_door_goes_by_its_name(loaded):
    assert loaded("bert").model.config._attn_implementation == DOOR
