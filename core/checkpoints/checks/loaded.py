"""Checks of a loaded model and tokenizer: that weights, layers and embeddings are there, and that the observed
attention is the one that the model uses."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedModel

from attention_sieve.core.attention.layers import outermost_lists
from attention_sieve.core.attention.masks import TileMask
from attention_sieve.core.attention.observed import ATTENTION_NAME, observe
from attention_sieve.core.attention.observers import Observer, Pass, Tile, current_pass
from attention_sieve.core.attention.settings import ONE_STACK, TWO_STACKS, UNLIMITED, Kind, Reach
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers
from attention_sieve.core.errors import CheckpointError, first_line

ROW_SUM_TOLERANCE: Final = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 3e-2}
"""By number format; models that compute attention in their own code round in that format."""
OUTPUT_TOLERANCE: Final = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 3e-2, torch.bfloat16: 1e-1}
"""Maximum difference with and without the registered function, relative to the largest output."""
EAGER_TOLERANCE: Final = 1e-5
"""Lower bound of that tolerance if the model otherwise uses transformers' eager attention, whose softmax is float32."""
SOURCE_LENGTHS: Final = (7, 12)
TARGET_LENGTHS: Final = (9, 5)
"""Lengths of the two texts of the self-check; all differ, so that padding is tested and kinds can be distinguished."""


class ProbeObserver(Observer):
    """Records the attention calls of a model, and checks the observed attention."""

    def __init__(self, lengths: Mapping[Kind, tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
        """Take the lengths of queries and keys of each text, by the kind of attention."""
        self._lengths = lengths
        self.calls: defaultdict[Kind, dict[int, int]] = defaultdict(dict)
        """Number of heads of each call, by kind."""
        self.causal: dict[Kind, bool] = {}
        self.own_layers: dict[int, int | None] = {}
        """Number that the model itself gives to the layer of each call."""
        self.place: tuple[int, int, int] | None = None
        """The layer that runs: number of its list, length of that list, and its place in it; None outside of lists."""
        self.places: dict[int, tuple[int, int, int] | None] = {}
        """The same at each call."""
        self.masks: dict[int, TileMask | None] = {}
        """Mask of each call."""
        self.unknown: set[tuple[int, int]] = set()
        """Numbers of queries and keys that match no kind of attention."""
        self.row_error = 0.0

    @contextmanager
    def follows(self, model: PreTrainedModel) -> Iterator[None]:
        """Keep up to date which of the model's layers runs."""

        def enter(place: tuple[int, int, int], *_: Any) -> None:
            self.place = place

        hooks = [
            layer.register_forward_pre_hook(partial(enter, (number, len(part), index)))
            for number, part in enumerate(outermost_lists(model))
            for index, layer in enumerate(part)
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def observe(self, tile: Tile) -> None:
        """Record heads, mask, largest row-sum error, and causality; each tile holds the whole batch."""
        shape = (tile.queries.stop, tile.probabilities.shape[-1])
        kind = next((kind for kind, sides in self._lengths.items() if tuple(map(max, sides)) == shape), None)
        if kind is None:
            self.unknown.add(shape)
            return
        self.calls[kind][tile.layer] = tile.probabilities.shape[1]
        self.masks[tile.layer] = tile.mask
        current = current_pass.get()
        self.own_layers[tile.layer] = None if current is None else current.own_layer
        self.places[tile.layer] = self.place
        for row, (n_queries, n_keys) in enumerate(zip(*self._lengths[kind])):
            heads = slice(None) if tile.kept is None else list(tile.kept)
            real = tile.probabilities[row, heads, :n_queries, :n_keys]
            expected = 1 if tile.row_sums is None else tile.row_sums[row, heads, :n_queries]
            error = float((real.sum(-1) - expected).abs().max()) if len(real) else 0.0
            self.row_error = float(np.maximum(self.row_error, error))  # propagates NaN, unlike max()
            self.causal[kind] = self.causal.get(kind, True) and not bool(real.triu(1).any())


def self_check(
    model: PreTrainedModel, name: str, vocabulary: int, first: int, two_stacks: bool, device: torch.device
) -> dict[Kind, AttentionLayers]:
    """Switch a model to the registered attention function and verify it. It is in evaluation mode, and knows as many
    ids as its vocabulary has.

    Attention rows must sum to 1, the output must be unchanged, and gates must affect the output.

    Args:
        first: id with which its texts begin, as of `first_id`.

    Returns: the layers of each kind of attention.
    Raises: CheckpointError with the measured errors.
    """
    inputs = probe_inputs(vocabulary, first, device, two_stacks)
    expected = _plain_output(model, name, inputs)
    allowed = max(OUTPUT_TOLERANCE[model.dtype], EAGER_TOLERANCE if is_eager(model) else 0)
    probe, output = _probe(model, name, inputs, two_stacks)
    largest = max(float(expected.abs().max()), 1e-12)
    difference = float((output - expected).abs().max()) / largest
    if not (probe.row_error <= ROW_SUM_TOLERANCE[model.dtype] and difference <= allowed):
        raise CheckpointError(
            f"{name} failed its self-check: attention rows differ from 1 by {probe.row_error:.1e} (allowed "
            f"{ROW_SUM_TOLERANCE[model.dtype]:.0e}) and the output changes by {difference:.1e} when observed (allowed "
            f"{allowed:.0e}). Its scores would be wrong, so it is not used."
        )
    attentions = _attentions(probe, model, name, two_stacks)
    if None in probe.masks.values() and not two_stacks:
        own = attentions["self"]
        attentions["self"] = replace(own, reaches=_measured_reaches(model, own, inputs["input_ids"].flatten()))
    for kind, attention in attentions.items():
        zero_gates = torch.zeros((attention.n_layers, attention.n_heads), device=device)
        output_without = real_rows(observe(model, inputs, Pass(calls=attention.calls, gates=zero_gates))[0], two_stacks)
        if torch.equal(output_without, output):
            raise CheckpointError(
                f"{name} failed its self-check: switching off all heads of its {kind} attention changes nothing, so "
                "what is observed is not what the model computes with. It is not used."
            )
    return attentions


def _probe(
    model: PreTrainedModel, name: str, inputs: Mapping[str, Tensor], two_stacks: bool
) -> tuple[ProbeObserver, Float[Tensor, "row channel"]]:
    """Switch a model to the registered attention function, or tap its softmax, and observe one pass; returns its output
    beside what was observed."""
    lengths: dict[Kind, tuple[tuple[int, ...], tuple[int, ...]]] = {"self": (SOURCE_LENGTHS, SOURCE_LENGTHS)}
    if two_stacks:
        lengths = {
            "encoder": (SOURCE_LENGTHS, SOURCE_LENGTHS),
            "decoder": (TARGET_LENGTHS, TARGET_LENGTHS),
            "cross": (TARGET_LENGTHS, SOURCE_LENGTHS),
        }
    model.set_attn_implementation(ATTENTION_NAME)  # has no effect on a model without the interface, which is tapped
    probe = ProbeObserver(lengths)
    with probe.follows(model):
        output = observe(model, inputs, Pass(observers=[probe]))
    if set(probe.calls) == set(lengths):
        return probe, real_rows(output[0], two_stacks)
    raise CheckpointError(
        f"{name} ({type(model).__name__}) computes attention in a way that cannot be observed. "
        "Choose a checkpoint of another family, such as BERT, RoBERTa, GPT-2, Llama, T5 or BART."
    )


def _attentions(
    probe: ProbeObserver, model: PreTrainedModel, name: str, two_stacks: bool
) -> dict[Kind, AttentionLayers]:
    layers: dict[Kind, AttentionLayers] = {}
    for kind, calls in probe.calls.items():
        heads = set(calls.values())
        if len(heads) > 1:
            raise CheckpointError(
                f"The layers of {name} have different numbers of heads ({sorted(heads)}), "
                "and equal numbers are needed. Choose another checkpoint."
            )
        n_heads, by_layer = heads.pop(), tuple(calls) if two_stacks else _by_layer(probe, tuple(calls), model, name)
        missing = [layer for layer, call in enumerate(by_layer) if call is None]
        layers[kind] = AttentionLayers(
            calls=by_layer,
            n_heads=n_heads,
            causal=probe.causal[kind],
            reaches=_reaches([None if call is None else probe.masks[call] for call in by_layer], name),
            removed=tuple((layer, head) for layer in missing for head in range(n_heads)),
        )
    if probe.unknown:
        raise CheckpointError(
            f"{name} ({type(model).__name__}) computes some of its attention over other tokens than the text's "
            f"(queries x keys: {sorted(probe.unknown)}), which cannot be observed. Choose another family, such as BERT."
        )
    return {kind: layers[kind] for kind in (TWO_STACKS if two_stacks else ONE_STACK)}


def _by_layer(probe: ProbeObserver, calls: Sequence[int], model: PreTrainedModel, name: str) -> tuple[int | None, ...]:
    """The calls by layer, None for layers without attention.

    The model's own numbers of layers say which is which; where it gives none, or layers share a module, their places
    in its list of layers do. Where one layer runs again and again, as often as there are layers, calls are numbered as
    they come.

    Raises: CheckpointError where calls are not one a layer.
    """
    n_layers = getattr(model.config, "num_hidden_layers", 0)
    places = [probe.places[call] for call in calls]
    in_list = [(number, size, index) for number, size, index in filter(None, places)]
    for numbers, size in (
        ([layer for call in calls if (layer := probe.own_layers[call]) is not None], n_layers),
        ([index for _, _, index in in_list], in_list[0][1] if len({number for number, _, _ in in_list}) == 1 else 0),
    ):
        if len(numbers) == len(calls) and numbers == sorted(set(numbers)) and 0 <= numbers[0] <= numbers[-1] < size:
            return tuple(dict(zip(numbers, calls)).get(layer) for layer in range(size))
    if len(calls) == n_layers:
        return tuple(calls)
    raise CheckpointError(
        f"{name} ({type(model).__name__}) computes attention {len(calls)} times in {n_layers} layers, and can be "
        "observed where each layer does so once. Choose a checkpoint of another family, such as BERT or Llama."
    )


def _reaches(masks: Sequence[TileMask | None], name: str) -> tuple[Reach, ...]:
    """Attention window of each layer; empty if no layer has one."""
    try:
        reaches = tuple(UNLIMITED if mask is None else mask.reach() for mask in masks)
    except ValueError as error:
        raise CheckpointError(
            f"{name} restricts attention to a pattern other than a window ({error}), so its scores would be "
            "meaningless. Choose a checkpoint of another family."
        ) from error
    return () if set(reaches) == {UNLIMITED} else reaches


class _ReachObserver(Observer):
    """Measures how far the queries of each layer attend, from whole maps."""

    def __init__(self) -> None:
        self.reaches: dict[int, tuple[int, int]] = {}
        """Largest distance to an earlier and to a later key that is attended to, by layer."""

    def observe(self, tile: Tile) -> None:
        """Take the largest distances of a layer; in float32 a single probability may be 0 where a key is visible."""
        query, key = (tile.probabilities > 0).flatten(0, 1).any(0).nonzero(as_tuple=True)
        self.reaches[tile.layer] = int((query - key).max()), int((key - query).max())


def _measured_reaches(
    model: PreTrainedModel, attention: AttentionLayers, ids: Int[Tensor, " token"]
) -> tuple[Reach, ...]:
    """Attention window of each layer of a model that has masks of its own, which cannot be asked for it: measured in a
    text of twice the longest window that the configuration names. Empty if it names none that hides anything.
    """
    named = [value for key, value in model.config.to_dict().items() if "window" in key and type(value) is int]
    most = getattr(model.config, "max_position_embeddings", 2 * max(named, default=0) + 2)
    longest = max((size for size in named if 0 < size < most - 1), default=0)
    if not longest:
        return ()
    n_tokens = min(2 * longest + 2, most)
    observer = _ReachObserver()
    text = ids.repeat(n_tokens // len(ids) + 1)[None, :n_tokens]
    observe(model, {"input_ids": text}, Pass(observers=[observer], calls=attention.calls))
    reaches = tuple(
        Reach(
            back if back <= longest else None,
            ahead if ahead <= longest and not attention.causal else None,
        )
        for back, ahead in (observer.reaches.get(layer, (n_tokens, n_tokens)) for layer in range(attention.n_layers))
    )
    return () if set(reaches) == {UNLIMITED} else reaches


def _plain_output(model: PreTrainedModel, name: str, inputs: Mapping[str, Tensor]) -> Float[Tensor, "row channel"]:
    try:
        with torch.inference_mode():
            return real_rows(model(**inputs)[0], "decoder_input_ids" in inputs)
    except Exception as error:  # models for pictures, sound or tables fail in their own ways
        raise CheckpointError(
            f"{name} ({type(model).__name__}) cannot read a text of {max(SOURCE_LENGTHS)} tokens "
            f"in {str(model.dtype).removeprefix('torch.')} ({first_line(error)}). Choose another number format, or a "
            "checkpoint of a text model, such as BERT."
        ) from error


def first_id(tokenizer: Any) -> int:
    """Id with which a text begins: that of a special token, or where the tokenizer adds none, of a letter."""
    first: int = tokenizer("a")["input_ids"][0]
    return first


def probe_inputs(vocabulary: int, first: int, device: torch.device, two_stacks: bool) -> dict[str, Tensor]:
    """A batch of two texts, the shorter one padded.

    Both begin with the id `first`: in some models heads carry nothing else.
    """
    generator = torch.Generator().manual_seed(0)

    def side(lengths: tuple[int, ...], prefix: str) -> dict[str, Tensor]:
        shape = (len(lengths), max(lengths))
        ids = torch.randint(min(5, vocabulary - 1), vocabulary, shape, generator=generator)
        ids[:, 0] = first
        mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
        return {f"{prefix}input_ids": ids.to(device), f"{prefix}attention_mask": mask.to(device)}

    return side(SOURCE_LENGTHS, "") | (side(TARGET_LENGTHS, "decoder_") if two_stacks else {})


def real_rows(output: Float[Tensor, "text token channel"], two_stacks: bool) -> Float[Tensor, "row channel"]:
    """Rows of the output without padding, in float64."""
    lengths = TARGET_LENGTHS if two_stacks else SOURCE_LENGTHS
    return torch.cat([rows[:n_tokens] for rows, n_tokens in zip(output, lengths)]).cpu().double()


def is_eager(model: PreTrainedModel) -> bool:
    """Whether a model uses transformers' eager attention."""
    return model.config._attn_implementation == "eager"


LAYER_NUMBER: Final = re.compile(r"(?<=\.)\d{1,9}(?=\.)")


def own_memory(model: PreTrainedModel) -> None:
    """Copy memory-mapped weights into memory, so that overwriting the file later does not change the model.

    Truncating a mapped file would even crash the process. Shared weights stay shared.
    """
    with torch.no_grad():
        for values in (*model.parameters(), *model.buffers()):
            if values.device.type == "cpu":
                values.data = values.data.clone()


def check_weights(name: str, model: PreTrainedModel) -> None:
    """Raise if any weight is not finite.

    Raises: CheckpointError with the first such weight and the number of affected values.
    """
    weights = {
        key: values
        for key, values in model.named_parameters()
        if values.is_floating_point() and values.numel() and not values.is_meta  # as where accelerate offloads them
    }
    # Minimum and maximum propagate NaN and infinity, without a mask as large as the weights.
    ends = [torch.stack(torch.aminmax(values.detach())) for values in weights.values()]
    # Moved, as a model may be spread over several devices.
    finite = torch.stack([torch.isfinite(pair).all().to(ends[0].device) for pair in ends]).tolist() if ends else []
    broken = [key for key, is_finite in zip(weights, finite) if not is_finite]
    if not broken:
        return
    n_broken = sum(int((~torch.isfinite(weights[key])).sum()) for key in broken)
    only_infinite = not any(bool(weights[key].isnan().any()) for key in broken)
    problem = f"{n_broken:,} numbers in {len(broken):,} weights of {name} are not finite, {broken[0]} first"
    if only_infinite and weights[broken[0]].dtype == torch.float16:
        raise CheckpointError(f"{problem}: they are too large for float16. Choose bfloat16 or float32.")
    raise CheckpointError(f"{problem}. Its attention would be NaN; save the checkpoint again from a working copy.")


def check_layers(name: str, model: PreTrainedModel, unexpected: Collection[str]) -> None:
    """Raise if the files contain layers that the configuration omits; unused heads and other extras are allowed.
    Unexpected are the weights in the files that the model does not use.

    Raises: CheckpointError with the first such weight.
    """
    own_names = set(model.state_dict())
    layerless = {_layerless(key) for key in own_names}
    prefix = f"{model.base_model_prefix}."
    beyond = [
        key
        for key in unexpected
        if _is_known(_layerless(key), layerless, prefix) and not _is_known(key, own_names, prefix)
    ]
    if beyond:
        first = min(beyond, key=lambda key: [int(number) for number in LAYER_NUMBER.findall(key)])
        raise CheckpointError(
            f"The files of {name} hold {len(beyond):,} weights of layers that its configuration does not name, "
            f"{first} first. Correct the number of layers in config.json, or save the checkpoint again."
        )


def check_vocabulary(name: str, model: PreTrainedModel, tokenizer: Any) -> int:
    """Raise if the tokenizer can produce ids for which the model has no embedding.

    Special tokens that never occur in a text, such as an added padding token, may be out of range: padding is masked,
    and names of special tokens in a text are read as plain text.

    Returns: number of embeddings of the model.
    Raises: CheckpointError with the first such token and both sizes, or for a model without token embeddings.
    """
    embeddings = list(_embeddings(model))
    if not all(isinstance(embedding, torch.nn.Embedding) for embedding in embeddings):
        raise CheckpointError(
            f"{name} ({type(model).__name__}) has no token embeddings, so it cannot read texts. Choose a checkpoint of "
            "a text model, such as BERT."
        )
    n_rows = min(embedding.num_embeddings for embedding in embeddings)
    encoding = tokenizer("a", "a", return_token_type_ids=True)
    _check_ids(name, "puts in the id", encoding["input_ids"], n_rows, "embeddings")
    if (n_types := getattr(model.config, "type_vocab_size", 0)) > 1:
        _check_ids(name, "marks a token as of type", encoding["token_type_ids"], n_types, "types of tokens")
    outside = {token: number for token, number in _producible(tokenizer).items() if number >= n_rows}
    if outside:
        first = min(outside, key=lambda token: outside[token])
        raise CheckpointError(
            f"The tokenizer of {name} gives ids up to {max(outside.values()):,} and its model has {n_rows:,} "
            f"embeddings: {len(outside):,} tokens, {first!r} first, lie outside. Save the tokenizer that belongs to "
            "the model beside it, or resize the model's embeddings."
        )
    return n_rows


def _check_ids(name: str, verb: str, ids: Collection[int], n_rows: int, noun: str) -> None:
    """Raise if the tokenizer's post-processor gives a number outside of a table, which would end the pass."""
    outside = [number for number in ids if not 0 <= number < n_rows]
    if outside:
        raise CheckpointError(
            f"The tokenizer of {name} {verb} {outside[0]:,}, and its model has {n_rows:,} {noun}. Save the tokenizer "
            "that belongs to the model beside it."
        )


def keep_names_as_text(tokenizer: Any) -> None:
    """Prevent the tokenizer from reading the name of a special token in a text as that token.

    SentencePiece itself never does, but after conversion to a Unigram model of the library tokenizers such names are
    ordinary pieces, so that "</s>" in a text would end it. They are renamed to strings that no text can contain; ids
    and `vocab_size` are unchanged, but `len(tokenizer)` counts old and new names.
    """
    names = {
        token for token in tokenizer.all_special_tokens if token != tokenizer.unk_token and _reads(tokenizer, token)
    }
    if names:
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        pieces = state["model"]["vocab"]
        state["model"]["vocab"] = (
            {_unreadable(token, names): number for token, number in pieces.items()}
            if isinstance(pieces, dict)
            else [(_unreadable(token, names), score) for token, score in pieces]
        )
        tokenizer.backend_tokenizer.model = Tokenizer.from_str(json.dumps(state)).model


def stated_length(name: str, tokenizer: Any) -> int | None:
    """Maximum length specified by a tokenizer, special tokens included; None if it specifies none.

    Raises: CheckpointError if the value is invalid, or leaves no room for a text.
    """
    stated = tokenizer.model_max_length
    if isinstance(stated, int | float) and stated > 1_000_000_000:
        return None  # transformers' value for "no limit".
    n_special = tokenizer.num_special_tokens_to_add(pair=False)
    if not isinstance(stated, int | float) or not isfinite(stated) or stated <= n_special:
        raise CheckpointError(
            f"The tokenizer of {name} takes at most {stated!r} tokens, which leaves no room for a text besides "
            f"{n_special} special tokens. Correct model_max_length in its tokenizer_config.json."
        )
    return int(stated)


def _reads(tokenizer: Any, name: str) -> bool:
    ids = tokenizer(name, split_special_tokens=True, add_special_tokens=False)["input_ids"]
    return tokenizer.convert_tokens_to_ids(name) in ids


def _unreadable(token: str, names: Collection[str]) -> str:
    return f"\0{token}" if token in names else token


def _embeddings(model: PreTrainedModel) -> Iterator[Any]:
    """Input embeddings; encoder-decoders may have separate ones for each stack."""
    try:
        yield model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        yield None  # Image and audio models have none.
    if getattr(model.config, "is_encoder_decoder", False):
        yield model.get_decoder().get_input_embeddings()


def _producible(tokenizer: Any) -> dict[str, int]:
    """Tokens that can occur in a tokenized text: vocabulary, added words, and automatically added special tokens."""
    added = set(tokenizer("", "")["input_ids"]) | {tokenizer.unk_token_id}
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    special |= set(tokenizer.all_special_ids)
    return {
        token: number for token, number in tokenizer.get_vocab().items() if number in added or number not in special
    }


def _is_known(key: str, known: Collection[str], prefix: str) -> bool:
    return key in known or key.removeprefix(prefix) in known or prefix + key in known


def _layerless(key: str) -> str:
    return LAYER_NUMBER.sub("*", key)
