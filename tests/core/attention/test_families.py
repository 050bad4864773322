"""Every family of models through the one attention function: what it shows and returns equals the model's own way."""

import pytest
import torch
from naive import eager_maps
from small_checkpoints import (
    ALL_CAUSAL,
    ALL_ENCODERS,
    CAUSAL_FALLBACK,
    ENCODER_DECODERS,
    FALLBACK,
    N_DECODER_HEADS,
    N_DECODER_LAYERS,
    N_HEADS,
    N_LAYERS,
    REFUSED,
    WINDOW,
)  # fmt: skip
from transformers import AutoModel

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import CheckpointError

EVERY = (*ALL_ENCODERS, *ALL_CAUSAL, *ENCODER_DECODERS, *FALLBACK)
GROUPED = ("llama", "qwen3", "mistral", "gemma2", "gemma3", "gpt_oss", "phi3")
SLIDING = {
    "modernbert": (1,), "mistral": (0, 1), "phi3": (0, 1), "gemma2": (0,), "gemma3": (0,), "gpt_oss": (0,),
}  # fmt: skip
"""Layers with a window."""
NO_FLOAT64 = ("gpt_oss",)
"""transformers computes their experts in a grouped product, of which PyTorch has none for float64 matrices."""
FLOAT32_SOFTMAX = ("modernbert", "llama", "qwen3", "mistral", "gemma2", "gemma3", "phi3", "opt", "gpt_neox")
"""transformers' eager path takes their softmax in float32, also in a float64 model. There the least float64 number
becomes minus infinity, a row that sees only padding NaN, and with it real rows of the layer after. So their texts go
through the eager path one by one; their positions do not depend on padding."""
NAN_OF_THEIR_OWN = ("bloom", "mpt")
"""The same happens in their only way of computing attention, in a float64 model padded on the left."""
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 0.08}
"""Largest difference of probabilities and, relative to the largest value, of outputs. In bfloat16, which keeps 8 bits,
logits of 5 are off by 0.02 and eager probabilities by that much of their own; what is off grows from layer to layer."""
FLOAT32_SOFTMAX_TOLERANCE = 3e-6

BATCHES = {"right": ((13, 9, 11), (5, 12, 8)), "left": ((13, 9, 11), (5, 12, 8)), "one text": ((10,), (7,))}
"""Tokens of the source and target texts by the side that is padded: longer than a window, all different."""


class Recorder:
    """Puts the tiles of a batch together: attention [layer text head query key]."""

    indicators = None
    wants_entropy = wants_outputs = False

    def __init__(self, n_texts, n_queries, n_keys):
        self.sizes, self.layers, self.row_sums, self.n_tiles = (n_texts, n_queries, n_keys), {}, {}, 0

    def observe(self, tile):
        n_texts, n_queries, n_keys = self.sizes
        n_heads, n_live = tile.probabilities.shape[1], tile.probabilities.shape[-1]
        whole = self.layers.setdefault(
            tile.layer, torch.zeros((n_texts, n_heads, n_queries, n_keys), dtype=tile.probabilities.dtype)
        )
        whole[tile.texts, :, tile.queries, :n_live] = tile.probabilities
        if tile.row_sums is not None:
            sums = self.row_sums.setdefault(tile.layer, torch.zeros_like(whole[..., 0]))
            sums[tile.texts, :, tile.queries] = tile.row_sums
        self.n_tiles += 1

    def attention(self):
        return torch.stack([self.layers[layer] for layer in sorted(self.layers)])


def prefixes(kind):
    """Names of the inputs that give the queries and the keys of a kind of attention, before `input_ids`."""
    return {"decoder": ("decoder_", "decoder_"), "cross": ("decoder_", "")}.get(kind, ("", ""))


def watch(checkpoint, inputs, kind):
    """One observed pass: the model's output, and what was seen of one kind of attention."""
    queries, keys = (inputs[f"{prefix}input_ids"] for prefix in prefixes(kind))
    recorder = Recorder(*queries.shape, keys.shape[1])
    output = observe(checkpoint.model, inputs, Pass(observers=[recorder], calls=checkpoint.attentions[kind].calls))
    return output[0], recorder


def some_texts(lengths, padding, vocabulary, padding_id, seed):
    """Random ids and, where something is padded, their mask."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    mask = mask.flip(1) if padding == "left" else mask
    ids = torch.randint(7, vocabulary, mask.shape, generator=torch.Generator().manual_seed(seed))
    ids = ids.masked_fill(~mask, padding_id)
    return {"input_ids": ids} if bool(mask.all()) else {"input_ids": ids, "attention_mask": mask.long()}


def batch(checkpoint, padding):
    sources, targets = BATCHES[padding]
    rest = (padding, checkpoint.tokenizer.vocab_size, checkpoint.padding_id)
    inputs = some_texts(sources, *rest, seed=0)
    if checkpoint.takes_type_ids:
        inputs["token_type_ids"] = (torch.arange(max(sources)) > 5).long().repeat(len(sources), 1)
    if "cross" in checkpoint.attentions:
        inputs |= {f"decoder_{name}": values for name, values in some_texts(targets, *rest, seed=1).items()}
    return inputs


def real_tokens(inputs, prefix):
    ids = inputs[f"{prefix}input_ids"]
    return inputs.get(f"{prefix}attention_mask", torch.ones_like(ids)).bool()


def one_by_one(inputs):
    """Each text alone, without its padding."""
    of_side = {prefix: real_tokens(inputs, prefix) for prefix in ("", "decoder_") if f"{prefix}input_ids" in inputs}
    for row in range(len(inputs["input_ids"])):
        yield {
            name: values[row, of_side["decoder_" if name.startswith("decoder_") else ""][row]][None]
            for name, values in inputs.items()
        }


def real_output(output, inputs):
    """The output of each text, without its padding."""
    mask = real_tokens(inputs, "decoder_" if "decoder_input_ids" in inputs else "")
    return [rows[own] for rows, own in zip(output, mask)]


def real_attention(attention, inputs, kind):
    """The attention [layer head query key] of each text, without its padding."""
    queries, keys = (real_tokens(inputs, prefix) for prefix in prefixes(kind))
    return [attention[:, row][:, :, queries[row]][..., keys[row]] for row in range(len(queries))]


def eager(model, inputs, alone):
    """Output of each text, and its attention by kind, from transformers' eager path."""
    outputs, maps = [], {}
    for part in one_by_one(inputs) if alone else [inputs]:
        output, by_kind = eager_maps(model, part)
        outputs += real_output(output, part)
        for kind, attention in by_kind.items():
            maps.setdefault(kind, []).extend(real_attention(attention, part, kind))
    return outputs, maps


def largest_difference(found, expected, relative=False):
    """Over all texts."""
    scale = max(float(of_text.abs().max()) for of_text in expected) if relative else 1.0
    return max(float((a.double() - b.double()).abs().max()) for a, b in zip(found, expected, strict=True)) / scale


@pytest.fixture(scope="module")
def plain(folders):
    """plain(family, implementation, dtype) -> the model as transformers loads it."""
    made = {}

    def model(family, implementation, dtype):
        chosen = (family, implementation, dtype)
        if chosen not in made:
            number_format = getattr(torch, dtype)
            made[chosen] = AutoModel.from_pretrained(
                folders(family), attn_implementation=implementation, dtype=number_format
            ).eval()
            if family == "xlnet":  # its parameters are made in float32, whatever is asked for
                made[chosen].to(number_format)
        return made[chosen]

    return model


def exact(family, padding):
    """The widest number format in which a family can be held against another path."""
    no_float64 = family in NO_FLOAT64 or (padding == "left" and family in NAN_OF_THEIR_OWN)
    return "float32" if no_float64 else "float64"


ROUNDED = ("bert", "deberta-v2", "gpt2", "llama", "gpt_oss", "t5", "bloom")
"""One family of each way that attention takes through the code; number formats differ in rounding only."""


def cases(families):
    """Every padding in the widest number format, and the others on one padding of some families."""
    return [
        pytest.param(family, dtype, padding, id=f"{family}-{dtype}-{padding}")
        for family in families
        for dtype in TOLERANCE
        for padding in BATCHES
        if dtype == exact(family, padding) or (padding == "right" and dtype != "float64" and family in ROUNDED)
    ]


@pytest.mark.parametrize(("family", "dtype", "padding"), cases(EVERY))
def test_output_and_attention_are_those_of_the_eager_path(family, dtype, padding, loaded, plain):
    checkpoint = loaded(family, dtype)
    inputs = batch(checkpoint, padding)
    islands = dtype == "float64" and family in FLOAT32_SOFTMAX
    outputs, maps = eager(plain(family, "eager", dtype), inputs, alone=islands)
    tolerance = FLOAT32_SOFTMAX_TOLERANCE if islands else TOLERANCE[dtype]
    assert set(maps) == set(checkpoint.attentions)
    for kind, expected in maps.items():
        output, recorder = watch(checkpoint, inputs, kind)
        assert largest_difference(real_output(output, inputs), outputs, relative=True) <= tolerance
        found = real_attention(recorder.attention(), inputs, kind)
        assert [one.shape for one in found] == [one.shape for one in expected]
        assert largest_difference(found, expected) <= tolerance
        if dtype != "bfloat16":
            assert_rows_are_whole(recorder, inputs, kind, has_sinks=family == "gpt_oss")


def assert_rows_are_whole(recorder, inputs, kind, has_sinks):
    """Padding gets nothing, and real rows sum to one, or to what the sinks leave."""
    queries, keys = (real_tokens(inputs, prefix) for prefix in prefixes(kind))
    assert bool(recorder.row_sums) == has_sinks
    for row, (of_queries, of_keys) in enumerate(zip(queries, keys)):
        rows = recorder.attention()[:, row][:, :, of_queries]
        assert not rows[..., ~of_keys].any()
        stated = torch.ones_like(rows[..., 0])
        if has_sinks:
            stated = torch.stack([recorder.row_sums[layer][row] for layer in range(N_LAYERS)])[:, :, of_queries]
            assert (stated < 0.99).any(), "the sinks take nothing"
        torch.testing.assert_close(rows.sum(-1), stated)


@pytest.mark.parametrize("family", EVERY)
def test_attention_is_sharp_enough_to_show_a_mistake(family, loaded):
    checkpoint = loaded(family)
    inputs = batch(checkpoint, "one text")
    for kind in checkpoint.attentions:
        later = watch(checkpoint, inputs, kind)[1].attention()[..., 3:, :]
        times_uniform = later.amax(-1) * (later > 0).sum(-1)
        assert (times_uniform.flatten(1).mean(1) > 1.3).all(), "every layer is far from uniform"
        assert (later.std(dim=3).flatten(1).mean(1) > 0.005).all(), "its rows differ from each other"


@pytest.mark.parametrize("padding", ["right", "left"])
@pytest.mark.parametrize("family", [*ALL_ENCODERS, *ALL_CAUSAL, *ENCODER_DECODERS])
def test_small_tiles_show_the_same(family, padding, loaded, small_tiles):
    checkpoint = loaded(family)
    inputs = batch(checkpoint, padding)
    whole = {kind: watch(checkpoint, inputs, kind) for kind in checkpoint.attentions}
    small_tiles(180)
    for kind, (output, recorder) in whole.items():
        again, tiled = watch(checkpoint, inputs, kind)
        assert tiled.n_tiles > 2 * recorder.n_tiles
        assert largest_difference(real_output(again, inputs), real_output(output, inputs)) <= 2e-5
        found, expected = (real_attention(one.attention(), inputs, kind) for one in (tiled, recorder))
        assert largest_difference(found, expected) <= 2e-6


@pytest.mark.parametrize("family", EVERY)
def test_layers_heads_and_direction_are_found(family, loaded):
    attentions = loaded(family).attentions
    if family in ENCODER_DECODERS:
        n_heads = N_HEADS if family.startswith("t5") else N_DECODER_HEADS
        expected = {
            "encoder": (N_LAYERS, N_HEADS, False),
            "decoder": (N_DECODER_LAYERS, n_heads, True),
            "cross": (N_DECODER_LAYERS, n_heads, False),
        }
    else:
        causal = family in (*ALL_CAUSAL, *CAUSAL_FALLBACK)
        expected = {"self": (N_LAYERS, 4 if family in GROUPED else N_HEADS, causal)}
    assert {kind: (one.n_layers, one.n_heads, one.causal) for kind, one in attentions.items()} == expected
    assert list(attentions) == list(expected)


@pytest.mark.parametrize("family", SLIDING)
def test_a_window_hides_what_lies_outside(family, loaded):
    checkpoint = loaded(family)
    _, recorder = watch(checkpoint, batch(checkpoint, "one text"), "self")
    distance = torch.arange(10)[:, None] - torch.arange(10)
    within = distance.abs() <= WINDOW // 2 if family == "modernbert" else (distance >= 0) & (distance < WINDOW)
    ahead = torch.zeros_like(within) if family == "modernbert" else distance < 0
    for layer, attention in recorder.layers.items():
        hidden = ~within if layer in SLIDING[family] else ahead
        assert not attention[..., hidden].any()
        assert (attention[..., ~hidden] > 0).all()


@pytest.mark.parametrize("family", REFUSED)
def test_attention_that_cannot_be_observed_is_refused_with_a_sentence(family, folders):
    with pytest.raises(CheckpointError, match=r"\(\w+Model\) computes .*observed\. Choose .*such as BERT"):
        load_checkpoint(find_checkpoint(str(folders(family))), device="cpu")


@pytest.mark.parametrize("family", NO_FLOAT64)
def test_experts_compute_in_float64_too(family, loaded):
    checkpoint, narrow = loaded(family, "float64"), loaded(family)
    inputs = batch(checkpoint, "right")
    (output, recorder), (other, of_other) = (watch(each, inputs, "self") for each in (checkpoint, narrow))
    assert output.dtype == torch.float64
    assert largest_difference(real_output(output, inputs), real_output(other, inputs), relative=True) <= 1e-4
    assert largest_difference(recorder.attention(), of_other.attention()) <= 1e-4
