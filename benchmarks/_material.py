"""What the benchmarks share: checkpoints, made-up texts, the contestants, and the clock."""

import copy
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import transformers
from jaxtyping import Float
from torch import Tensor

from core.attention import DOOR
from core.checkpoints import Checkpoint, choose_device, find_checkpoint, load_checkpoint
from core.measures import ROW_MEASURES, SYNTACTIC_MEASURES
from core.parses import TokenPair
from core.roles import RELATIONS
from core.scores import BATCH_TOKENS, model_inputs, plan_batches, score_batches
from core.sieves import LOCAL_RADIUS, BatchSieves, batch_sieves
from core.texts import Text
from core.tokens import TokenizedText, tokenize

SPECIAL_TOKENS = 3
"""[CLS] and two [SEP] of a pair."""
WORDS_PER_RELATION = 3
FEWEST_ROUNDS = 5


def print_machine() -> None:
    torch.set_num_threads(1)
    device = choose_device()
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.get_num_threads()} thread, "
        f"device {device} ({name}), {BATCH_TOKENS[device]:,} tokens a batch"
    )


def bundled() -> Checkpoint:
    return load_checkpoint(find_checkpoint("bundled"))


def bert_base() -> Checkpoint:
    """A model of BERT-base's shape with random weights: cost does not depend on them."""
    small = bundled()
    model = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False).to(small.device).eval()
    model.set_attn_implementation(DOOR)
    return replace(
        small, model=model, n_layers=model.config.num_hidden_layers, n_heads=model.config.num_attention_heads
    )


def with_attention(checkpoint: Checkpoint, implementation: str) -> Any:
    """The same weights behind another attention function."""
    model = checkpoint.model
    twin = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
    twin.set_attn_implementation(implementation)
    return twin


def made_up_texts(
    checkpoint: Checkpoint, lengths: Sequence[int]
) -> tuple[list[TokenizedText], list[tuple[TokenPair, ...]]]:
    """Pairs of segments of so many tokens, and a made-up relation for every third word."""
    chance = random.Random(0)
    vocabulary = sorted(word for word in checkpoint.tokenizer.get_vocab() if word.isalpha() and word.isascii())
    texts = []
    for length in lengths:
        words = chance.choices(vocabulary, k=length - SPECIAL_TOKENS)
        half = len(words) // 2
        text = Text((" ".join(words[:half]), " ".join(words[half:])))
        texts.append(tokenize(text, checkpoint.tokenizer, checkpoint.max_tokens))
    return texts, [tuple(_relations(text, chance)) for text in texts]


def _relations(text: TokenizedText, chance: random.Random) -> list[TokenPair]:
    words = np.flatnonzero(text.segments >= 0)
    return [
        TokenPair(chance.choice(RELATIONS), np.array([dependent]), np.array([chance.choice(words)]))
        for dependent in words[::WORDS_PER_RELATION]
    ]


def planned(texts: Sequence[TokenizedText], device: str) -> list[list[int]]:
    """Positions of the texts in each batch, as scoring plans them."""
    return [list(b.positions) for b in plan_batches([len(text.ids) for text in texts], BATCH_TOKENS[device])]


@contextmanager
def one_batch(checkpoint: Checkpoint) -> Iterator[None]:
    """Score whatever is given in one batch."""
    usual = BATCH_TOKENS[checkpoint.device]
    BATCH_TOKENS[checkpoint.device] = sys.maxsize
    try:
        yield
    finally:
        BATCH_TOKENS[checkpoint.device] = usual


def bare(checkpoint: Checkpoint, model: Any, batches: Sequence[Sequence[TokenizedText]]) -> None:
    """The model's output alone."""
    for batch in batches:
        _forward(checkpoint, model, batch).last_hidden_state.cpu()


def scored(
    checkpoint: Checkpoint, texts: Sequence[TokenizedText], pairs: Sequence[Sequence[TokenPair]]
) -> Float[np.ndarray, "text measure layer head"]:
    """Every measure through the door."""
    results = {p: of for places, scores in score_batches(checkpoint, texts, pairs) for p, of in zip(places, scores)}
    return np.stack([results[position] for position in range(len(texts))])


def from_stored_maps(
    checkpoint: Checkpoint, model: Any, texts: Sequence[TokenizedText], pairs: Sequence[Sequence[TokenPair]]
) -> Float[np.ndarray, "text measure layer head"]:
    """Every measure of one batch from `output_attentions`, vectorised."""
    maps = _forward(checkpoint, model, texts, output_attentions=True).attentions
    sieves = batch_sieves(texts, pairs, checkpoint.causal)
    by_layer = torch.stack([_measures_of_maps(layer, sieves) for layer in maps], dim=2)
    return np.where(sieves.applicable[:, :, None, None], by_layer.cpu().numpy(), np.nan)


def _forward(checkpoint: Checkpoint, model: Any, texts: Sequence[TokenizedText], **asked: bool) -> Any:
    ids, mask, type_ids = model_inputs(checkpoint, texts)
    with torch.inference_mode():
        return model(input_ids=ids, attention_mask=mask, token_type_ids=type_ids, **asked)


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
    rows = torch.einsum("bhqc,bqcm->bmh", columns, weights)
    entropy = torch.special.entr(attention).sum(-1)
    block = torch.einsum(
        "bhqc,bqc,bhq->bh", columns, weights[..., ROW_MEASURES.index("block without entropy")], entropy
    )
    text, query, key = tensor(sieves.entry_at).T
    entries = attention[text, :, query, key] * tensor(sieves.entry_weight)[:, None]
    syntactic = attention.new_zeros((len(attention), len(SYNTACTIC_MEASURES), attention.shape[1]))
    syntactic.index_put_((text, tensor(sieves.entry_measure)), entries, accumulate=True)
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
    start = time.perf_counter()
    contestant()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start
