"""Heads that find a pronoun's name, and what other words give to the same name, on the rows of GAP with two names.

Of the held-out rows in which one of two earlier names is right: how often each head looks from the pronoun at the right
one more, and how many times as much it gives the right one as later words that do not mention it give to it. A head
that looks at names from everywhere is right more often than by chance, too.
"""

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import Head, PassSettings, head_name
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint
from attention_sieve.core.coreference.accuracy import CoreferenceScores, coreference_scores
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.coreference.observer import mention_choices
from attention_sieve.core.passes.texts import prepare

DATA: Final = Path(__file__).parents[3] / "shared" / "data" / "gap"
FILE: Final = DATA / "gap-validation.tsv.gz"
SHOWN: Final[tuple[Head, ...]] = ((5, 3), (4, 1), (5, 11), (4, 11), (3, 7), (3, 1))
"""Three heads that look at names from everywhere, and three that do not."""
N_BEST: Final = 10
ALPHA: Final = 0.05


def main() -> None:
    if not FILE.is_file():
        print(f"Not measured: there is no {FILE}.", file=sys.stderr)
        return
    texts = [text for text in read_mentions(gzip.decompress(FILE.read_bytes())) if has_two_names(text)]
    scores = measured(texts)
    print(f"{FILE.name}: {scores.judgement.n_cases[0]:,} pronouns with a right and a wrong name before them:\n")
    print("\n".join(lines(scores)))


def has_two_names(text: MentionText) -> bool:
    """Whether one of two earlier names is right."""
    return len(text.mentions) == 3 and len(text.antecedents[-1]) == 1


def measured(texts: Sequence[MentionText]) -> CoreferenceScores:
    checkpoint, settings = load_checkpoint(find_checkpoint(BUNDLED)), PassSettings()
    prepared = [prepare(checkpoint, text.text, settings, truncate=True) for text in texts]
    choices = dict(one for batch in mention_choices(checkpoint, texts, prepared, settings) for one in batch)
    return coreference_scores(texts, [choices[place] for place in range(len(texts))], alpha=ALPHA)


def lines(scores: CoreferenceScores) -> list[str]:
    judged = scores.judgement
    control, accuracy = judged.key_matched[0], judged.accuracy[0]
    order = np.argsort(-accuracy, axis=None, kind="stable")[:N_BEST]
    best: list[Head] = [(int(at) // accuracy.shape[1], int(at) % accuracy.shape[1]) for at in order]
    above = judged.p_values[0, 0] < ALPHA
    n_marked = int((above & control.from_everywhere).sum())
    return [
        "| head | right % | attention | of later words | times | p |",
        "|---|--:|--:|--:|--:|--:|",
        *(
            f"| {head_name(*at)} | {100 * accuracy[at]:.0f} | {control.to_right[at]:.3f} "
            f"| {control.from_others[at]:.3f} | {control.times[at]:.1f} | {control.p_values[at]:.2g} |"
            for at in dict.fromkeys((*SHOWN, *best))
        ),
        "",
        f"{int(above.sum())} heads beat the nearest name (p < {ALPHA:g}, corrected); {n_marked} of them look there "
        "from everywhere.",
        f"Best of both: {head_name(*scores.best)}; {scores.best_accuracy:.1%} held out, "
        f"{float(judged.best_key_matched.times):.1f} times what later words give.",
    ]


if __name__ == "__main__":
    main()
