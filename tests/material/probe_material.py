"""What tests of probes need: made-up texts with trees, and a probe's scores from its formula."""

from dataclasses import replace

import numpy as np

from attention_sieve.core.tree_probes.probe import Probe
from attention_sieve.core.tree_probes.texts import PassedWords, ProbeText

N_LAYERS, N_HEADS, DIMENSION = 2, 3, 4


def made_text(rng, heads, *, rows=None, planted=None, strength=0.9):
    """A text with random attention between [CLS], the other special tokens as one, and the words.

    The head `planted` (layer, head) attends from each word to its head, or to [CLS] from a root.
    """
    n = len(heads) + 2
    attention = rng.random((N_LAYERS, N_HEADS, n, n))
    attention /= attention.sum(axis=-1, keepdims=True)
    if planted is not None:
        for word, head in enumerate(heads):
            attention[planted][2 + word] *= 1 - strength
            attention[planted][2 + word, 0 if head == 0 else 1 + head] += strength
    return ProbeText(
        passed=PassedWords(attention=attention.astype(np.float16), places=np.arange(len(heads))),
        heads=np.array(heads),
        counts=np.arange(len(heads)) != 1,
        rows=np.zeros(len(heads), int) if rows is None else np.array(rows),
    )


def with_attention(text, attention):
    return replace(text, passed=replace(text.passed, attention=attention))


def among_unread(text, places, n_words):
    """The same text with more words, of no tokens and each the head of none, so that its own stand at some places."""
    places = np.array(places)
    heads, counts = np.zeros(n_words, int), np.zeros(n_words, bool)
    heads[places] = np.append(-1, places)[text.heads] + 1
    counts[places] = text.counts
    return replace(text, passed=replace(text.passed, places=places), heads=heads, counts=counts)


def random_heads(rng, n_words):
    """A tree: every word's head is ROOT for one word, and else a word nearer to it."""
    order = rng.permutation(n_words)
    heads = np.zeros(n_words, int)
    for i in range(1, n_words):
        heads[order[i]] = 1 + order[rng.integers(i)]
    return heads.tolist()


def made_texts(n_texts, seed=0, **how):
    rng = np.random.default_rng(seed)
    return [made_text(rng, random_heads(rng, int(rng.integers(3, 9))), **how) for _ in range(n_texts)]


def random_probe(seed=0, dimension=DIMENSION):
    rng = np.random.default_rng(seed)
    return Probe(
        constant=rng.normal(size=(2, N_LAYERS, N_HEADS)),
        by_word=rng.normal(size=(2, 2, N_LAYERS, N_HEADS, dimension)),
        root_vector=rng.normal(size=dimension),
        root_parts=rng.normal(size=2),
    )


def by_the_formula(probe, text, table):
    """Scores [word candidate] by sums over heads, with every pair of words written out."""
    attention, n_words = text.passed.attention.astype(float), len(text.heads)
    scores = np.zeros((n_words, n_words + 1))
    for word in range(n_words):
        own = table[text.rows[word]]
        for candidate in range(n_words + 1):
            other = probe.root_vector if candidate == 0 else table[text.rows[candidate - 1]]
            pair = np.concatenate([other, own])
            for layer in range(N_LAYERS):
                for head in range(N_HEADS):
                    maps = attention[layer, head]
                    if candidate == 0:
                        a_start, a_end = probe.root_parts
                        from_candidate = a_start * maps[0, 2 + word] + a_end * maps[1, 2 + word]
                        to_candidate = a_start * maps[2 + word, 0] + a_end * maps[2 + word, 1]
                    else:
                        from_candidate = maps[1 + candidate, 2 + word]
                        to_candidate = maps[2 + word, 1 + candidate]
                    for direction, weighed in enumerate((from_candidate, to_candidate)):
                        weight = np.concatenate(list(probe.by_word[direction, :, layer, head])) @ pair
                        scores[word, candidate] += (probe.constant[direction, layer, head] + weight) * weighed
    return scores
