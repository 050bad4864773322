"""How often a text has a link that stands out: the samples, controls of them, and random weights.

Controls: the words of each text shuffled; the attention of every query permuted over all keys, or over words only, so
that special tokens keep theirs. Habits are those of the texts as they stand, but in the last two lines those of the
control itself.

No control lowers the greatest excess of a text much. Heads join words also where they stand in another order, and
permuted rows keep their peaks, which then fall on words that the head usually passes over. So a link that stands out
shows that a head does something unusual with two words; not that it follows the grammar of the sentence.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import PassSettings, Window, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.passes.batches import MapCollector, collect
from attention_sieve.core.passes.texts import TextAttention, prepare
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL
from attention_sieve.core.word_links.habits import (
    STANDS_OUT,
    Habits,
    habits_of,
    surprising_links,
    text_distances,
    word_attention,
)
from attention_sieve.dashboard.samples import read_sample
from benchmarks.shared.markdown import header, row

THRESHOLDS: Final = (0.1, 0.3, STANDS_OUT, 0.6, 0.7, 0.8)
STUDY: Final = (
    "My brother broke his new phone.",
    "She lost the key to the old house yesterday.",
    "The trophy did not fit in the suitcase because it was too big.",
    "The committee finally proposed a smaller budget.",
)
SETTINGS: Final = PassSettings()


def main() -> None:
    texts, files = read_sample("both"), find_checkpoint(BUNDLED)
    bundled = load_checkpoint(files)
    real = list(looks(bundled, texts))
    habits, rng = habits_in(real), np.random.default_rng(0)
    shuffled = list(looks(bundled, [with_words_shuffled(text, seed) for seed, text in enumerate(texts)]))
    keys = [permuted(look, rng, words_only=False) for look in real]
    words = [permuted(look, rng, words_only=True) for look in real]
    untrained = list(looks(load_checkpoint(randomly_initialised(files, 0)), texts))
    print(f"Greatest excess of each of {len(texts)} texts, and the share of texts in which it is at least so great.")
    header("texts", "median", "greatest", *map("{:g}".format, THRESHOLDS))
    for name, of_texts, of_habits in (
        ("samples", real, habits),
        ("words shuffled", shuffled, habits),
        ("keys permuted", keys, habits),
        ("words permuted", words, habits),
        ("words permuted, own habits", words, habits_in(words)),
        ("random weights", untrained, habits_in(untrained)),
    ):
        greatest = np.array([surprising_links(look, of_habits)[0].excess for look in of_texts])
        shares = (f"{(greatest >= threshold).mean():.1%}" for threshold in THRESHOLDS)
        row(name, f"{np.median(greatest):.2f}", f"{greatest.max():.2f}", *shares)
    for look in looks(bundled, [Text((sentence,)) for sentence in STUDY]):
        print(f"\nThe greatest in: {' '.join(look.text.queries.tokens)}")
        header("head", "link", "attention", "usual", "from other words", "uniform", "excess")
        for link in surprising_links(look, habits)[:5]:
            shares = (f"{share:.0%}" for share in (link.attention, link.usual, link.from_others, link.even))
            row(head_name(*link.head), f"{link.query.text} → {link.key.text}", *shares, f"{link.excess:.2f}")


def looks(checkpoint: Checkpoint, texts: Sequence[Text]) -> Iterator[TextAttention]:
    """The whole attention of each text."""
    layers = checkpoint.attentions[SETTINGS.kind]
    prepared = [prepare(checkpoint, text, SETTINGS) for text in texts]
    maps = dict(one for batch in collect(checkpoint, prepared, SETTINGS, MapCollector) for one in batch)
    for index, text in enumerate(prepared):
        whole = (0, len(text.queries.ids))
        window = Window(whole, whole)
        yield TextAttention(
            text=text, causal=layers.causal, window=window, attention=maps[index], block=0, overview=None
        )


def habits_in(of_texts: Sequence[TextAttention]) -> Habits:
    """Habits over these texts."""
    words = map(word_attention, of_texts)
    return habits_of([text_distances(each) for each in words])


def with_words_shuffled(text: Text, seed: int) -> Text:
    """The same words of each segment in random order."""
    order = random.Random(seed)
    segments = [segment.split() for segment in text.segments]
    return Text(tuple(" ".join(order.sample(words, len(words))) for words in segments))


def permuted(look: TextAttention, rng: np.random.Generator, *, words_only: bool) -> TextAttention:
    """The attention of every query in random order: over all keys, or over those that are no special tokens."""
    keys = np.flatnonzero(look.text.keys.segments != SPECIAL) if words_only else np.arange(len(look.text.keys.ids))
    attention = look.attention.copy()
    attention[..., keys] = shuffled_rows(attention[..., keys], rng)
    return replace(look, attention=attention)


def shuffled_rows(rows: Float[np.ndarray, "*row key"], rng: np.random.Generator) -> Float[np.ndarray, "*row key"]:
    return np.take_along_axis(rows, rng.random(rows.shape).argsort(axis=-1), axis=-1)


if __name__ == "__main__":
    main()
