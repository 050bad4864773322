"""The figures of probes, drawn of a few epochs and scores."""

import numpy as np
from drawn import Drawn

from attention_sieve.core.tree_probes.probe import AttachmentScore, Epoch, Probe, ProbeTraining
from attention_sieve.dashboard.figures.tree_probes import NamedScore, probe_curve, probe_scores

PROBE = Probe(
    constant=np.zeros((2, 2, 3)), by_word=np.zeros((2, 2, 2, 3, 0)), root_vector=np.zeros(0), root_parts=np.ones(2)
)
TRAINING = ProbeTraining(
    probe=PROBE,
    best=1,
    epochs=(Epoch(0, None, 3.0, 0.1), Epoch(1, 2.5, 2.0, 0.4), Epoch(2, 2.0, 2.25, 0.5)),
    done=50,
    n_texts=50,
    n_held_out=6,
    is_finished=True,
)


def score_of(share: float) -> AttachmentScore:
    return AttachmentScore(share=share, low=share - 0.02, high=share + 0.03, n_words=1234, n_texts=56)


SCORES = [
    NamedScore("attention alone", "probe", score_of(0.5)),
    NamedScore("attention alone, random weights", "random weights", score_of(0.1)),
    NamedScore("right-branching", "fixed offset", score_of(0.25)),
]
FIGURES = Drawn({"scores": lambda: probe_scores(SCORES), "curve": lambda: probe_curve(TRAINING)})
