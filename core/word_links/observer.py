"""Attention between the words of a pattern and between other words at the same distance, during the pass."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.settings import PassSettings, live_keys
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.passes.batches import WordCollector, collect, to_device
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import FIRST_WORD, WordMap, word_map
from attention_sieve.core.word_links.pattern import PatternAttention, PatternText, WordPair

SHARES, COMPARED, OTHERS = range(3)
Weights = list[tuple[int, WordPair, float]]
"""Index of the mean, pair, and weight of the pair in the mean."""


def pattern_attention(
    checkpoint: Checkpoint, texts: Sequence[PatternText], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, PatternAttention]]]:
    """Run texts, whose queries are their keys, through the model, yielding index and result of each batch's texts."""
    attention = checkpoint.attentions[settings.kind]
    rows = {id(prepared_text): row for row, prepared_text in enumerate(prepared)}
    maps = [word_map(text.words, passed.queries) for passed, text in zip(prepared, texts, strict=True)]
    even = [_even(passed, words, attention) for passed, words in zip(prepared, maps)]
    weights = list(map(_weights, texts, even))

    def collector(batch: Sequence[PassText]) -> WordCollector:
        indices = [rows[id(prepared_text)] for prepared_text in batch]
        reduce = _Means(checkpoint, [weights[row] for row in indices])
        return WordCollector(checkpoint, [maps[row] for row in indices], reduce, n_layers=attention.n_layers)

    for results in collect(checkpoint, prepared, settings, collector):
        yield [(row, _pattern_attention(columns["means"], weights[row], even[row])) for row, columns in results]


def _even(text: PassText, words: WordMap, attention: AttentionLayers) -> Float[np.ndarray, "layer word key_word"]:
    """Evenly spread attention between the words of a text; 0 where a word has no tokens or cannot attend to the
    other."""
    n_tokens = len(text.queries.ids)
    belongs = words.word_numbers[:, None] == np.arange(words.n_words) + FIRST_WORD
    attends = belongs / np.maximum(belongs.sum(axis=0), 1)
    reaches = [attention.reach(layer) for layer in range(attention.n_layers)]
    by_reach = {}
    for reach in dict.fromkeys(reaches):
        bounds = live_keys(n_tokens, n_tokens, attention.causal, reach)
        is_live = (np.arange(n_tokens) >= bounds[:, :1]) & (np.arange(n_tokens) < bounds[:, 1:])
        by_reach[reach] = attends.T @ (is_live / (bounds[:, 1:] - bounds[:, :1])) @ belongs
    return np.stack([by_reach[reach] for reach in reaches])


def _weights(text: PatternText, even: Float[np.ndarray, "layer word key_word"]) -> Weights:
    """Weighted pairs of each mean, without pairs that are impossible in every layer."""
    is_seen = even.max(axis=0) > 0
    pairs = [pair for pair in text.pairs if is_seen[pair]]
    others = defaultdict[tuple[int, int, int], list[WordPair]](list)
    for pair in text.others:
        if is_seen[pair]:
            others[text.offset_and_segments(pair)].append(pair)
    compared = [pair for pair in pairs if text.offset_and_segments(pair) in others]
    weights = [(SHARES, pair, 1 / len(pairs)) for pair in pairs]
    for pair in compared:
        weights.append((COMPARED, pair, 1 / len(compared)))
        at_distance = others[text.offset_and_segments(pair)]
        weights += [(OTHERS, other, 1 / len(compared) / len(at_distance)) for other in at_distance]
    return weights


class _Means:
    """Reduces attention between words to the three means of each text."""

    def __init__(self, checkpoint: Checkpoint, texts: Sequence[Weights]) -> None:
        entries = [(row, *entry) for row, weights in enumerate(texts) for entry in weights]
        indices = np.array([(row, mean, *pair) for row, mean, pair, _ in entries], dtype=np.int64).reshape(-1, 4)
        weight = torch.tensor([weight for *_, weight in entries], dtype=checkpoint.statistics_dtype)
        self._indices = to_device(torch.from_numpy(indices), checkpoint.device)
        self._weight = to_device(weight, checkpoint.device)
        self._n_texts = len(texts)

    def __call__(
        self, layer: int, attention: Float[Tensor, "text head word key_word"]
    ) -> Mapping[str, Float[Tensor, "text mean head"]]:
        row, mean, query, key = self._indices.T
        weighted = attention[row, :, FIRST_WORD + query, FIRST_WORD + key] * self._weight[:, None]
        means = attention.new_zeros((self._n_texts * (OTHERS + 1), attention.shape[1]))
        means.index_add_(0, row * (OTHERS + 1) + mean, weighted)
        return {"means": means.unflatten(0, (self._n_texts, OTHERS + 1))}


def _pattern_attention(
    means: Float[np.ndarray, "layer mean head"], weights: Weights, even: Float[np.ndarray, "layer word key_word"]
) -> PatternAttention:
    pairs = [pair for mean, pair, _ in weights if mean == SHARES]
    means_with_pairs = {mean for mean, *_ in weights}
    shares, compared, others = (
        means[:, mean] if mean in means_with_pairs else np.full_like(means[:, mean], np.nan)
        for mean in (SHARES, COMPARED, OTHERS)
    )
    even_of_pairs = np.array([even[:, *pair] for pair in pairs]).reshape(-1, len(even))
    return PatternAttention(
        n_pairs=len(pairs),
        shares=shares,
        even=even_of_pairs.mean(axis=0) if pairs else np.full(len(even), np.nan),
        compared=compared,
        others=others,
    )
