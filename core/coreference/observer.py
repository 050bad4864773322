"""The word that each mention attends to most, its attention to its antecedents, and that of other words to them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attention_sieve.core.answering import REMOVED
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.coreference.accuracy import NO_CHOICE, MentionChoices
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.passes.batches import FromWord, WordCollector, collect, to_device
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import FIRST_WORD, WordMap, word_map


def mention_choices(
    checkpoint: Checkpoint,
    texts: Sequence[MentionText],
    prepared: Sequence[PassText],
    settings: PassSettings,
    from_word: FromWord = "mean",
) -> Iterator[list[tuple[int, MentionChoices]]]:
    """Run texts, prepared for a pass and possibly truncated, through the model; yields index and choices of each
    batch's texts. The kind of attention is not cross-attention.
    """
    n_layers = checkpoint.attentions[settings.kind].n_layers
    maps = {id(pass_text): word_map(text.words, pass_text.queries) for pass_text, text in zip(prepared, texts)}
    mentions = {id(pass_text): text for pass_text, text in zip(prepared, texts)}

    def collector(batch: Sequence[PassText]) -> WordCollector:
        batch_maps = [maps[id(pass_text)] for pass_text in batch]
        choose = _Choosing(checkpoint, batch_maps, [mentions[id(pass_text)] for pass_text in batch])
        return WordCollector(checkpoint, batch_maps, choose, n_layers=n_layers, from_word=from_word)

    for results in collect(checkpoint, prepared, settings, collector):
        yield [(index, _choices(columns, texts[index], maps[id(prepared[index])])) for index, columns in results]


class _Choosing:
    """Reduces attention between words to the choices of the mentions of a batch."""

    def __init__(self, checkpoint: Checkpoint, maps: Sequence[WordMap], texts: Sequence[MentionText]) -> None:
        n_words = FIRST_WORD + max(words.n_words for words in maps)
        n_mentions = max(1, *(len(text.mentions) for text in texts))
        heads = np.full((len(texts), n_mentions), FIRST_WORD)
        is_word = np.zeros((len(texts), n_mentions, n_words), bool)
        is_mention = np.zeros_like(is_word)
        is_antecedent = np.zeros((len(texts), n_mentions, n_mentions), bool)
        is_other = np.zeros((len(texts), n_words, n_mentions), bool)
        for row, (words, text) in enumerate(zip(maps, texts)):
            head_words = FIRST_WORD + np.array([mention.head for mention in text.mentions], int)
            heads[row, : len(head_words)] = head_words
            is_word[row, : len(head_words), FIRST_WORD : FIRST_WORD + words.n_words] = words.has_tokens
            is_word[row, np.arange(len(head_words)), head_words] = False
            for number in range(1, len(head_words)):
                is_mention[row, number, head_words[:number]] = True
            joined = is_antecedent[row, : len(head_words), : len(head_words)]
            joined[...] = text.is_antecedent & words.has_tokens[head_words - FIRST_WORD]
            is_other[row, FIRST_WORD : FIRST_WORD + words.n_words, : len(head_words)] = _others(text, words)
        arrays = (heads, is_word, is_mention, is_antecedent, is_other)
        self._heads, self._is_word, self._is_mention, self._is_antecedent, self._is_other = (
            to_device(torch.from_numpy(array), checkpoint.device) for array in arrays
        )

    def __call__(
        self, layer: int, attention: Float[Tensor, "text head word key_word"]
    ) -> Mapping[str, Shaped[Tensor, "text head mention"]]:
        rows = attention.take_along_dim(self._heads[:, None, :, None], dim=2)
        return {
            "mentions": _most(rows, self._is_mention),
            "words": _most(rows, self._is_word),
            **self._to_antecedents(attention, rows),
        }

    def _to_antecedents(
        self,
        attention: Float[Tensor, "text head word key_word"],
        rows: Float[Tensor, "text head mention key_word"],
    ) -> dict[str, Float[Tensor, "text head mention"]]:
        """Attention of mentions to their antecedents, and of other words to the same ones; NaN where nothing can be
        compared."""
        keys = self._heads[:, None, None]
        columns = attention.take_along_dim(keys, dim=3)
        # A key that no head of the layer looks at is hidden by a mask.
        is_other = self._is_other & (columns.nansum(1) > 0)
        n_others = is_other.sum(1)
        others = (columns * is_other[:, None]).sum(2) / n_others[:, None].clamp_min(1)
        between = rows.take_along_dim(keys, dim=3)
        joined = self._is_antecedent & (between.nansum(1) > 0) & (n_others > 0)[:, None]
        is_known = joined.any(-1)[:, None]
        return {
            "to_antecedents": (between * joined[:, None]).sum(-1).masked_fill(~is_known, torch.nan),
            "from_others": (others[:, :, None] * joined[:, None]).sum(-1).masked_fill(~is_known, torch.nan),
        }


def _others(text: MentionText, words: WordMap) -> Bool[np.ndarray, "word mention"]:
    """The words with tokens that come after the head word of each mention and are in no mention of its entity."""
    in_entity = {mention.entity: np.zeros(words.n_words, bool) for mention in text.mentions}
    for mention in text.mentions:
        in_entity[mention.entity][mention.start : mention.end] = True
    others = np.zeros((words.n_words, len(text.mentions)), bool)
    for number, mention in enumerate(text.mentions):
        after = slice(mention.head + 1, None)
        others[after, number] = words.has_tokens[after] & ~in_entity[mention.entity][after]
    return others


def _most(
    rows: Float[Tensor, "text head mention key_word"], candidates: Bool[Tensor, "text mention key_word"]
) -> Int[Tensor, "text head mention"]:
    """The candidate word with the largest weight, the first in case of a tie; NO_CHOICE if all weights are 0,
    and REMOVED for a head that was removed."""
    weight, word = rows.masked_fill(~candidates[:, None], 0).max(dim=-1)
    choices = torch.where(weight > 0, word - FIRST_WORD, NO_CHOICE)
    return choices.masked_fill(rows[..., 0, 0].isnan()[..., None], REMOVED)  # all entries of a removed head are


def _choices(columns: Mapping[str, np.ndarray], text: MentionText, words: WordMap) -> MentionChoices:
    n_mentions = len(text.mentions)
    heads = [mention.head for mention in text.mentions]
    return MentionChoices(
        mentions=columns["mentions"][..., :n_mentions].astype(np.int32),
        words=columns["words"][..., :n_mentions].astype(np.int32),
        to_antecedents=columns["to_antecedents"][..., :n_mentions].astype(np.float32),
        from_others=columns["from_others"][..., :n_mentions].astype(np.float32),
        is_read=words.has_tokens[heads],
    )
