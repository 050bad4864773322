"""What tests of the pass need again and again: texts as a pass takes them, and an observer that keeps what it sees."""

from dataclasses import replace

import numpy as np

from core.analysis import measured_text, prepare, window_at, with_relations
from core.measures import MEASURES
from core.passes import PassSettings, PassText, Window
from core.scores import BATCH_TOKENS, model_inputs, plan_batches, score_batch
from core.tokens import tokenize

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


def of_source(source, pairs=()):
    return PassText(kind="self", source=source, pairs=tuple(pairs))


def pass_texts(checkpoint, texts):
    return [of_source(tokenize(text, checkpoint.tokenizer, checkpoint.max_tokens)) for text in texts]


def inputs_of(checkpoint, texts):
    return model_inputs(checkpoint, pass_texts(checkpoint, texts))


def measures_of(checkpoint, texts, settings=SELF):
    """Measures of prepared texts in their order, in one batch or several."""
    attention = checkpoint.attentions[settings.kind]
    found = np.full((len(texts), len(MEASURES), attention.n_layers, attention.n_heads), np.nan)
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        of_batch = score_batch(checkpoint, [texts[position] for position in batch.positions], settings).measures
        found[list(batch.positions)] = of_batch
        found = found.astype(of_batch.dtype)
    return found


def look_at(checkpoint, text, settings=None, *, too_long="error", start=(0, 0)):
    """The attention of one text, its window beginning at `start`, and what the same pass measured of it."""
    settings = settings or PassSettings(checkpoint.files.kinds[0])
    (prepared,) = with_relations([prepare(checkpoint, text, settings, truncate=too_long == "truncate")], [text])
    scores = score_batch(checkpoint, [prepared], settings, {0: window_at(checkpoint, prepared, start)})
    return scores.maps[0], measured_text(0, prepared, scores.measures[0])


def whole_map(checkpoint, text, settings=SELF):
    """Attention [layer head query key] of one prepared text."""
    window = Window((0, len(text.queries.ids)), (0, len(text.keys.ids)))
    return score_batch(checkpoint, [text], settings, {0: window}).maps[0].attention
