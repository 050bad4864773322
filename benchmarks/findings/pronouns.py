"""In how many sentences a head follows a pronoun, and how often by chance: words shuffled, and random weights.

With shuffled words, pronoun and antecedent are the same two words in another order. "Any other pair" takes each pair of
other words of the sentences in place of pronoun and antecedent.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

import numpy as np

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, randomly_initialised
from attention_sieve.core.word_links.pronouns import (
    LEAST_EXCESS,
    PRONOUNS,
    PronounLink,
    PronounSentence,
    follower,
    pronoun_link,
)
from benchmarks.shared.markdown import header, row

SHUFFLES: Final = 20
THRESHOLDS: Final = (0.1, 0.2, LEAST_EXCESS, 0.4, 0.5)
MOST_HEADS: Final = 3


def main() -> None:
    inference, files = Inference(Store()), find_checkpoint(BUNDLED)
    bundled, untrained = Engine(files), Engine(randomly_initialised(files, 0))
    links = links_of(inference, bundled, PRONOUNS)
    shuffled = [with_words_shuffled(each, seed) for each in PRONOUNS for seed in range(SHUFFLES)]
    pairs = [
        replace(link, pronoun=query, antecedent=key)
        for link in links
        for query, key in permutations(range(len(link.words.words)), 2)
        if query != link.pronoun
    ]
    groups = {
        "pronoun and antecedent": links,
        "the same, words shuffled": links_of(inference, bundled, shuffled),
        "any other pair": pairs,
        "pronoun and antecedent, random weights": links_of(inference, untrained, PRONOUNS),
    }
    print("Share of pairs of words whose greatest excess is at least so great.")
    header("pairs", "number", *map("{:g}".format, THRESHOLDS))
    for name, of_pairs in groups.items():
        greatest = np.array([link.excess.max() for link in of_pairs])
        row(name, len(of_pairs), *(f"{(greatest >= threshold).mean():.0%}" for threshold in THRESHOLDS))
    print(f"\nShare of pairs at which a head reaches {LEAST_EXCESS:g}.")
    header("head", *groups)
    follows = {name: np.mean([link.follows for link in of_pairs], axis=0) for name, of_pairs in groups.items()}
    for number in np.argsort(-follows["pronoun and antecedent"], axis=None, kind="stable")[:MOST_HEADS].tolist():
        layer, head = divmod(number, len(links[0].excess[0]))
        row(head_name(layer, head), *(f"{of_heads[layer, head]:.0%}" for of_heads in follows.values()))
    answer = follower(links[0], links[1:])
    print(f"\nThe answer to *{PRONOUNS[0].sentence}*: {'none' if answer is None else head_name(*answer)}")
    inference.close()


def links_of(inference: Inference, engine: Engine, sentences: Sequence[PronounSentence]) -> list[PronounLink]:
    """Links of sentences that the checkpoint reads whole."""
    links = (pronoun_link(each, inference.look(engine, each.text)[0]) for each in sentences)
    return [link for link in links if link is not None]


def with_words_shuffled(sentence: PronounSentence, seed: int) -> PronounSentence:
    """The same words in random order."""
    words = sentence.sentence.rstrip(".").split()
    order = random.Random(seed).sample(words, len(words))
    return replace(sentence, sentence=f"{' '.join(order)}.")


if __name__ == "__main__":
    main()
