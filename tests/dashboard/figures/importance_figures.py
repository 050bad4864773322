"""Figures of the importance of heads."""

import numpy as np

from dashboard.figures.importance.histogram import score_histogram

SCORES = np.array([[0.9, 0.85, np.nan], [0.91, 0.9, 0.2]])
FIGURES = {"histogram": score_histogram(SCORES, 0.9, "accuracy")}
