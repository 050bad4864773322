import threading

import numpy as np
import pytest
import torch
from passing import Recorder, inputs_of, pass_texts
from small_checkpoints import ALL_CAUSAL, ALL_ENCODERS, FAMILIES

from attention_sieve.core.attention.observed import observe, observed_attention
from attention_sieve.core.attention.observers import MapObserver, Pass, current_pass
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("The two dogs ran.",)), Text(("Who sat on the mat?", "A black cat.")), Text(("Eat!",)))


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("family", sorted({*ALL_ENCODERS, *ALL_CAUSAL} - {"gpt_oss"}))  # which has no float64
def test_attention_that_nobody_sees_gives_the_same_outputs_of_heads_gated_or_not(family, loaded):
    checkpoint = loaded(family, "float64")
    inputs = inputs_of(checkpoint, TEXTS)
    gates = torch.rand((2, checkpoint.attentions["self"].n_heads), generator=torch.manual_seed(0))

    def outputs(observers, given_gates):
        found = []
        observe(
            checkpoint.model,
            inputs,
            Pass(observers=observers, gates=given_gates, on_output=lambda one, _: found.append(one)),
        )
        return torch.stack(found)

    for given_gates in (None, gates):
        torch.testing.assert_close(outputs([], given_gates), outputs([Recorder()], given_gates), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("n_kv_heads", [4, 2])
@pytest.mark.parametrize("mask", ["none", "allowed", "added for each head"])
def test_a_mask_that_a_model_builds_itself_counts_where_nobody_sees_the_attention(mask, n_kv_heads):
    made = torch.manual_seed(0)
    query = torch.randn((3, 4, 7, 5), generator=made, dtype=torch.float64)
    key, value = (torch.randn((3, n_kv_heads, 9, 5), generator=made, dtype=torch.float64) for _ in range(2))
    masks = {
        "none": None,
        "allowed": (torch.rand((3, 1, 7, 9), generator=made) < 0.6) | torch.eye(7, 9, dtype=torch.bool),
        "added for each head": torch.randn((1, 4, 7, 9), generator=made),
    }
    with torch.no_grad():
        unseen, _ = observed_attention(torch.nn.Module(), query, key, value, masks[mask])
    # With gradients the probabilities are computed one by one.
    seen, _ = observed_attention(torch.nn.Module(), query, key, value, masks[mask])
    torch.testing.assert_close(unseen, seen, rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_outside_a_pass_the_model_still_answers_the_same(family, loaded, folders):
    checkpoint = loaded(family)
    inputs = inputs_of(checkpoint, TEXTS)
    plain = type(checkpoint.model).from_pretrained(folders(family), attn_implementation="sdpa").eval()
    with torch.no_grad():
        output, expected = (model(**inputs)[0] for model in (checkpoint.model, plain))
    real = inputs["attention_mask"].bool()
    torch.testing.assert_close(output[real], expected[real], rtol=0, atol=1e-5)


def test_a_tile_carries_indicator_sums_entropy_and_outputs_only_where_they_are_asked_for(loaded):
    checkpoint = loaded("bert", "float64")
    inputs = inputs_of(checkpoint, TEXTS)
    width = inputs["input_ids"].shape[1]
    indicators = torch.rand((3, width, 5), dtype=torch.float64, generator=torch.manual_seed(0))
    asked, plain = Recorder(indicators, wants_entropy=True, wants_outputs=True), Recorder()
    observe(checkpoint.model, inputs, Pass(observers=[plain, asked]))
    for tile in asked.tiles:
        expected = torch.einsum("thqk,tki->thqi", tile.probabilities, indicators)
        torch.testing.assert_close(tile.indicator_sums, expected)
        assert tile.outputs.shape == (3, 3, width, 4)
        for row, entropy, n_tokens in zip(tile.probabilities, tile.entropy, inputs["attention_mask"].sum(1)):
            real = row[:, :n_tokens, :n_tokens]
            torch.testing.assert_close(entropy[:, :n_tokens], -(real * real.log()).sum(-1))
    observe(checkpoint.model, inputs, Pass(observers=[plain := Recorder()]))
    for tile in plain.tiles:
        assert (tile.indicator_sums, tile.entropy, tile.outputs) == (None, None, None)


def test_tiles_cover_every_query_of_every_text_once(loaded, small_tiles):
    checkpoint = loaded("roberta")
    inputs = inputs_of(checkpoint, TEXTS)
    n_tokens = inputs["input_ids"].shape[1]
    for entries in (1, 40, 3 * n_tokens * n_tokens, 7 * n_tokens * n_tokens, 10**6):
        small_tiles(entries)
        recorder = Recorder()
        observe(checkpoint.model, inputs, Pass(observers=[recorder]))
        times = np.zeros((2, 3, n_tokens), dtype=int)
        for tile in recorder.tiles:
            times[tile.layer, tile.texts, tile.queries] += 1
            assert tile.probabilities.numel() <= max(entries, 3 * n_tokens)
        assert (times == 1).all()


def test_a_tile_is_not_cut_to_fewer_queries_than_pay(loaded, small_tiles):
    checkpoint = loaded("gpt2")
    inputs = inputs_of(checkpoint, [Text(("cat " * 15,))])
    n_tokens = inputs["input_ids"].shape[1]
    assert n_tokens > 20
    for at_least, n_tiles in ((1, n_tokens), (n_tokens - 1, 2), (n_tokens, 1)):
        small_tiles(1, at_least)
        recorder = Recorder()
        observe(checkpoint.model, inputs, Pass(observers=[recorder]))
        sizes = [tile.queries.stop - tile.queries.start for tile in recorder.tiles]
        assert len(sizes) == 2 * n_tiles
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1]], ids=["padded", "alone"])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_causal_tiles_leave_away_the_keys_of_the_future(family, texts, loaded, small_tiles):
    checkpoint = loaded(family)
    small_tiles(50)
    recorder = Recorder()
    observe(checkpoint.model, inputs_of(checkpoint, texts), Pass(observers=[recorder]))
    assert len(recorder.tiles) > 2 * len(texts)
    for tile in recorder.tiles:
        assert tile.probabilities.shape[-1] == tile.queries.stop
        assert not tile.probabilities.triu(1 + tile.queries.start).any()


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_stopping_shows_the_same_tiles_and_computes_no_output(family, loaded):
    checkpoint = loaded(family)
    inputs = inputs_of(checkpoint, TEXTS)
    whole, stopped = Recorder(), Recorder()
    assert observe(checkpoint.model, inputs, Pass(observers=[whole])) is not None
    assert observe(checkpoint.model, inputs, Pass(observers=[stopped], calls=[0], stops=True)) is None
    assert [tile.layer for tile in stopped.tiles] == [0]
    torch.testing.assert_close(stopped.tiles[0].probabilities, whole.tiles[0].probabilities)
    again = Recorder()
    observe(checkpoint.model, inputs, Pass(observers=[again]))
    assert [tile.layer for tile in again.tiles] == [0, 1]


def test_only_the_calls_that_are_watched_are_seen_under_their_layers(loaded):
    checkpoint = loaded("bert")
    inputs = inputs_of(checkpoint, TEXTS)
    whole, second = Recorder(), Recorder()
    output = observe(checkpoint.model, inputs, Pass(observers=[whole]))[0]
    torch.testing.assert_close(observe(checkpoint.model, inputs, Pass(observers=[second], calls=[1]))[0], output)
    (tile,) = second.tiles
    assert tile.layer == 0
    torch.testing.assert_close(tile.probabilities, whole.tiles[1].probabilities)


def test_a_model_in_training_mode_is_refused(loaded):
    model = loaded("bert").model
    model.train()
    try:
        with pytest.raises(AnalysisError, match=r"is in training mode, .* something in it calls train\(\)"):
            observe(model, inputs_of(loaded("bert"), TEXTS), Pass(observers=[Recorder()]))
    finally:
        model.eval()


def test_an_observer_that_fails_leaves_no_pass_behind(loaded):
    class Failing(Recorder):
        def observe(self, tile):
            raise ZeroDivisionError

    checkpoint = loaded("bert")
    with pytest.raises(ZeroDivisionError):
        observe(checkpoint.model, inputs_of(checkpoint, TEXTS), Pass(observers=[Failing()]))
    assert current_pass.get() is None


def of_one(checkpoint, text, observer_class=MapObserver):
    (prepared,) = pass_texts(checkpoint, [text])
    observer = observer_class(0, prepared.n_tokens, prepared.n_tokens)
    observe(checkpoint.model, inputs_of(checkpoint, [text]), Pass(observers=[observer]))
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
        found[number] = of_one(checkpoint, TEXTS[number], InStep)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for one, together in zip(alone, found):
        torch.testing.assert_close(one, together)


def test_a_pass_inside_a_pass_disturbs_neither(loaded):
    checkpoint = loaded("bert")
    alone = [of_one(checkpoint, text) for text in TEXTS[:2]]
    inner = []

    class Nesting(MapObserver):
        def observe(self, tile):
            if not inner:
                inner.append(of_one(checkpoint, TEXTS[1]))
            super().observe(tile)

    torch.testing.assert_close(of_one(checkpoint, TEXTS[0], Nesting), alone[0])
    torch.testing.assert_close(inner[0], alone[1])


def test_half_precision_is_summed_in_float32(loaded):
    checkpoint = loaded("bert", "bfloat16")
    recorder = Recorder(wants_outputs=True, wants_entropy=True)
    output = observe(checkpoint.model, inputs_of(checkpoint, TEXTS), Pass(observers=[recorder]))[0]
    assert output.dtype == torch.bfloat16
    for tile in recorder.tiles:
        assert {tile.probabilities.dtype, tile.outputs.dtype, tile.entropy.dtype} == {torch.float32}


def test_stopping_without_naming_the_calls_is_refused(loaded):
    checkpoint = loaded("bert")
    with pytest.raises(ValueError, match="name the calls"):
        observe(checkpoint.model, {"input_ids": torch.tensor([[5, 6, 7]])}, Pass(stops=True))
