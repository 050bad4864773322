"""Metrics of a checkpoint's output when something in it is changed. Does not import torch."""

from typing import Final, Literal

Metric = Literal["output", "lm", "labels"]
"""Change of the text vector (1 - cosine), loss of the language model, or score of a classifier on labelled texts."""
METRICS: Final[tuple[Metric, ...]] = ("output", "lm", "labels")
