"""Checkpoints that are made beside the dashboard, each in a folder of its own name; apart from what makes them, for
which a first visit does not wait."""

from typing import Final

from attention_sieve.core.checkpoints.folders import checkpoints_folder, holds_checkpoint

SAMPLE_DECODER: Final = "SmolLM2-135M-Instruct"
"""Downloaded by `attention_sieve.core.checkpoints.sample_decoder`."""
DECODER_MEGABYTES: Final = 93
"""Of that download."""
SAMPLE_TRAINING: Final = "repeats-drawn"
"""Trained in the laboratory."""
SAMPLE_FINE_TUNING: Final = "movie-reviews"
EXAMPLES: Final = (SAMPLE_DECODER, SAMPLE_TRAINING, SAMPLE_FINE_TUNING)


def has_sample_decoder() -> bool:
    """Whether the decoder is on this machine."""
    return holds_checkpoint(checkpoints_folder() / SAMPLE_DECODER)
