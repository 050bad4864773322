"""Probes on 3,010 sentences of the English Web Treebank, Stanford-style, tested on its 2,001 dev sentences.

Goals: attention alone above right-branching and above the random control. Other numbers of texts may be given, as in
`python -m benchmarks.findings.probes 300 300`. The treebank lies beside the repository; where it does not, nothing is
measured.
"""

import gzip
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.texts.relations import Dependencies, dependencies
from attention_sieve.core.texts.text import Text, read_file
from attention_sieve.core.tree_probes.features import embedded_words, word_attention_maps, word_pieces
from attention_sieve.core.tree_probes.probe import AttachmentScore, TreeProbeSettings, offset_scores, uas
from attention_sieve.core.tree_probes.texts import PassedWords, ProbeText, probe_texts
from attention_sieve.core.tree_probes.word_vectors import WordVectors, no_vectors
from benchmarks.shared.markdown import header, row

TREEBANK: Final = Path(__file__).parents[3] / "shared" / "data" / "ud_ewt"
N_THREADS: Final = 2
SETTINGS: Final = PassSettings()


def main() -> None:
    from benchmarks.shared.material import print_machine  # here: core settles how threads wait before torch is imported

    if not TREEBANK.is_dir():
        print("There is no treebank beside the repository; nothing is measured.", file=sys.stderr)
        return
    print_machine(N_THREADS, "cpu")
    n_train, n_test = map(int, sys.argv[1:]) if len(sys.argv) > 1 else (None, None)
    train, test = read("ewt_train3000", n_train), read("ewt_dev", n_test)
    texts, trees = [*train, *test], list(dependencies([*train, *test]))
    files, vectors = find_checkpoint(BUNDLED), None
    print(f"\nTrained on {len(train):,} sentences, tested on {len(test):,}:")
    header("prediction of each word's head", "UAS % (95%)", "epochs")
    for name, own in ((BUNDLED, files), ("random weights", randomly_initialised(files))):
        start = time.perf_counter()
        attention, of_words = passed(own, texts, trees)
        vectors = vectors or of_words
        print(f"{name}: pass of {len(attention):,} texts, {time.perf_counter() - start:.0f} seconds", file=sys.stderr)
        for words in (False, True):
            taken = vectors if words else no_vectors([len(tree.heads) for tree in trees])
            rows = dict(enumerate(taken.rows))
            parts = [
                probe_texts(attention, dict(enumerate(trees)), rows, places)
                for places in (range(len(train)), range(len(train), len(texts)))
            ]
            if name == BUNDLED and not words:
                for offset, score in offset_scores(*parts).items():
                    say(f"offset {offset:+d}", score)
            trained(f"{name}, attention{' and words' * words}", parts, taken.table, TreeProbeSettings(words=words))


def read(name: str, n_texts: int | None) -> tuple[Text, ...]:
    content = gzip.decompress((TREEBANK / f"{name}.clark_sd.jsonl.gz").read_bytes())
    return read_file("trees.jsonl", content)[:n_texts]


def passed(files, texts: Sequence[Text], trees: Sequence[Dependencies]) -> tuple[dict[int, PassedWords], WordVectors]:
    checkpoint = load_checkpoint(files, device="cpu")
    prepared, _ = prepare_all(checkpoint, texts, SETTINGS, "error")
    words = [tree.words for tree in trees]
    work = word_attention_maps(checkpoint, list(prepared.values()), words, SETTINGS)
    attention = {place: maps for batch in work for place, maps in batch}
    return attention, embedded_words(checkpoint, [word_pieces(text, words[place]) for place, text in prepared.items()])


def trained(name: str, parts: Sequence[list[ProbeText]], table: np.ndarray, settings: TreeProbeSettings) -> None:
    from attention_sieve.core.tree_probes.training import predicted_heads, train

    start = time.perf_counter()
    (training,) = deque(train(parts[0], table, settings), maxlen=1)
    score = uas(predicted_heads(training.probe, parts[1], table), parts[1])
    say(name, score, len(training.epochs) - 1)
    print(f"{name}: trained in {time.perf_counter() - start:.0f} seconds", file=sys.stderr)


def say(name: str, score: AttachmentScore, n_epochs: int | None = None) -> None:
    cell = f"{100 * score.share:.1f} ({100 * score.low:.1f}-{100 * score.high:.1f})"
    row(name, cell, "" if n_epochs is None else n_epochs)


if __name__ == "__main__":
    main()
