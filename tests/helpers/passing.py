"""What tests of the pass need again and again: texts as a pass takes them, and an observer that keeps what it sees."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from attention_sieve.core.answering import answer
from attention_sieve.core.attention.observers import Tile
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.passes.batches import BATCH_TOKENS, model_inputs, plan_batches
from attention_sieve.core.passes.texts import PassText, prepare, prepare_all, window_at, with_relations
from attention_sieve.core.roles.measures import TextMeasures
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.roles.scores import score_batch
from attention_sieve.core.texts.tokens import tokenize

SELF = PassSettings()


class Recorder:
    """Keeps what the tiles carry, in order."""

    KEPT = ("probabilities", "row_sums", "indicator_sums", "entropy", "outputs")

    def __init__(self, indicators=None, wants_entropy=False, wants_outputs=False):
        self.indicators, self.wants_entropy, self.wants_outputs = indicators, wants_entropy, wants_outputs
        self.tiles = []

    def observe(self, tile):
        kept = {name: getattr(tile, name) for name in self.KEPT}
        self.tiles.append(replace(tile, **{name: None if x is None else x.clone() for name, x in kept.items()}))


def whole_tile(attention, observer, layer=0):
    """A hand-made map [head query key] as the only tile of a layer of one text."""
    probabilities = torch.tensor(attention)[None]
    return Tile(
        layer=layer,
        texts=slice(0, 1),
        queries=slice(0, probabilities.shape[2]),
        probabilities=probabilities,
        row_sums=None,
        indicator_sums=probabilities @ observer.indicators[:, None],
        entropy=torch.special.entr(probabilities).sum(-1),
        outputs=None,
    )


def of_source(source, pairs=()):
    return PassText(kind="self", source=source, pairs=tuple(pairs))


def pass_texts(checkpoint, texts):
    return [of_source(tokenize(text, checkpoint.tokenizer, checkpoint.max_tokens)) for text in texts]


def inputs_of(checkpoint, texts):
    return model_inputs(checkpoint, pass_texts(checkpoint, texts))


def measures_of(checkpoint, texts, settings=SELF):
    """Measures of prepared texts in their order, in one batch or several."""
    return np.stack([of_text.measures for of_text in measured_of(checkpoint, texts, settings)])


def measured_of(checkpoint, texts, settings=SELF):
    """What a pass measures of prepared texts, in their order."""
    found = {}
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        of_batch = score_batch(checkpoint, [texts[position] for position in batch.positions], settings).texts
        found |= dict(zip(batch.positions, of_batch, strict=True))
    return [found[position] for position in range(len(texts))]


def look_at(checkpoint, text, settings=None, *, too_long="error", start=(0, 0)):
    """The attention of one text, its window beginning at `start`, and what the same pass measured of it."""
    settings = settings or PassSettings(checkpoint.files.kinds[0])
    (prepared,) = with_relations([prepare(checkpoint, text, settings, truncate=too_long == "truncate")], [text])
    scores = score_batch(checkpoint, [prepared], settings, {0: window_at(checkpoint, prepared, start)})
    return scores.maps[0], measured(0, prepared, scores.texts[0])


@dataclass(frozen=True, eq=False)
class Measured:
    """What the scores' question gives for one text; no measures for one that was left out as too long."""

    position: int
    n_tokens: int
    n_cut: int
    of_text: TextMeasures | None

    @property
    def measures(self):
        """The sieve bias scores alone."""
        return None if self.of_text is None else self.of_text.measures


def measured(position, text, of_text):
    sides = (text.queries, text.keys)
    n_tokens, n_cut = max(len(side.ids) + side.n_cut for side in sides), max(side.n_cut for side in sides)
    return Measured(position, n_tokens, n_cut, of_text)


def measure(checkpoint, texts, settings=None, *, too_long="error"):
    """Ask for the scores of texts without a cache; not in the order given."""
    settings = settings or PassSettings(checkpoint.files.kinds[0])
    prepared, left_out = prepare_all(checkpoint, texts, settings, too_long)
    for position, n_tokens in left_out:
        yield Measured(position, n_tokens, 0, None)
    for batch in answer(checkpoint, SCORES, texts, prepared, settings):
        yield from (measured(position, prepared[position], of_text) for position, of_text in batch)


def measures_in(texts):
    """Sieve bias scores [text measure layer head] of what was measured of texts."""
    return np.stack([text.measures for text in texts])


def whole_map(checkpoint, text, settings=SELF):
    """Attention [layer head query key] of one prepared text."""
    window = Window((0, len(text.queries.ids)), (0, len(text.keys.ids)))
    return score_batch(checkpoint, [text], settings, {0: window}).maps[0].attention
