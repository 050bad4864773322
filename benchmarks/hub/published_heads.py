"""The heads of GPT-2 small that others have published, beside what the roles find; needs the checkpoint, from the hub.

    python -m benchmarks.hub.published_heads [checkpoint]

The texts are those of the published scores: 30 random tokens, twice, after the token that begins a text, so that the
share of attention on the token after the earlier copy is the stripe of the detectors of heads. Another checkpoint of
the same shape shows that the script runs, and nothing else. Without the checkpoint nothing is measured.
"""

import sys
from typing import Final

import numpy as np

from attention_sieve.core.analysis import results
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import CheckpointError
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import scores_question
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import text_of_ids
from benchmarks.shared.markdown import header, row

PUBLISHED: Final = {
    "induction": {(5, 5): 0.94, (6, 9): 0.93, (7, 10): 0.92, (5, 1): 0.91, (7, 2): 0.85},
    "previous": {(4, 11): 0.99},
}
"""Share of attention by role and head.

Source: README of MartinMashalov/transformer-internals, sequences of 60 tokens. That of
designer-coderajay/induction-head-detector has .93, .91, .91, .91 and .83 for the same five heads.
"""
N_TEXTS: Final = 8
PERIOD: Final = 30


def main() -> None:
    try:
        checkpoint = load_checkpoint(find_checkpoint(sys.argv[1] if len(sys.argv) > 1 else "openai-community/gpt2"))
    except CheckpointError as error:
        print(error, file=sys.stderr)
        return
    first = checkpoint.tokenizer.bos_token_id
    random = np.random.default_rng(0)
    drawn = random.integers(checkpoint.tokenizer.vocab_size, size=(N_TEXTS, PERIOD))
    starts = () if first is None else (first,)
    texts = [text_of_ids(GivenTokens((*starts, *block, *block))) for block in drawn.tolist()]
    scored = role_scores(results(checkpoint, scores_question(tuple(PUBLISHED)), texts), ScoreSettings(scale="share"))
    header("role", "head", "published share", "share above chance here", "rank here")
    for role, heads in PUBLISHED.items():
        shares = scored.scores.mean(axis=0)[scored.roles.index(role)]
        for head, published in heads.items():
            row(role, head_name(*head), published, f"{shares[head]:.2f}", int((shares > shares[head]).sum()) + 1)


if __name__ == "__main__":
    main()
