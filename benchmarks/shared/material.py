"""Shared by the benchmarks: checkpoints, artificial texts, the programs that are compared, and timing."""

import copy
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
import transformers
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import ATTENTION_NAME
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.checkpoints.find import choose_device, find_checkpoint, load_checkpoint
from attention_sieve.core.passes.batches import BATCH_TOKENS, model_inputs, plan_batches
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.measures import SYNTACTIC_MEASURES, USUAL
from attention_sieve.core.roles.record import LOCAL_RADIUS
from attention_sieve.core.roles.scores import score_batch
from attention_sieve.core.roles.sieves import BatchSieves, batch_sieves
from attention_sieve.core.texts.relations import RELATIONS, TokenPair
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

Batches = Sequence[Sequence[PassText]]
SETTINGS: Final = PassSettings()
FIRST_ID: Final = 1000
"""Ids from here on are words in the vocabularies of BERT and related models."""
TOKENS_PER_RELATION: Final = 3
FEWEST_ROUNDS: Final = 5


def print_machine(n_threads: int = 1, device: str = "auto") -> None:
    """Set the number of threads, and print the machine on which the figures below are measured."""
    torch.set_num_threads(n_threads)
    device = choose_device(device)
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, device {device} ({name}), "
        f"{n_threads} thread{'s' * (n_threads > 1)}"
    )


def bundled(device: str = "auto") -> Checkpoint:
    return load_checkpoint(find_checkpoint("bundled"), device=device)


def bert_base(device: str = "auto") -> Checkpoint:
    return random_model(transformers.BertConfig(), device)


def random_model(config: Any, device: str = "auto", dtype: str = "float32") -> Checkpoint:
    """A model of some shape with random weights with the registered attention function: cost does not depend on them.

    It comes without a tokenizer of its own and without the self-check; made-up texts need neither.
    """
    torch.manual_seed(0)
    device = choose_device(device)
    model = transformers.AutoModel.from_config(config, dtype=getattr(torch, dtype)).to(device).eval()
    model.config.use_cache = False
    model.set_attn_implementation(ATTENTION_NAME)
    causal = not isinstance(config, transformers.BertConfig)
    calls = tuple(range(config.num_hidden_layers))
    return replace(
        bundled("cpu"),
        model=model,
        full_model=model,
        attentions={"self": AttentionLayers(calls=calls, n_heads=config.num_attention_heads, causal=causal)},
        takes_type_ids=not causal,
        device=device,
        dtype=dtype,
        statistics_dtype=torch.float64 if dtype == "float64" else torch.float32,
    )


def with_attention(checkpoint: Checkpoint, implementation: str) -> Any:
    """The same weights with another attention function."""
    model = checkpoint.model
    twin = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
    twin.set_attn_implementation(implementation)
    return twin


def made_up_texts(checkpoint: Checkpoint, lengths: Sequence[int]) -> list[PassText]:
    """Pairs of segments of the given lengths in tokens, between [CLS] and [SEP], with a relation for every third
    token."""
    chance = random.Random(0)
    n_known = checkpoint.model.get_input_embeddings().num_embeddings
    made_up = (_made_up_tokens(length, n_known, chance) for length in lengths)
    return [PassText(kind="self", source=text, pairs=tuple(_relations(text, chance))) for text in made_up]


def _made_up_tokens(n_tokens: int, n_known: int, chance: random.Random) -> TokenizedText:
    position = np.arange(n_tokens)
    is_cls, is_sep = position == 0, (position == n_tokens // 2) | (position == n_tokens - 1)
    segments = np.where(is_cls | is_sep, SPECIAL, (position > n_tokens // 2).astype(np.int64))
    return TokenizedText(
        ids=np.array(chance.choices(range(FIRST_ID, n_known), k=n_tokens)),
        type_ids=(position > n_tokens // 2).astype(np.int64),
        tokens=("token",) * n_tokens,
        spans=np.zeros((n_tokens, 2), dtype=np.int64),
        segments=segments,
        words=np.where(segments == SPECIAL, SPECIAL, position),
        is_cls=is_cls,
        is_sep=is_sep,
        n_cut=0,
    )


def _relations(text: TokenizedText, chance: random.Random) -> list[TokenPair]:
    words = np.flatnonzero(text.segments != SPECIAL)
    return [
        TokenPair(chance.choice(RELATIONS), np.array([dependent]), np.array([chance.choice(words)]))
        for dependent in words[::TOKENS_PER_RELATION]
    ]


def planned(texts: Sequence[PassText], device: str) -> Batches:
    """The texts in batches, as scoring plans them."""
    batches = plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[device])
    return [[texts[position] for position in batch.positions] for batch in batches]


def bare(checkpoint: Checkpoint, model: Any, batches: Batches) -> None:
    """The model's output alone."""
    for batch in batches:
        _forward(checkpoint, model, batch).last_hidden_state.cpu()


def scored(checkpoint: Checkpoint, batches: Batches) -> Float[np.ndarray, "text measure layer head"]:
    """Every measure with observers."""
    return np.stack([text.measures for batch in batches for text in score_batch(checkpoint, batch, SETTINGS).texts])


def from_stored_maps(
    checkpoint: Checkpoint, model: Any, batches: Batches
) -> Float[np.ndarray, "text measure layer head"]:
    """Every measure from `output_attentions`, vectorised."""
    return np.concatenate([_of_stored_maps(checkpoint, model, batch) for batch in batches])


def _of_stored_maps(checkpoint: Checkpoint, model: Any, texts: Sequence[PassText]) -> np.ndarray:
    maps = _forward(checkpoint, model, texts, output_attentions=True).attentions
    sieves = batch_sieves(texts, checkpoint.attentions["self"].causal)
    by_layer = torch.stack([_measures_of_maps(layer, sieves) for layer in maps], dim=2)
    return np.where(sieves.applicable[:, :, None, None], by_layer.cpu().numpy(), np.nan)


def _forward(checkpoint: Checkpoint, model: Any, texts: Sequence[PassText], **asked: bool) -> Any:
    with torch.inference_mode():
        return model(**model_inputs(checkpoint, texts), **asked)


def _measures_of_maps(
    attention: Float[Tensor, "text head query key"], sieves: BatchSieves
) -> Float[Tensor, "text measure head"]:
    def tensor(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(attention.device, attention.dtype if array.dtype.kind == "f" else None)

    position = torch.arange(attention.shape[-1], device=attention.device)
    band = ((position[:, None] - position).abs() <= LOCAL_RADIUS).to(attention.dtype)
    local = torch.einsum("bhqk,qk->bhq", attention, band)
    columns = torch.cat([local[..., None], attention @ tensor(sieves.indicators)[:, None]], dim=-1)
    weights = tensor(sieves.row_weights)
    rows = torch.einsum("bhqc,bqcm->bmh", columns, weights[..., : len(USUAL.row_measures)])
    entropy = torch.special.entr(attention).sum(-1)
    block = torch.einsum(
        "bhqc,bqc,bhq->bh", columns, weights[..., USUAL.row_measures.index("block without entropy")], entropy
    )
    of_scores = sieves.entry_measure < len(SYNTACTIC_MEASURES)  # the rest are shares
    text, query, key = tensor(sieves.entry_at[of_scores]).T
    entries = attention[text, :, query, key] * tensor(sieves.entry_weight[of_scores])[:, None]
    syntactic = attention.new_zeros((len(attention), len(SYNTACTIC_MEASURES), attention.shape[1]))
    syntactic.index_put_((text, tensor(sieves.entry_measure[of_scores])), entries, accumulate=True)
    return torch.cat([rows, block[:, None], syntactic], dim=1)


def median_ratios(contestants: Sequence[Callable[[], object]], seconds: float) -> tuple[float, list[float]]:
    """Run contestants in turn; the first one's median seconds, and each one's time over the first one's of its round.

    Ratios within a round are compared, since the machine may be slower in one round than in the next.
    """
    for contestant in contestants:
        contestant()
    rounds: list[list[float]] = []
    until = time.perf_counter() + seconds
    while len(rounds) < FEWEST_ROUNDS or time.perf_counter() < until:
        rounds.append([_seconds(contestant) for contestant in contestants])
    ratios = [statistics.median(times[i] / times[0] for times in rounds) for i in range(len(contestants))]
    return statistics.median(times[0] for times in rounds), ratios


def _seconds(contestant: Callable[[], object]) -> float:
    if torch.cuda.is_available():
        return _device_seconds(contestant)
    start = time.perf_counter()
    contestant()
    return time.perf_counter() - start


def _device_seconds(contestant: Callable[[], object]) -> float:
    """Between two marks in the GPU's own queue."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    contestant()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000
